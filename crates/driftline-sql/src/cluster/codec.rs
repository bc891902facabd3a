//! How our tables are written into a plan that goes to a scheduler.

use std::sync::Arc;

use ballista_core::serde::BallistaLogicalExtensionCodec;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion_proto::logical_plan::LogicalExtensionCodec;

use crate::history::HistoryTable;
use crate::resources::ResourcesTable;
use crate::tables::MadeTable;

/// Rows of files are written as the list of files, what is made here as its rows.
#[derive(Debug, Default)]
pub(super) struct Tables {
    others: BallistaLogicalExtensionCodec,
}

const HISTORY: u8 = 1;
const RESOURCES: u8 = 2;
const MADE: u8 = 3;

fn strange(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl LogicalExtensionCodec for Tables {
    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let table = table.as_ref() as &dyn std::any::Any;
        if let Some(table) = table.downcast_ref::<HistoryTable>() {
            out.push(HISTORY);
            serde_json::to_writer(out, table).map_err(strange)
        } else if let Some(table) = table.downcast_ref::<ResourcesTable>() {
            out.push(RESOURCES);
            serde_json::to_writer(out, table).map_err(strange)
        } else if let Some(table) = table.downcast_ref::<MadeTable>() {
            out.push(MADE);
            let rows = table.rows_now()?;
            let mut writer = StreamWriter::try_new(out, &rows.schema())?;
            writer.write(&rows)?;
            Ok(writer.finish()?)
        } else {
            Err(DataFusionError::NotImplemented(format!("`{name}` cannot be asked of a cluster")))
        }
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        name: &TableReference,
        _: SchemaRef,
        _: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        match bytes.split_first() {
            Some((&HISTORY, rest)) => Ok(Arc::new(serde_json::from_slice::<HistoryTable>(rest).map_err(strange)?)),
            Some((&RESOURCES, rest)) => Ok(Arc::new(serde_json::from_slice::<ResourcesTable>(rest).map_err(strange)?)),
            Some((&MADE, rest)) => {
                let reader = StreamReader::try_new(rest, None)?;
                let schema = reader.schema();
                let rows = reader.collect::<std::result::Result<Vec<RecordBatch>, _>>()?;
                Ok(Arc::new(MemTable::try_new(schema, vec![rows])?))
            }
            _ => Err(DataFusionError::Internal(format!("`{name}` is no table of this version of driftline"))),
        }
    }

    fn try_decode(&self, bytes: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        self.others.try_decode(bytes, inputs, context)
    }

    fn try_encode(&self, node: &Extension, out: &mut Vec<u8>) -> Result<()> {
        self.others.try_encode(node, out)
    }

    fn try_decode_file_format(&self, bytes: &[u8], context: &TaskContext) -> Result<Arc<dyn FileFormatFactory>> {
        self.others.try_decode_file_format(bytes, context)
    }

    fn try_encode_file_format(&self, out: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.others.try_encode_file_format(out, format)
    }
}
