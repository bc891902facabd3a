//! Values as JSON: whatever a query makes has a form, and none is lost.

use std::io::Write;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, MapArray, StructArray, UnionArray};
use datafusion::arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_functions_json::{JsonUnionEncoder, JsonUnionValue};

const OPTIONS: FormatOptions<'static> = FormatOptions::new();

/// Whether a type is made of others.
pub(crate) fn is_nested(kind: &DataType) -> bool {
    kind.is_nested() && !matches!(kind, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
}

/// Whether there is a union somewhere in a type. Hardly any form of an answer has one.
pub(crate) fn has_union(kind: &DataType) -> bool {
    match kind {
        DataType::Union(..) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_union(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_union(field.data_type())),
        DataType::Dictionary(_, values) => has_union(values),
        _ => false,
    }
}

/// A column, ready to be asked row by row.
pub(crate) enum Column<'a> {
    /// Each value is told by its text, in quotes or not.
    Plain {
        array: &'a dyn Array,
        text: ArrayFormatter<'a>,
        quoted: bool,
    },
    /// What `->` and `json_get` make.
    Json(Box<JsonUnionEncoder>),
    Other(&'a dyn Array),
}

impl<'a> Column<'a> {
    pub(crate) fn new(array: &'a dyn Array) -> Result<Self, ArrowError> {
        let kind = array.data_type();
        if let Some(json) = as_json(array) {
            return Ok(Column::Json(Box::new(json)));
        }
        if is_nested(kind) || kind.is_floating() || matches!(kind, DataType::Boolean | DataType::Null) {
            return Ok(Column::Other(array));
        }
        let quoted = !(kind.is_integer() || kind.is_decimal());
        Ok(Column::Plain { array, text: ArrayFormatter::try_new(array, &OPTIONS)?, quoted })
    }

    /// Writes the value of a row; whether it is one, and not null.
    pub(crate) fn put(&self, row: usize, out: &mut Vec<u8>) -> Result<bool, ArrowError> {
        match self {
            Column::Json(json) => put_json(json, row, out),
            Column::Plain { array, .. } if array.is_null(row) => Ok(null(out)),
            Column::Plain { text, quoted, .. } => {
                let text = text.value(row).try_to_string()?;
                if *quoted {
                    quote(&text, out)?;
                } else {
                    out.extend(text.bytes());
                }
                Ok(true)
            }
            Column::Other(array) => put(*array, row, out),
        }
    }
}

fn as_json(array: &dyn Array) -> Option<JsonUnionEncoder> {
    let union = array.as_any().downcast_ref::<UnionArray>()?;
    JsonUnionEncoder::from_union(union.clone())
}

/// Null is no value.
fn null(out: &mut Vec<u8>) -> bool {
    out.extend(b"null");
    false
}

fn quote(text: &str, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    serde_json::to_writer(out, text).map_err(|error| ArrowError::JsonError(error.to_string()))
}

/// JSON has no form for what is no number, or has no end; a word says it.
fn put_float(number: f64, text: &str, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    match number {
        number if number.is_nan() => quote("NaN", out),
        f64::INFINITY => quote("Infinity", out),
        f64::NEG_INFINITY => quote("-Infinity", out),
        _ => {
            out.extend(text.bytes());
            Ok(())
        }
    }
}

fn put_json(json: &JsonUnionEncoder, row: usize, out: &mut Vec<u8>) -> Result<bool, ArrowError> {
    match json.get_value(row) {
        JsonUnionValue::JsonNull => return Ok(null(out)),
        JsonUnionValue::Bool(value) => write!(out, "{value}")?,
        JsonUnionValue::Int(number) => write!(out, "{number}")?,
        JsonUnionValue::Float(number) => put_float(number, &format!("{number:?}"), out)?,
        JsonUnionValue::Str(text) => quote(text, out)?,
        JsonUnionValue::Array(text) | JsonUnionValue::Object(text) => out.extend(text.bytes()),
    }
    Ok(true)
}

fn put(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<bool, ArrowError> {
    if array.is_null(row) {
        return Ok(null(out));
    }
    match array.data_type() {
        DataType::Null => return Ok(null(out)),
        DataType::Boolean => write!(out, "{}", array.as_boolean().value(row))?,
        DataType::Float16 => {
            let number = f64::from(array.as_primitive::<Float16Type>().value(row));
            put_float(number, &format!("{number:?}"), out)?;
        }
        DataType::Float32 => {
            let number = array.as_primitive::<Float32Type>().value(row);
            put_float(f64::from(number), &format!("{number:?}"), out)?;
        }
        DataType::Float64 => {
            let number = array.as_primitive::<Float64Type>().value(row);
            put_float(number, &format!("{number:?}"), out)?;
        }
        DataType::List(_) => put_items(&array.as_list::<i32>().value(row), out)?,
        DataType::LargeList(_) => put_items(&array.as_list::<i64>().value(row), out)?,
        DataType::ListView(_) => put_items(&array.as_list_view::<i32>().value(row), out)?,
        DataType::LargeListView(_) => put_items(&array.as_list_view::<i64>().value(row), out)?,
        DataType::FixedSizeList(..) => put_items(&array.as_fixed_size_list().value(row), out)?,
        DataType::Struct(_) => put_members(array.as_struct(), row, out)?,
        DataType::Map(..) => put_entries(array.as_map(), row, out)?,
        DataType::Union(..) => match as_json(array) {
            Some(json) => return put_json(&json, row, out),
            None => return put(&array.as_union().value(row), 0, out),
        },
        _ => return Column::new(array)?.put(row, out),
    }
    Ok(true)
}

fn put_items(items: &ArrayRef, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let column = Column::new(items.as_ref())?;
    out.push(b'[');
    for row in 0..items.len() {
        if row > 0 {
            out.push(b',');
        }
        column.put(row, out)?;
    }
    out.push(b']');
    Ok(())
}

fn put_members(members: &StructArray, row: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    out.push(b'{');
    for (at, (field, column)) in members.fields().iter().zip(members.columns()).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        quote(field.name(), out)?;
        out.push(b':');
        put(column.as_ref(), row, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Names of members are texts, whatever the keys of a map are.
fn put_entries(map: &MapArray, row: usize, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let entries = map.value(row);
    let (keys, values) = (entries.column(0), entries.column(1));
    out.push(b'{');
    for at in 0..entries.len() {
        if at > 0 {
            out.push(b',');
        }
        let mut key = Vec::new();
        put(keys.as_ref(), at, &mut key)?;
        match key.first() {
            Some(b'"') => out.append(&mut key),
            _ => quote(&String::from_utf8_lossy(&key), out)?,
        }
        out.push(b':');
        put(values.as_ref(), at, out)?;
    }
    out.push(b'}');
    Ok(())
}
