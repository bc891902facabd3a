//! What can be asked: the views, and the table function, made of one state of the log.

use std::sync::Arc;

use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::expr_fn::encode;
use datafusion::logical_expr::{ColumnarValue, Expr};
use datafusion::prelude::{DataFrame, SessionContext, col, lit};
use driftline_core::StreamId;
use driftline_store::{Catalog, StoreError};
use jiff::Timestamp;

use crate::error::Told;
use crate::history::{DataFile, HistoryTable, Texts};
use crate::masked::MaskedTable;
use crate::resources::ResourcesTable;
use crate::tables::{self, FindingRow};

/// The names that can stand after `FROM`, and what each holds.
pub const VIEWS: [(&str, &str); 7] = [
    ("resources", "every resource as it is now"),
    ("resources_at(…)", "as it was at a time, or in a version of a stream"),
    ("changes", "what was added, changed or removed, version by version"),
    ("findings", "what `driftline drift` says"),
    ("versions", "what was observed, and when"),
    ("baselines", "which versions are pinned"),
    ("history", "the rows of all data files"),
];

/// Says what drifted. Asked only by a query that names `findings`.
pub type Find = Arc<dyn Fn() -> std::result::Result<Vec<FindingRow>, Told> + Send + Sync>;

/// Reads a time as people write it.
pub type Moment = Arc<dyn Fn(&str) -> std::result::Result<Timestamp, Told> + Send + Sync>;

/// What a query is asked of: one state of the log, and what only the program knows.
#[derive(Clone)]
pub struct Asked {
    /// Where the store is, in a form that its opener understands wherever the query runs.
    pub place: String,
    pub catalog: Catalog,
    pub find: Find,
    pub moment: Moment,
    /// Whether not even the digests of what is sealed may be seen, or asked about.
    pub masked: bool,
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Asked({})", self.place)
    }
}

/// The files of all versions: change files, and full images if they are wanted.
fn files(catalog: &Catalog, events: bool, bases: bool) -> Vec<DataFile> {
    let mut files = Vec::new();
    for (id, stream) in catalog.all_streams().filter(|(_, stream)| events || !stream.is_events()) {
        for version in stream.versions() {
            let file = |file, base| DataFile::new(id, version, file, base, version.number);
            files.extend(version.base.iter().filter(|_| bases).map(|base| file(base, true)));
            files.extend(version.delta.iter().map(|delta| file(delta, false)));
        }
    }
    files
}

/// A table as it may be seen.
fn seen(asked: &Asked, table: Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
    if asked.masked { Arc::new(MaskedTable(table)) } else { table }
}

pub(crate) fn register(context: &SessionContext, asked: &Asked, texts: Texts) -> Result<()> {
    let (place, catalog) = (&asked.place, &asked.catalog);
    let add = |name: &str, table: Arc<dyn TableProvider>| context.register_table(name, seen(asked, table));
    add("history", Arc::new(HistoryTable::new(place, files(catalog, true, true), texts)))?;
    let changed = context.read_table(Arc::new(HistoryTable::new(place, files(catalog, false, false), texts)))?;
    add("changes", changes(changed)?.into_view())?;
    let newest = catalog.streams().filter_map(|(id, stream)| Some((id.clone(), stream.head()?.number)));
    let newest: Vec<(StreamId, u64)> = newest.collect();
    add("resources", Arc::new(ResourcesTable::new(place, catalog, &newest, texts).map_err(external)?))?;
    context.register_udtf("resources_at", Arc::new(ResourcesAt { asked: asked.clone(), texts }));
    add("versions", Arc::new(tables::versions(catalog).with(texts)))?;
    add("baselines", Arc::new(tables::baselines(catalog).with(texts)))?;
    let find = asked.find.clone();
    let find = move || find().map_err(|told| DataFusionError::External(Box::new(told)));
    add("findings", Arc::new(tables::findings(Arc::new(find)).with(texts)))?;
    Ok(())
}

/// What happened to resources, in the columns that are documented.
fn changes(rows: DataFrame) -> Result<DataFrame> {
    let hex = |name: &str| encode(col(name), lit("hex")).alias(name);
    let plain = ["stream", "version", "observed_at", "op", "type", "place", "id", "account", "region"].map(col);
    let mut columns = plain.to_vec();
    columns.extend([hex("hash"), hex("prev_hash"), col("before"), col("after"), col("changes")]);
    rows.filter(col("op").in_list(vec![lit("add"), lit("change"), lit("remove")], false))?.select(columns)
}

fn external(error: StoreError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

#[derive(Debug)]
struct ResourcesAt {
    asked: Asked,
    texts: Texts,
}

const USAGE: &str = "resources_at takes a time, as in resources_at('2026-06-29T10:00:00Z'), or a stream and its version, \
    as in resources_at('inventory/prod', 3)";

impl TableFunctionImpl for ResourcesAt {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let values = args.exprs().iter().map(|expr| constant(expr, args.session())).collect::<Result<Vec<_>>>()?;
        let catalog = &self.asked.catalog;
        let versions = match values.as_slice() {
            [time] => {
                let time = self.time(time)?;
                let at = catalog.streams().filter_map(|(id, stream)| Some((id.clone(), stream.at(time)?.number)));
                at.collect::<Vec<_>>()
            }
            [stream, version] => vec![self.version(stream, version)?],
            _ => return Err(DataFusionError::Plan(USAGE.into())),
        };
        let table = ResourcesTable::new(&self.asked.place, catalog, &versions, self.texts).map_err(external)?;
        Ok(seen(&self.asked, Arc::new(table)))
    }
}

impl ResourcesAt {
    fn time(&self, value: &ScalarValue) -> Result<Timestamp> {
        let usage = || DataFusionError::Plan(USAGE.into());
        match value {
            ScalarValue::TimestampSecond(..)
            | ScalarValue::TimestampMillisecond(..)
            | ScalarValue::TimestampMicrosecond(..)
            | ScalarValue::TimestampNanosecond(..)
            | ScalarValue::Date32(_) => {
                let ScalarValue::TimestampMicrosecond(Some(micros), _) = value.cast_to(&crate::history::timestamp())?
                else {
                    return Err(usage());
                };
                Timestamp::from_microsecond(micros).map_err(|error| DataFusionError::Plan(error.to_string()))
            }
            text => {
                let text = text.try_as_str().flatten().ok_or_else(usage)?;
                (self.asked.moment)(text).map_err(|told| DataFusionError::External(Box::new(told)))
            }
        }
    }

    fn version(&self, stream: &ScalarValue, version: &ScalarValue) -> Result<(StreamId, u64)> {
        let usage = || DataFusionError::Plan(USAGE.into());
        let name = stream.try_as_str().flatten().ok_or_else(usage)?;
        let id: StreamId =
            name.parse().map_err(|error: driftline_core::NameError| DataFusionError::External(error.into()))?;
        // A number with a fraction would be cut to another version.
        let number: Option<u64> = match version.try_as_str().flatten() {
            Some(text) => text.parse().ok(),
            None if version.data_type().is_integer() => version.to_string().parse().ok(),
            None => None,
        };
        let number = number.ok_or_else(usage)?;
        let catalog = &self.asked.catalog;
        if !catalog.streams().any(|(known, _)| *known == id) {
            let known: Vec<String> = catalog.streams().map(|(known, _)| known.to_string()).collect();
            return Err(DataFusionError::External(Box::new(crate::error::no_stream(
                &catalog.no_state(&id),
                name,
                &known,
            ))));
        }
        catalog
            .version(&id, number)
            .map_err(|error| DataFusionError::External(Box::new(crate::error::no_version(&error, name))))?;
        Ok((id, number))
    }
}

/// What an expression without columns comes to.
fn constant(expr: &Expr, session: &dyn Session) -> Result<ScalarValue> {
    use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
    use datafusion::arrow::datatypes::Schema;
    if let Expr::Literal(value, _) = expr {
        return Ok(value.clone());
    }
    if !expr.column_refs().is_empty() {
        return Err(DataFusionError::Plan(USAGE.into()));
    }
    let nothing = RecordBatch::try_new_with_options(
        Arc::new(Schema::empty()),
        Vec::new(),
        &RecordBatchOptions::new().with_row_count(Some(1)),
    )?;
    match session.create_physical_expr(expr.clone(), &DFSchema::empty())?.evaluate(&nothing)? {
        ColumnarValue::Scalar(value) => Ok(value),
        ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0),
    }
}
