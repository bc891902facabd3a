//! An answer: columns, rows, and the forms in which they are handed on.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::WriterBuilder as CsvBuilder;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::WriterBuilder as JsonBuilder;
use datafusion::arrow::json::writer::{JsonFormat, LineDelimited};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

/// Rows, all at hand.
#[derive(Clone, Debug)]
pub struct Answer {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// There were more rows than these.
    cut: Option<usize>,
}

/// Rows one after the other, with commas between them: what is inside a JSON array.
#[derive(Debug, Default)]
struct Items;

impl JsonFormat for Items {
    fn start_row<W: Write>(&self, writer: &mut W, first: bool) -> Result<(), ArrowError> {
        if !first {
            writer.write_all(b",")?;
        }
        Ok(())
    }
}

impl Answer {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>, cut: Option<usize>) -> Self {
        let batches = match cut {
            None => batches,
            Some(mut left) => {
                let keep = |batch: &RecordBatch| {
                    let rows = batch.num_rows().min(left);
                    left -= rows;
                    batch.slice(0, rows)
                };
                batches.iter().map(keep).collect()
            }
        };
        Self { schema, batches, cut }
    }

    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Whether there were more rows than were asked for.
    pub fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Names and types of columns.
    pub fn columns(&self) -> Vec<(String, String)> {
        self.schema.fields().iter().map(|field| (field.name().clone(), type_name(field.data_type()))).collect()
    }

    /// A name that two columns have: a form that goes by names would lose one of them.
    pub fn name_twice(&self) -> Option<&str> {
        let mut seen = BTreeSet::new();
        self.schema.fields().iter().map(|field| field.name().as_str()).find(|name| !seen.insert(*name))
    }

    /// Every value as text; nothing stands for null.
    pub fn cells(&self) -> io::Result<Vec<Vec<Option<String>>>> {
        let options = FormatOptions::default();
        let mut rows = Vec::with_capacity(self.rows());
        for batch in &self.batches {
            let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
            let columns = columns.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
            for row in 0..batch.num_rows() {
                let cell = |(at, column): (usize, &ArrayFormatter<'_>)| {
                    if batch.column(at).is_null(row) { Ok(None) } else { column.value(row).try_to_string().map(Some) }
                };
                let cells = columns.iter().enumerate().map(cell).collect::<Result<Vec<_>, ArrowError>>();
                rows.push(cells.map_err(io::Error::other)?);
            }
        }
        Ok(rows)
    }

    /// One JSON object: `schema`, `columns`, `rows`.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns: Vec<_> =
            self.columns().into_iter().map(|(name, kind)| serde_json::json!({"name": name, "type": kind})).collect();
        write!(out, "{{\"schema\":\"driftline.query/v1\",\"columns\":{},", serde_json::Value::from(columns))?;
        if self.is_cut() {
            write!(out, "\"cut\":true,")?;
        }
        write!(out, "\"rows\":[")?;
        self.objects::<Items>(out)?;
        write!(out, "]}}")
    }

    /// One JSON object a line.
    pub fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        self.objects::<LineDelimited>(out)
    }

    fn objects<F: JsonFormat>(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = JsonBuilder::new().with_explicit_nulls(true).build::<_, F>(out);
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        writer.write_batches(&batches).and_then(|()| writer.finish()).map_err(io::Error::other)
    }

    pub fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = CsvBuilder::new().with_header(true).build(out);
        let empty = RecordBatch::new_empty(self.schema.clone());
        std::iter::once(&empty).chain(&self.batches).try_for_each(|batch| writer.write(batch)).map_err(io::Error::other)
    }

    pub fn parquet(&self, out: &mut (dyn Write + Send)) -> io::Result<()> {
        let level = ZstdLevel::try_new(3).map_err(io::Error::other)?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
        let mut writer = ArrowWriter::try_new(out, self.schema.clone(), Some(properties)).map_err(io::Error::other)?;
        for batch in &self.batches {
            writer.write(batch).map_err(io::Error::other)?;
        }
        writer.close().map(drop).map_err(io::Error::other)
    }

    /// The rows by themselves.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    pub fn schema(&self) -> &Arc<datafusion::arrow::datatypes::Schema> {
        &self.schema
    }
}

/// A type in the words of SQL, where it has some.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "text".into(),
        DataType::Boolean => "boolean".into(),
        DataType::Int64 | DataType::UInt64 => "bigint".into(),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => {
            "int".into()
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => "double".into(),
        DataType::Timestamp(..) => "timestamp".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Binary | DataType::BinaryView | DataType::LargeBinary => "binary".into(),
        DataType::Null => "null".into(),
        other => other.to_string().to_lowercase(),
    }
}
