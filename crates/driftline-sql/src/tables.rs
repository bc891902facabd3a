//! Tables that are in the log, or that the program computes: versions, baselines, findings.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, Int64Builder, RecordBatch, StringViewArray, TimestampMicrosecondArray, TimestampMicrosecondBuilder,
};
#[cfg(feature = "ballista")]
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use driftline_store::Catalog;
use jiff::Timestamp;

use crate::history::{Texts, timestamp};

/// What `drift` says of one resource, as a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingRow {
    pub baseline: String,
    pub stream: String,
    pub kind: String,
    pub place: String,
    pub id: String,
    pub account: Option<String>,
    pub region: Option<String>,
    pub status: &'static str,
    /// Modified, deleted or resolved.
    pub how: Option<&'static str>,
    pub since: Option<Timestamp>,
    pub changes: String,
    pub excused: String,
    pub reason: Option<String>,
    pub severity: Option<String>,
}

type Make = Arc<dyn Fn() -> Result<RecordBatch> + Send + Sync>;

/// Rows that are made when they are first asked for, and kept.
pub(crate) struct MadeTable {
    name: &'static str,
    schema: SchemaRef,
    make: Make,
    made: Arc<OnceLock<RecordBatch>>,
    /// They stay as long as the session does; what a query may use is less by that.
    room: Mutex<Option<MemoryReservation>>,
}

impl std::fmt::Debug for MadeTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MadeTable({})", self.name)
    }
}

impl MadeTable {
    pub(crate) fn new(name: &'static str, schema: Schema, make: Make) -> Self {
        Self { name, schema: Arc::new(schema), make, made: Arc::default(), room: Mutex::default() }
    }

    /// The same with texts as another machine can be sent them.
    #[cfg(feature = "ballista")]
    fn plain(self) -> Self {
        let field = |field: &Arc<Field>| match field.data_type() {
            DataType::Utf8View => Field::new(field.name(), DataType::Utf8, field.is_nullable()),
            _ => field.as_ref().clone(),
        };
        let schema = Arc::new(Schema::new(self.schema.fields().iter().map(field).collect::<Vec<Field>>()));
        let (make, to) = (self.make, schema.clone());
        let make = move || {
            let rows = make()?;
            let columns = rows.columns().iter().zip(to.fields()).map(|(column, field)| cast(column, field.data_type()));
            Ok(RecordBatch::try_new(to.clone(), columns.collect::<std::result::Result<_, _>>()?)?)
        };
        Self { schema, make: Arc::new(make), ..self }
    }

    /// As a session wants them.
    pub(crate) fn with(self, texts: Texts) -> Self {
        match texts {
            #[cfg(feature = "ballista")]
            Texts::Plain => self.plain(),
            _ => self,
        }
    }

    /// The rows, waited for.
    pub(crate) fn rows(made: &OnceLock<RecordBatch>, make: &Make) -> Result<RecordBatch> {
        match made.get() {
            Some(rows) => Ok(rows.clone()),
            None => {
                let rows = make()?;
                Ok(made.get_or_init(|| rows).clone())
            }
        }
    }

    #[cfg(feature = "ballista")]
    pub(crate) fn rows_now(&self) -> Result<RecordBatch> {
        Self::rows(&self.made, &self.make)
    }
}

#[async_trait]
impl TableProvider for MadeTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (made, make) = (self.made.clone(), self.make.clone());
        let rows = tokio::task::spawn_blocking(move || Self::rows(&made, &make))
            .await
            .map_err(|error| DataFusionError::External(Box::new(error)))??;
        let room = MemoryConsumer::new(self.name).register(&state.runtime_env().memory_pool);
        room.try_resize(rows.get_array_memory_size())?;
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = Some(room);
        Ok(MemorySourceConfig::try_new_exec(&[vec![rows]], self.schema.clone(), projection.cloned())?)
    }
}

fn text(name: &str, null: bool) -> Field {
    Field::new(name, DataType::Utf8View, null)
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::Int64, false)
}

fn moment(name: &str, null: bool) -> Field {
    Field::new(name, timestamp(), null)
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringViewArray>())
}

fn moments(values: impl Iterator<Item = Option<Timestamp>>) -> ArrayRef {
    let mut builder = TimestampMicrosecondBuilder::new();
    values.for_each(|value| builder.append_option(value.map(Timestamp::as_microsecond)));
    let array: TimestampMicrosecondArray = builder.finish();
    Arc::new(array.with_timezone("UTC"))
}

fn numbers(values: impl Iterator<Item = u64>) -> ArrayRef {
    let mut builder = Int64Builder::new();
    values.for_each(|value| builder.append_value(i64::try_from(value).unwrap_or(i64::MAX)));
    Arc::new(builder.finish())
}

fn batch(schema: &Schema, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(Arc::new(schema.clone()), columns)?)
}

pub(crate) fn versions(catalog: &Catalog) -> MadeTable {
    let schema = Schema::new(vec![
        text("stream", false),
        text("nature", false),
        number("version"),
        moment("taken_at", false),
        moment("committed_at", false),
        text("observer", true),
        number("resources"),
        number("unseen"),
        number("added"),
        number("changed"),
        number("removed"),
        number("complete_extents"),
        number("partial_extents"),
        number("problems"),
        text("digest", false),
    ]);
    let (catalog, of) = (catalog.clone(), schema.clone());
    MadeTable::new(
        "versions",
        schema,
        Arc::new(move || {
            let all: Vec<_> = catalog
                .all_streams()
                .flat_map(|(id, stream)| {
                    let (id, nature) = (id.to_string(), if stream.is_events() { "events" } else { "state" });
                    stream.versions().map(move |version| (id.clone(), nature, version))
                })
                .collect();
            let count = |count: usize| count as u64;
            let versions = || all.iter().map(|(_, _, version)| *version);
            batch(
                &of,
                vec![
                    texts(all.iter().map(|(id, _, _)| Some(id.as_str()))),
                    texts(all.iter().map(|(_, nature, _)| Some(*nature))),
                    numbers(versions().map(|version| version.number)),
                    moments(versions().map(|version| Some(version.taken_at))),
                    moments(versions().map(|version| Some(version.committed_at))),
                    texts(versions().map(|version| version.observer.as_deref())),
                    numbers(versions().map(|version| version.rows)),
                    numbers(versions().map(|version| version.unseen)),
                    numbers(versions().map(|version| version.changes.add)),
                    numbers(versions().map(|version| version.changes.change)),
                    numbers(versions().map(|version| version.changes.remove)),
                    numbers(versions().map(|version| count(version.complete_extents))),
                    numbers(versions().map(|version| count(version.partial_extents))),
                    numbers(versions().map(|version| count(version.problems.len()))),
                    texts(versions().map(|version| Some(version.digest.as_str()))),
                ],
            )
        }),
    )
}

pub(crate) fn baselines(catalog: &Catalog) -> MadeTable {
    let schema =
        Schema::new(vec![text("name", false), text("stream", false), number("version"), moment("set_at", false)]);
    let (catalog, of) = (catalog.clone(), schema.clone());
    MadeTable::new(
        "baselines",
        schema,
        Arc::new(move || {
            let pins: Vec<_> = catalog
                .baselines()
                .flat_map(|(name, baseline)| {
                    baseline
                        .pins
                        .iter()
                        .map(move |(stream, version)| (name, stream.to_string(), *version, baseline.set_at))
                })
                .collect();
            batch(
                &of,
                vec![
                    texts(pins.iter().map(|(name, ..)| Some(name.as_str()))),
                    texts(pins.iter().map(|(_, stream, ..)| Some(stream.as_str()))),
                    numbers(pins.iter().map(|(_, _, version, _)| *version)),
                    moments(pins.iter().map(|(.., set_at)| Some(*set_at))),
                ],
            )
        }),
    )
}

pub(crate) fn findings(find: Arc<dyn Fn() -> Result<Vec<FindingRow>> + Send + Sync>) -> MadeTable {
    let schema = Schema::new(vec![
        text("baseline", false),
        text("stream", false),
        text("type", false),
        text("place", false),
        text("id", false),
        text("account", true),
        text("region", true),
        text("status", false),
        text("kind", true),
        moment("since", true),
        text("changes", false),
        text("excused", false),
        text("reason", true),
        text("severity", true),
    ]);
    let of = schema.clone();
    MadeTable::new(
        "findings",
        schema,
        Arc::new(move || {
            let rows = find()?;
            let column = |value: fn(&FindingRow) -> Option<&str>| texts(rows.iter().map(value));
            batch(
                &of,
                vec![
                    column(|row| Some(&row.baseline)),
                    column(|row| Some(&row.stream)),
                    column(|row| Some(&row.kind)),
                    column(|row| Some(&row.place)),
                    column(|row| Some(&row.id)),
                    column(|row| row.account.as_deref()),
                    column(|row| row.region.as_deref()),
                    column(|row| Some(row.status)),
                    column(|row| row.how),
                    moments(rows.iter().map(|row| row.since)),
                    column(|row| Some(&row.changes)),
                    column(|row| Some(&row.excused)),
                    column(|row| row.reason.as_deref()),
                    column(|row| row.severity.as_deref()),
                ],
            )
        }),
    )
}
