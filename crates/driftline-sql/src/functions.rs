//! Functions that SQL gets from us.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, StringViewArray, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use driftline_core::Value;
use driftline_core::difference::{Told, differences, tell};
use driftline_core::seal::SEALED;

/// Gives a session every function that views and queries may use, within so much memory.
pub(crate) fn register(registry: &mut dyn FunctionRegistry, memory: u64) -> Result<()> {
    datafusion_functions_json::register_all(registry)?;
    for part in [Part::Changes, Part::Arrays] {
        registry.register_udf(Arc::new(ScalarUDF::from(Differences::new(part))))?;
    }
    registry.register_udf(Arc::new(ScalarUDF::from(Tag::new())))?;
    crate::sizes::bound(registry, memory)
}

/// The forms in which two texts may come.
fn two_texts() -> Signature {
    let texts = |kind: DataType| TypeSignature::Exact(vec![kind.clone(), kind]);
    let forms = [DataType::Utf8View, DataType::Utf8, DataType::LargeUtf8].map(texts);
    Signature::one_of(forms.to_vec(), Volatility::Immutable)
}

/// Two columns of texts, as one form.
fn texts(args: &ScalarFunctionArgs) -> Result<(StringViewArray, StringViewArray)> {
    let text = |at: usize| -> Result<StringViewArray> {
        let array = cast(&args.args[at].to_array(args.number_rows)?, &DataType::Utf8View)?;
        Ok(array.as_string_view().clone())
    };
    Ok((text(0)?, text(1)?))
}

/// Which half of what is told of two images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// Every place that differs.
    Changes,
    /// The arrays that differ, whole.
    Arrays,
}

/// What differs between two images, as change files have it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Differences {
    part: Part,
    signature: Signature,
}

impl Differences {
    fn new(part: Part) -> Self {
        Self { part, signature: two_texts() }
    }
}

impl ScalarUDFImpl for Differences {
    fn name(&self) -> &str {
        match self.part {
            Part::Changes => "differences",
            Part::Arrays => "differing_arrays",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, texts: &[DataType]) -> Result<DataType> {
        Ok(texts.first().cloned().unwrap_or(DataType::Utf8View))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let (before, after) = texts(&args)?;
        let mut out = StringViewBuilder::with_capacity(rows);
        for row in 0..rows {
            if before.is_null(row) || after.is_null(row) {
                out.append_null();
                continue;
            }
            let Told { changes, arrays } = told(before.value(row), after.value(row))?;
            match self.part {
                Part::Changes => out.append_value(changes),
                Part::Arrays => out.append_option(arrays),
            }
        }
        Ok(ColumnarValue::Array(cast(&out.finish(), args.return_type())?))
    }
}

fn told(before: &str, after: &str) -> Result<Told> {
    let read = |text: &str| -> Result<Value> {
        // No word of the text itself: it may be a secret.
        serde_json::from_str(text).map_err(|error| {
            DataFusionError::Execution(format!(
                "differences: not JSON, line {} column {}",
                error.line(),
                error.column()
            ))
        })
    };
    Ok(tell(&differences(&read(before)?, &read(after)?)))
}

/// A JSON text in which nothing is left of what is sealed but that it is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Unsealed {
    signature: Signature,
}

/// `column`, with `(sealed)` in the place of every sealed value in it.
pub(crate) fn unsealed(column: Expr) -> Expr {
    let texts = |kind: DataType| TypeSignature::Exact(vec![kind]);
    let forms = [DataType::Utf8View, DataType::Utf8, DataType::LargeUtf8].map(texts);
    let signature = Signature::one_of(forms.to_vec(), Volatility::Immutable);
    ScalarUDF::from(Unsealed { signature }).call(vec![column])
}

impl ScalarUDFImpl for Unsealed {
    fn name(&self) -> &'static str {
        "unsealed"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, texts: &[DataType]) -> Result<DataType> {
        Ok(texts.first().cloned().unwrap_or(DataType::Utf8View))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let array = cast(&args.args[0].to_array(rows)?, &DataType::Utf8View)?;
        let values = array.as_string_view();
        if !values.iter().flatten().any(|text| text.contains(SEALED)) {
            return Ok(args.args[0].clone());
        }
        let mut out = StringViewBuilder::with_capacity(rows);
        values.iter().for_each(|text| out.append_option(text.map(without_seals)));
        Ok(ColumnarValue::Array(cast(&out.finish(), args.return_type())?))
    }
}

/// What is in a place that nobody may look into.
const HIDDEN: &str = "(sealed)";

fn without_seals(text: &str) -> std::borrow::Cow<'_, str> {
    use serde_json::Value as Json;
    fn strip(value: &mut Json) {
        match value {
            Json::Object(members) if members.len() == 1 && members.contains_key(SEALED) => *value = HIDDEN.into(),
            Json::Object(members) => members.values_mut().for_each(strip),
            Json::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    if !text.contains(SEALED) {
        return text.into();
    }
    match serde_json::from_str::<Json>(text) {
        Ok(mut value) => {
            strip(&mut value);
            value.to_string().into()
        }
        // What cannot be looked through is not shown.
        Err(_) => HIDDEN.into(),
    }
}

/// The value of a tag of a resource, whichever way its source writes tags.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Tag {
    signature: Signature,
}

impl Tag {
    fn new() -> Self {
        Self { signature: two_texts() }
    }
}

impl ScalarUDFImpl for Tag {
    fn name(&self) -> &'static str {
        "tag"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, texts: &[DataType]) -> Result<DataType> {
        Ok(texts.first().cloned().unwrap_or(DataType::Utf8View))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let (properties, names) = texts(&args)?;
        let mut out = StringViewBuilder::with_capacity(rows);
        for row in 0..rows {
            let given = !properties.is_null(row) && !names.is_null(row);
            let read = given.then(|| serde_json::from_str(properties.value(row)).ok()).flatten();
            out.append_option(read.as_ref().and_then(|read| tag(read, names.value(row))));
        }
        Ok(ColumnarValue::Array(cast(&out.finish(), args.return_type())?))
    }
}

/// Members that tags are kept in: a map, or a list of names and values.
const TAGS: [&str; 6] = ["tags", "Tags", "tagSet", "TagSet", "tags_all", "labels"];
const NAMES: [&str; 5] = ["Key", "key", "TagKey", "tagKey", "name"];
const VALUES: [&str; 4] = ["Value", "value", "TagValue", "tagValue"];

fn tag(properties: &serde_json::Value, name: &str) -> Option<String> {
    use serde_json::Value as Json;
    let text = |value: &Json| match value {
        Json::String(text) => text.clone(),
        other if other.get(SEALED).is_some() => HIDDEN.to_owned(),
        other => other.to_string(),
    };
    let member = |item: &Json, names: &[&str]| names.iter().find_map(|name| item.get(*name)).map(&text);
    let inside = |tags: &Json| match tags {
        Json::Object(map) => map.get(name).map(&text),
        Json::Array(list) => {
            let found = list.iter().find(|item| member(item, &NAMES).as_deref() == Some(name))?;
            member(found, &VALUES)
        }
        _ => None,
    };
    let around = [Some(properties), properties.get("metadata")];
    around.into_iter().flatten().find_map(|holder| TAGS.iter().find_map(|tags| holder.get(*tags).and_then(inside)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tag_is_found_however_its_source_writes_tags() {
        for (properties, expected) in [
            (json!({"tags": {"team": "a"}}), Some("a")),
            (json!({"Tags": [{"Key": "env", "Value": "x"}, {"Key": "team", "Value": "b"}]}), Some("b")),
            (json!({"tagSet": [{"key": "team", "value": "c"}]}), Some("c")),
            (json!({"tags": [{"TagKey": "team", "TagValue": "d"}]}), Some("d")),
            (json!({"metadata": {"labels": {"team": "e"}}}), Some("e")),
            (json!({"tags": {"team": {"$sealed": "0123"}}}), Some("(sealed)")),
            (json!({"tags": {"team": 7}}), Some("7")),
            (json!({"tags": {"Team": "f"}}), None),
            (json!({"tags": "team"}), None),
            (json!({"tags": null, "Tags": {"team": "g"}}), Some("g")),
            (json!([1]), None),
        ] {
            assert_eq!(tag(&properties, "team").as_deref(), expected, "{properties}");
        }
    }

    #[test]
    fn nothing_is_left_of_a_seal_but_that_there_is_one() {
        for (text, told) in [
            (r#"{"a":{"$sealed":"0123"},"b":[{"$sealed":"4567"},1.50]}"#, r#"{"a":"(sealed)","b":["(sealed)",1.5]}"#),
            (r#"{"$sealed":"0123"}"#, r#""(sealed)""#),
            (r#"{"a":1.50}"#, r#"{"a":1.50}"#),
            (r#"{"$sealed":"0123""#, "(sealed)"),
        ] {
            assert_eq!(without_seals(text), told);
        }
    }

    #[test]
    fn differences_are_told_as_change_files_have_them() {
        let found = told(r#"{"a": 1, "b": [1, 2]}"#, r#"{"a": 2, "b": [2, 1]}"#).expect("both are JSON");
        assert!(found.changes.contains(r#""path":"/a""#), "{}", found.changes);
        assert!(found.arrays.is_some_and(|arrays| arrays.contains(r#""path":"/b""#)));
        let error = told("{secret", "{}").expect_err("this is not JSON").to_string();
        assert!(error.contains("line 1") && !error.contains("secret"), "{error}");
    }
}
