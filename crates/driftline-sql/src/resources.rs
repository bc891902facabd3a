//! The state of streams at versions: full images with what changed since, as one row for each resource.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList, MemorySchemaProvider,
    Session, TableProvider,
};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DataFusionError};
use datafusion::error::Result;
use datafusion::execution::context::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::prelude::{SessionContext, col};
use driftline_core::StreamId;
use driftline_store::{Catalog, StoreError};
use serde::{Deserialize, Serialize};

use crate::history::{AS_OF, DataFile, HistoryTable, Texts, timestamp};

/// Columns by which rows are left out before anything is put together: the same in every row of a resource.
const KEY: [&str; 6] = ["stream", "type", "place", "id", "account", "region"];

/// The files of some versions, by what they are to each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ResourcesTable {
    place: String,
    /// The full image that a version's chain begins with.
    bases: Vec<DataFile>,
    /// What changed since, up to the version.
    deltas: Vec<DataFile>,
    /// What happened before that full image, for when something last changed.
    earlier: Vec<DataFile>,
    texts: Texts,
}

impl ResourcesTable {
    pub(crate) fn new(
        place: &str,
        catalog: &Catalog,
        versions: &[(StreamId, u64)],
        texts: Texts,
    ) -> Result<Self, StoreError> {
        let mut table = Self { place: place.to_owned(), texts, ..Self::default() };
        for (id, number) in versions {
            let stream = catalog.stream(id)?;
            let (start, base, changes) = stream.chain(*number).ok_or_else(|| StoreError::Damaged {
                path: id.to_string(),
                reason: "no full image starts its versions".into(),
            })?;
            table.bases.push(DataFile::new(id, start, base, true, *number));
            for version in changes {
                table.deltas.extend(version.delta.iter().map(|file| DataFile::new(id, version, file, false, *number)));
            }
            let Some(first) = stream.versions().next().filter(|first| first.number < start.number) else { continue };
            table.earlier.extend(first.base.iter().map(|file| DataFile::new(id, first, file, true, *number)));
            for version in stream.between(first.number, start.number) {
                table.earlier.extend(version.delta.iter().map(|file| DataFile::new(id, version, file, false, *number)));
            }
        }
        Ok(table)
    }

    fn columns(texts: Texts) -> Schema {
        let text = |name: &str, null: bool| Field::new(name, texts.of_text(), null);
        Schema::new(vec![
            text("stream", true),
            Field::new("version", DataType::Int64, true),
            text("type", true),
            text("place", true),
            text("id", true),
            text("account", true),
            text("region", true),
            Field::new("seen", DataType::Boolean, true),
            Field::new("hash", DataType::Utf8, true),
            text("properties", true),
            Field::new("changed_at", timestamp(), true),
        ])
    }

    /// Asks for these columns. Which files are opened, and what of them is read, follows from that.
    fn sql(&self, schema: &Schema) -> String {
        let names: Vec<String> = schema.fields().iter().map(|field| format!("\"{}\"", field.name())).collect();
        let names = if names.is_empty() { "1".to_owned() } else { names.join(", ") };
        let dated = schema.field_with_name("changed_at").is_ok() && !self.earlier.is_empty();
        let told = if dated { format!("LEFT JOIN ({TOLD}) ON {}", same_key("b", "t")) } else { String::new() };
        let at = if dated { "t_at, " } else { "" };
        match self.deltas.is_empty() {
            true => format!(
                "SELECT {names} FROM (SELECT {FROM_BASE}, coalesce({at}b_observed_at) AS changed_at FROM ({BASE}) {told})"
            ),
            false => format!(
                "SELECT {names} FROM (SELECT {FROM_BOTH}, coalesce(l_changed_at, {at}b_observed_at) AS changed_at \
                 FROM ({BASE}) FULL JOIN ({LATEST}) ON {} {told} WHERE l_tail['op'] IS DISTINCT FROM 'remove')",
                same_key("b", "l")
            ),
        }
    }
}

// Every column has a name of its own, on both sides of every join: a rule of the optimizer goes by names alone.

/// The full images.
const BASE: &str = "SELECT stream AS b_stream, type AS b_type, place AS b_place, id AS b_id, account AS b_account, \
    region AS b_region, as_of AS b_as_of, seen AS b_seen, hash AS b_hash, after AS b_after, observed_at AS b_observed_at \
    FROM base";

/// The last thing that was told of each resource since the full image. Rows of op `seen` and `unseen` have no image.
const LATEST: &str = "SELECT stream AS l_stream, type AS l_type, place AS l_place, id AS l_id, account AS l_account, \
    region AS l_region, as_of AS l_as_of, \
    last_value(named_struct('op', op, 'hash', hash, 'seen', seen) ORDER BY version) AS l_tail, \
    last_value(after ORDER BY version) FILTER (WHERE after IS NOT NULL) AS l_after, \
    last_value(observed_at ORDER BY version) FILTER (WHERE op IN ('add', 'change')) AS l_changed_at \
    FROM delta GROUP BY stream, type, place, id, account, region, as_of";

/// When each resource last became what it was in the full image, or the first time that is known.
const TOLD: &str = "SELECT stream AS t_stream, type AS t_type, place AS t_place, id AS t_id, \
    last_value(observed_at ORDER BY version) AS t_at \
    FROM earlier WHERE op IN ('add', 'change', 'base') GROUP BY stream, type, place, id";

const FROM_BASE: &str = "b_stream AS stream, b_as_of AS version, b_type AS type, b_place AS place, b_id AS id, \
    b_account AS account, b_region AS region, b_seen AS seen, encode(b_hash, 'hex') AS hash, b_after AS properties";

const FROM_BOTH: &str = "coalesce(l_stream, b_stream) AS stream, coalesce(l_as_of, b_as_of) AS version, \
    coalesce(l_type, b_type) AS type, coalesce(l_place, b_place) AS place, coalesce(l_id, b_id) AS id, \
    coalesce(l_account, b_account) AS account, coalesce(l_region, b_region) AS region, \
    coalesce(l_tail['seen'], b_seen) AS seen, \
    encode(CASE WHEN l_id IS NULL THEN b_hash ELSE l_tail['hash'] END, 'hex') AS hash, \
    coalesce(l_after, b_after) AS properties";

/// Two tables that tell of one resource.
fn same_key(a: &str, b: &str) -> String {
    let same = |column: &str| format!("{a}_{column} = {b}_{column}");
    ["stream", "type", "place", "id"].map(same).join(" AND ")
}

/// A session with the same functions and limits, and with tables that nobody else sees.
fn apart(state: &SessionState) -> Result<SessionContext> {
    let names = &state.config_options().catalog;
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(&names.default_schema, Arc::new(MemorySchemaProvider::new()))?;
    let catalogs = MemoryCatalogProviderList::new();
    catalogs.register_catalog(names.default_catalog.clone(), Arc::new(catalog));
    let state = SessionStateBuilder::new_from_existing(state.clone()).with_catalog_list(Arc::new(catalogs)).build();
    Ok(SessionContext::new_with_state(state))
}

/// The filter of a query, of columns that have no table yet.
fn unqualified(filter: Expr) -> Result<Expr> {
    let strip = |expr: Expr| match expr {
        Expr::Column(column) => Ok(Transformed::yes(Expr::Column(Column::new_unqualified(column.name)))),
        other => Ok(Transformed::no(other)),
    };
    filter.transform(strip).map(|done| done.data)
}

fn is_of_key(filter: &Expr) -> bool {
    filter.column_refs().into_iter().all(|column| KEY.contains(&column.name()))
}

#[async_trait]
impl TableProvider for ResourcesTable {
    fn schema(&self) -> SchemaRef {
        Arc::new(Self::columns(self.texts))
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match is_of_key(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let state = state.as_any().downcast_ref::<SessionState>().ok_or_else(|| {
            DataFusionError::Internal("resources can only be planned by a session of DataFusion's own".into())
        })?;
        let inner = apart(state)?;
        let filters = filters.iter().filter(|filter| is_of_key(filter)).cloned().map(unqualified);
        let filter = conjunction(filters.collect::<Result<Vec<Expr>>>()?);
        for (name, files) in [("base", &self.bases), ("delta", &self.deltas), ("earlier", &self.earlier)] {
            let table = HistoryTable::dated(&self.place, files.clone(), self.texts);
            let has_others = table.has_others();
            let mut rows = inner.read_table(Arc::new(table))?;
            // A file that versions share may have later ones. Earlier ones than are meant lead to the same: what they
            // tell last of a resource is what the full image has.
            if has_others {
                rows = rows.filter(col("version").lt_eq(col(AS_OF)))?;
            }
            if let Some(filter) = &filter {
                rows = rows.filter(filter.clone())?;
            }
            inner.register_table(name, rows.into_view())?;
        }
        let schema = self.schema();
        let schema = match projection {
            Some(columns) => schema.project(columns)?,
            None => schema.as_ref().clone(),
        };
        let answer = inner.sql(&self.sql(&schema)).await?.limit(0, limit)?;
        let plan = answer.create_physical_plan().await?;
        match schema.fields().is_empty() {
            // Only how many there are is asked.
            true => Ok(Arc::new(ProjectionExec::try_new(Vec::<ProjectionExpr>::new(), plan)?)),
            false => Ok(plan),
        }
    }
}
