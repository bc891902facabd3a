//! Tables without what is sealed in them, for who may not even see a digest.
//!
//! Nothing that a query names has ever had the digest: no rule by which a plan is rewritten can bring it back.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::prelude::ident;

use crate::functions::unsealed;

/// Columns whose texts may have something sealed in them.
const SEALABLE: [&str; 6] = ["properties", "before", "after", "changes", "arrays", "excused"];

fn is_sealable(name: &str) -> bool {
    SEALABLE.contains(&name)
}

/// Another table, with `(sealed)` in the place of every sealed value.
#[derive(Debug)]
pub(crate) struct MaskedTable(pub(crate) Arc<dyn TableProvider>);

#[async_trait]
impl TableProvider for MaskedTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    /// A filter of such a column is one of what is left of it.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let mut support = self.0.supports_filters_pushdown(filters)?;
        for (filter, support) in filters.iter().zip(&mut support) {
            if filter.column_refs().into_iter().any(|column| is_sealable(column.name())) {
                *support = TableProviderFilterPushDown::Unsupported;
            }
        }
        Ok(support)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.0.scan(state, projection, filters, limit).await?;
        let schema = plan.schema();
        if !schema.fields().iter().any(|field| is_sealable(field.name())) {
            return Ok(plan);
        }
        let named = DFSchema::try_from(schema.clone())?;
        let column = |name: &String| -> Result<ProjectionExpr> {
            let column = if is_sealable(name) { unsealed(ident(name)) } else { ident(name) };
            Ok(ProjectionExpr { expr: state.create_physical_expr(column, &named)?, alias: name.clone() })
        };
        let columns = schema.fields().iter().map(|field| column(field.name())).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(columns, plan)?))
    }
}
