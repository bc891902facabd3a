//! An answer: columns, rows, and the forms in which they are handed on.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringViewBuilder};
use datafusion::arrow::csv::WriterBuilder as CsvBuilder;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use crate::json::{Column, has_union, is_nested};

/// Rows, all at hand.
#[derive(Clone, Debug)]
pub struct Answer {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// There were more rows than these.
    cut: Option<usize>,
}

/// The same with texts of JSON in the place of columns of some types.
fn as_texts(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    which: fn(&DataType) -> bool,
) -> Result<(SchemaRef, Vec<RecordBatch>), ArrowError> {
    let told = |schema: &SchemaRef| -> SchemaRef {
        let field = |field: &FieldRef| match which(field.data_type()) {
            true => Arc::new(Field::new(field.name(), DataType::Utf8View, true)),
            false => field.clone(),
        };
        Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<FieldRef>>()))
    };
    let batch = |batch: &RecordBatch| {
        let column = |column: &ArrayRef| match which(column.data_type()) {
            true => texts(column),
            false => Ok(column.clone()),
        };
        let columns = batch.columns().iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(told(&batch.schema()), columns, &options)
    };
    let batches = batches.iter().map(batch).collect::<Result<Vec<_>, _>>()?;
    Ok((told(schema), batches))
}

fn texts(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let column = Column::new(values.as_ref())?;
    let mut out = StringViewBuilder::with_capacity(values.len());
    let mut text = Vec::new();
    for row in 0..values.len() {
        text.clear();
        match column.put(row, &mut text)? {
            true => out.append_value(String::from_utf8_lossy(&text)),
            false => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

impl Answer {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>, cut: Option<usize>) -> Result<Self, ArrowError> {
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
        // A value of JSON by itself, as `->` makes it, is a type that few know.
        let (schema, batches) = match schema.fields().iter().any(|field| has_union(field.data_type())) {
            true => as_texts(&schema, &batches, has_union)?,
            false => (schema, batches),
        };
        Ok(Self { schema, batches, cut })
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
        self.objects(out, ",", "")?;
        write!(out, "]}}")
    }

    /// One JSON object a line.
    pub fn ndjson(&self, out: &mut dyn Write) -> io::Result<()> {
        self.objects(out, "", "\n")
    }

    fn objects(&self, out: &mut dyn Write, between: &str, after: &str) -> io::Result<()> {
        let name = |field: &FieldRef| serde_json::to_string(field.name());
        let names = self.schema.fields().iter().map(name).collect::<Result<Vec<_>, _>>()?;
        let mut first = true;
        let mut text = Vec::new();
        for batch in &self.batches {
            let columns = batch.columns().iter().map(|column| Column::new(column.as_ref()));
            let columns = columns.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
            for row in 0..batch.num_rows() {
                text.clear();
                if !std::mem::take(&mut first) {
                    text.extend(between.bytes());
                }
                text.push(b'{');
                for (at, (name, column)) in names.iter().zip(&columns).enumerate() {
                    write!(text, "{}{name}:", if at > 0 { "," } else { "" })?;
                    column.put(row, &mut text).map_err(io::Error::other)?;
                }
                text.push(b'}');
                text.extend(after.bytes());
                out.write_all(&text)?;
            }
        }
        Ok(())
    }

    /// Lists and the like are texts of JSON: a line has room for no more.
    pub fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let (schema, batches) = as_texts(&self.schema, &self.batches, is_nested).map_err(io::Error::other)?;
        let mut writer = CsvBuilder::new().with_header(true).build(out);
        let empty = RecordBatch::new_empty(schema);
        std::iter::once(&empty).chain(&batches).try_for_each(|batch| writer.write(batch)).map_err(io::Error::other)
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn answered(sql: &str) -> Answer {
        let folder = tempfile::tempdir().unwrap();
        let limits = crate::Limits {
            time: std::time::Duration::from_mins(1),
            memory: 64 << 20,
            spill: 0,
            folder: folder.path().to_owned(),
            rows: None,
        };
        let open: crate::Opener = Arc::new(|_| unreachable!("no store is asked"));
        crate::query::run_on(open, sql, &crate::Engine::Here, &limits, &crate::Stop::default(), |_| Ok(())).unwrap()
    }

    fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn every_value_has_a_form_in_json_in_csv_and_in_parquet() {
        for (sql, json, csv) in [
            (r#"'{"b":[1,2]}'->'b'"#, r#""[1,2]""#, r#""[1,2]""#),
            (r#"'{"b":"c"}'->'b'"#, r#""\"c\"""#, r#""""c""""#),
            (r#"['{"b":1.5}'->'b', '{"b":null}'->'b']"#, r#""[1.5,null]""#, r#""[1.5,null]""#),
            ("map([1],[2])", r#"{"1":2}"#, r#""{""1"":2}""#),
            ("map(['a'],[[1,2]])", r#"{"a":[1,2]}"#, r#""{""a"":[1,2]}""#),
            ("CAST('NaN' AS DOUBLE)", r#""NaN""#, "NaN"),
            ("[CAST('inf' AS DOUBLE), CAST('-inf' AS DOUBLE), 0.5]", r#"["Infinity","-Infinity",0.5]"#, ""),
            ("CAST(0.1 AS REAL)", "0.1", "0.1"),
            ("named_struct('a', 'it\"s', 'b', NULL)", r#"{"a":"it\"s","b":null}"#, ""),
            ("CAST(1.50 AS DECIMAL(5,2))", "1.50", "1.50"),
            ("TIMESTAMP '2026-06-29T10:00:00Z'", r#""2026-06-29T10:00:00""#, "2026-06-29T10:00:00"),
            ("decode('00ff', 'hex')", r#""00ff""#, "00ff"),
            ("true", "true", "true"),
            ("NULL", "null", ""),
            ("7", "7", "7"),
        ] {
            let answer = answered(&format!("SELECT {sql} AS x"));
            assert_eq!(written(|out| answer.ndjson(out)), format!("{{\"x\":{json}}}\n"), "{sql}");
            let whole = written(|out| answer.json(out));
            assert!(whole.ends_with(&format!("\"rows\":[{{\"x\":{json}}}]}}")), "{sql}: {whole}");
            let told = written(|out| answer.csv(out));
            assert!(csv.is_empty() || told == format!("x\n{csv}\n"), "{sql}: {told}");
            let mut parquet = Vec::new();
            answer.parquet(&mut parquet).unwrap();
            assert!(parquet.starts_with(b"PAR1"), "{sql}");
            assert_eq!(answer.cells().unwrap().len(), 1, "{sql}");
        }
    }
}
