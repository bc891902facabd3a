//! The rows of data files: the raw table that every view of history is made of.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{Column, DFSchema, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use driftline_core::StreamId;
use driftline_store::{FileRef, Version};
use serde::{Deserialize, Serialize};

use crate::objects;

/// One file of rows of one stream: of one version, or of several whose change files were packed into one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DataFile {
    path: String,
    size: u64,
    /// How many of its rows are meant, and how many it has.
    rows: u64,
    of: u64,
    stream: String,
    version: u64,
    /// The last version that it has rows of.
    last: u64,
    /// Microseconds since 1970, as the rows have it; of the first version and of the last.
    observed_at: i64,
    last_at: i64,
    /// A full image, and not what changed.
    base: bool,
    /// The version that is asked for, where an earlier file is a part of it.
    as_of: u64,
}

impl DataFile {
    pub(crate) fn new(stream: &StreamId, version: &Version, file: &FileRef, base: bool, as_of: u64) -> Self {
        Self {
            path: file.path.clone(),
            size: file.size,
            rows: file.rows,
            of: file.part.map_or(file.rows, |part| part.of),
            stream: stream.to_string(),
            version: version.number,
            last: version.number,
            observed_at: version.taken_at.as_microsecond(),
            last_at: version.taken_at.as_microsecond(),
            base,
            as_of,
        }
    }

    #[cfg(feature = "ballista")]
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }
}

/// Every file once, however many versions share it.
fn gather(files: Vec<DataFile>, dated: bool) -> Vec<DataFile> {
    let mut places: BTreeMap<(String, u64), usize> = BTreeMap::new();
    let mut gathered: Vec<DataFile> = Vec::with_capacity(files.len());
    for file in files {
        // The same file may be read for several versions; if it is not said for which, once is enough.
        match places.entry((file.path.clone(), if dated { file.as_of } else { 0 })) {
            Entry::Vacant(entry) => {
                entry.insert(gathered.len());
                gathered.push(file);
            }
            Entry::Occupied(entry) => {
                let known = &mut gathered[*entry.get()];
                known.rows += file.rows;
                known.version = known.version.min(file.version);
                known.last = known.last.max(file.last);
                known.observed_at = known.observed_at.min(file.observed_at);
                known.last_at = known.last_at.max(file.last_at);
            }
        }
    }
    gathered
}

/// A timestamp as files and views have it.
pub(crate) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The version that a file is read for; a column beside those of the file.
pub(crate) const AS_OF: &str = "as_of";

const OPS_OF_CHANGES: [&str; 5] = ["add", "change", "remove", "seen", "unseen"];

/// How texts are held in memory. A view of a text is cheap to copy, but what is sent of it to another machine is
/// everything that it looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Texts {
    #[default]
    Viewed,
    /// For what goes from machine to machine.
    Plain,
}

impl Texts {
    pub(crate) fn of_text(self) -> DataType {
        match self {
            Texts::Viewed => DataType::Utf8View,
            Texts::Plain => DataType::Utf8,
        }
    }

    fn of_bytes(self) -> DataType {
        match self {
            Texts::Viewed => DataType::BinaryView,
            Texts::Plain => DataType::Binary,
        }
    }
}

fn file_schema(texts: Texts) -> Schema {
    let text = |name: &str, null: bool| Field::new(name, texts.of_text(), null);
    let hash = |name: &str| Field::new(name, texts.of_bytes(), true);
    Schema::new(vec![
        text("stream", false),
        Field::new("version", DataType::Int64, false),
        Field::new("observed_at", timestamp(), false),
        text("op", false),
        text("type", false),
        text("place", false),
        text("account", true),
        text("region", true),
        text("id", false),
        hash("hash"),
        hash("prev_hash"),
        Field::new("seen", DataType::Boolean, false),
        Field::new("prev_seen", DataType::Boolean, false),
        text("before", true),
        text("after", true),
        text("changes", true),
        text("arrays", true),
    ])
}

/// Rows of a list of files. Files that a filter rules out are not opened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HistoryTable {
    place: String,
    files: Vec<DataFile>,
    dated: bool,
    texts: Texts,
}

impl HistoryTable {
    pub(crate) fn new(place: &str, files: Vec<DataFile>, texts: Texts) -> Self {
        Self { place: place.to_owned(), files: gather(files, false), dated: false, texts }
    }

    /// The same with the version that each file is read for.
    pub(crate) fn dated(place: &str, files: Vec<DataFile>, texts: Texts) -> Self {
        Self { place: place.to_owned(), files: gather(files, true), dated: true, texts }
    }

    /// Whether some file also has rows of versions that are not meant.
    pub(crate) fn has_others(&self) -> bool {
        self.files.iter().any(|file| file.rows != file.of)
    }

    fn table_schema(&self) -> TableSchema {
        let beside = self.dated.then(|| Arc::new(Field::new(AS_OF, DataType::Int64, false)));
        TableSchema::builder(Arc::new(file_schema(self.texts)))
            .with_table_partition_cols(beside.into_iter().collect::<Vec<_>>())
            .build()
    }

    /// The files that may hold a row for which all filters are true.
    fn possible(&self, state: &dyn Session, filters: &[Expr]) -> Result<(Vec<DataFile>, Option<Filter>)> {
        let Some(filter) = conjunction(filters.to_vec()) else { return Ok((self.files.clone(), None)) };
        let schema = self.schema();
        let df_schema = DFSchema::try_from(schema.clone())?;
        let filter = state.create_physical_expr(filter, &df_schema)?;
        let kept = PruningPredicateBuilder::new()
            .with_file_schema(schema)
            .try_build(filter.clone())?
            .prune(&Facts { files: &self.files, texts: self.texts })?;
        let files = self.files.iter().zip(kept).filter(|(_, kept)| *kept).map(|(file, _)| file.clone()).collect();
        Ok((files, Some(filter)))
    }
}

type Filter = Arc<dyn datafusion::physical_plan::PhysicalExpr>;

#[async_trait]
impl TableProvider for HistoryTable {
    fn schema(&self) -> SchemaRef {
        self.table_schema().table_schema().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (files, filter) = self.possible(state, filters)?;
        let mut source = ParquetSource::new(self.table_schema());
        let rows = usize::try_from(files.iter().map(|file| file.rows).sum::<u64>()).unwrap_or(usize::MAX);
        let mut statistics = Statistics::new_unknown(&self.schema());
        statistics.num_rows = match filter {
            None if files.iter().all(|file| file.rows == file.of) => Precision::Exact(rows),
            _ => Precision::Inexact(rows),
        };
        if let Some(filter) = filter {
            source = source.with_predicate(filter);
        }
        let partitioned = |file: DataFile| {
            let version = i64::try_from(file.as_of).unwrap_or(i64::MAX);
            let values = if self.dated { vec![ScalarValue::Int64(Some(version))] } else { Vec::new() };
            PartitionedFile::new(file.path, file.size).with_partition_values(values)
        };
        let group = FileGroup::new(files.into_iter().map(partitioned).collect());
        let groups = match group.is_empty() {
            true => vec![group],
            false => group.split_files(state.config().target_partitions()),
        };
        let config = FileScanConfigBuilder::new(objects::address(&self.place)?, Arc::new(source))
            .with_file_groups(groups)
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Low,
    High,
}

/// What is known of each file without opening it.
struct Facts<'a> {
    files: &'a [DataFile],
    texts: Texts,
}

impl Facts<'_> {
    fn each(&self, value: impl Fn(&DataFile) -> ScalarValue) -> Option<ArrayRef> {
        ScalarValue::iter_to_array(self.files.iter().map(value)).ok()
    }

    fn bound(&self, column: &Column, end: End) -> Option<ArrayRef> {
        let of_changes = match end {
            End::Low => OPS_OF_CHANGES[0],
            End::High => OPS_OF_CHANGES[OPS_OF_CHANGES.len() - 1],
        };
        let of = |low, high| if end == End::Low { low } else { high };
        let text = |text: &str| match self.texts {
            Texts::Viewed => ScalarValue::Utf8View(Some(text.to_owned())),
            Texts::Plain => ScalarValue::Utf8(Some(text.to_owned())),
        };
        let number = |number: u64| ScalarValue::Int64(i64::try_from(number).ok());
        match column.name() {
            "stream" => self.each(|file| text(&file.stream)),
            "version" => self.each(|file| number(of(file.version, file.last))),
            AS_OF => self.each(|file| number(file.as_of)),
            "observed_at" => self.each(|file| {
                let at = if end == End::Low { file.observed_at } else { file.last_at };
                ScalarValue::TimestampMicrosecond(Some(at), Some("UTC".into()))
            }),
            "op" => self.each(|file| text(if file.base { "base" } else { of_changes })),
            _ => None,
        }
    }
}

impl PruningStatistics for Facts<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bound(column, End::Low)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bound(column, End::High)
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let never = matches!(column.name(), "stream" | "version" | "observed_at" | "op" | AS_OF);
        never.then(|| Arc::new(UInt64Array::from(vec![0; self.files.len()])) as ArrayRef)
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from(self.files.iter().map(|file| file.rows).collect::<Vec<_>>())))
    }

    fn contained(&self, column: &Column, values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        if column.name() != "op" {
            return None;
        }
        #[expect(clippy::disallowed_methods, reason = "it becomes a set with an order")]
        let asked: BTreeSet<&str> = values.iter().filter_map(|value| value.try_as_str().flatten()).collect();
        let told = |file: &DataFile| match file.base {
            true => Some(asked.contains("base")),
            false if OPS_OF_CHANGES.iter().all(|op| asked.contains(op)) => Some(true),
            false if OPS_OF_CHANGES.iter().any(|op| asked.contains(op)) => None,
            false => Some(false),
        };
        Some(self.files.iter().map(told).collect())
    }
}
