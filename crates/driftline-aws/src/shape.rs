//! From what a service answers to the members of a document that the normalizers read.

use serde_json::{Map, Value};

/// One member of an item: what it is called, where the answer has it, and what it is.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    /// Names with `/` between; `*` is every item of a list.
    pub from: &'static str,
    pub shape: Shape,
}

#[derive(Clone, Copy, Debug)]
pub enum Shape {
    Text,
    /// A number that XML has as a text.
    Number,
    Bool,
    /// A list of keys and values, as an object.
    Tags,
    /// The value of the tag `Name`.
    NameTag,
    /// A list of texts whose order says nothing.
    Set,
    /// A list as it is.
    List,
    /// How many there are.
    Count,
    /// As it is, with names as documents write them.
    Camel,
    /// Whatever this makes of the whole item.
    With(fn(&Value) -> Value),
}

pub const fn field(name: &'static str, from: &'static str, shape: Shape) -> Field {
    Field { name, from, shape }
}

/// An item as a document has it. What the answer does not have, the item does not have.
pub fn item(answer: &Value, fields: &[Field]) -> Value {
    let mut members = Map::new();
    for field in fields {
        let value = match field.shape {
            Shape::With(make) => make(answer),
            shape => take(answer, field.from, shape),
        };
        if !value.is_null() {
            members.insert(field.name.to_owned(), value);
        }
    }
    Value::Object(members)
}

fn take(answer: &Value, from: &str, shape: Shape) -> Value {
    match shape {
        Shape::Text => at(answer, from).map_or(Value::Null, text),
        Shape::Number => at(answer, from).map_or(Value::Null, number),
        Shape::Bool => at(answer, from).map_or(Value::Null, boolean),
        Shape::Tags => tags(at(answer, from)),
        Shape::NameTag => tags(at(answer, from)).get("Name").cloned().unwrap_or(Value::Null),
        Shape::Set => {
            let mut found: Vec<Value> = all(answer, from).into_iter().map(text).collect();
            found.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            Value::Array(found)
        }
        Shape::List => Value::Array(all(answer, from).into_iter().map(camel).collect()),
        Shape::Count => Value::from(all(answer, from).len()),
        Shape::Camel => at(answer, from).map_or(Value::Null, camel),
        Shape::With(make) => make(answer),
    }
}

/// The value at a path of names. A text that is empty is how XML writes that there is nothing.
pub fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let found = path.split('/').filter(|name| !name.is_empty()).try_fold(value, |at, name| at.get(name))?;
    (!found.is_null() && found.as_str() != Some("")).then_some(found)
}

pub fn text_at<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    at(value, path).and_then(Value::as_str)
}

/// Every value at a path; `*` follows every item of a list. An empty list may be an empty text in XML.
pub fn all<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut level = vec![value];
    for name in path.split('/').filter(|name| !name.is_empty()) {
        level = match name {
            "*" => level.into_iter().filter_map(Value::as_array).flatten().collect(),
            name => level.into_iter().filter_map(|at| at.get(name)).collect(),
        };
    }
    level.into_iter().filter(|found| !found.is_null() && found.as_str() != Some("")).collect()
}

pub fn text(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        Value::Null => Value::Null,
        other => Value::String(other.to_string()),
    }
}

pub fn number(value: &Value) -> Value {
    match value {
        Value::String(text) => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(whole), _) => Value::from(whole),
            (_, Ok(real)) => Value::from(real),
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

pub fn boolean(value: &Value) -> Value {
    match value.as_str() {
        Some("true") => Value::Bool(true),
        Some("false") => Value::Bool(false),
        _ => value.clone(),
    }
}

/// `[{"Key": "a", "Value": "1"}]` as `{"a": "1"}`; an object is one already.
pub fn tags(value: Option<&Value>) -> Value {
    let mut found = Map::new();
    match value {
        Some(Value::Array(items)) => {
            for item in items {
                let member = |names: [&str; 3]| names.iter().find_map(|name| item.get(*name));
                let (key, value) = (member(["key", "Key", "TagKey"]), member(["value", "Value", "TagValue"]));
                if let Some(key) = key.and_then(Value::as_str) {
                    found.insert(key.to_owned(), value.map_or_else(|| Value::String(String::new()), text));
                }
            }
        }
        Some(Value::Object(members)) => return Value::Object(members.clone()),
        _ => {}
    }
    Value::Object(found)
}

/// `VpcId` is `vpcId` in a document, at every depth.
pub fn camel(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(camel).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (camel_name(name), camel(value))).collect())
        }
        other => other.clone(),
    }
}

/// Capitals at the start become small, but for the last one before a small letter: `DBInstanceClass`, `KMSKeyId`.
pub fn camel_name(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let capitals = chars.iter().take_while(|char| char.is_ascii_uppercase()).count();
    let small = match capitals {
        0 | 1 => capitals,
        all if all == chars.len() => all,
        several => several - 1,
    };
    let lower = chars.iter().take(small).map(char::to_ascii_lowercase);
    lower.chain(chars.iter().skip(small).copied()).collect()
}

/// A JSON document that a service hands out as a text, percent-encoded or not.
pub fn document(value: &Value) -> Value {
    let Some(text) = value.as_str() else { return value.clone() };
    let decoded = if text.starts_with('%') { percent_decoded(text) } else { text.to_owned() };
    serde_json::from_str(&decoded).unwrap_or(Value::String(decoded))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_written_as_documents_write_them() {
        for (from, to) in [
            ("VpcId", "vpcId"),
            ("DBInstanceClass", "dbInstanceClass"),
            ("KMSKeyId", "kmsKeyId"),
            ("ARN", "arn"),
            ("already", "already"),
        ] {
            assert_eq!(camel_name(from), to);
        }
        assert_eq!(camel(&json!({"A": [{"BcD": 1}]})), json!({"a": [{"bcD": 1}]}));
    }

    #[test]
    fn what_the_answer_does_not_have_the_item_does_not_have() {
        let fields = [
            field("id", "vpcId", Shape::Text),
            field("size", "size", Shape::Number),
            field("on", "on", Shape::Bool),
            field("gone", "gone", Shape::Text),
            field("tags", "tagSet", Shape::Tags),
            field("ids", "set/*/id", Shape::Set),
        ];
        let answer = json!({"vpcId": "v", "size": "12", "on": "true", "gone": "", "tagSet": "", "set": [{"id": "b"}, {"id": "a"}]});
        let expected = json!({"id": "v", "size": 12, "on": true, "tags": {}, "ids": ["a", "b"]});
        assert_eq!(item(&answer, &fields), expected);
    }

    #[test]
    fn tags_come_in_several_spellings() {
        let expected = json!({"a": "1", "b": ""});
        assert_eq!(tags(Some(&json!([{"key": "a", "value": "1"}, {"key": "b"}]))), expected);
        assert_eq!(tags(Some(&json!([{"Key": "a", "Value": "1"}, {"Key": "b", "Value": ""}]))), expected);
    }

    #[test]
    fn documents_inside_of_answers_are_opened() {
        let encoded = json!("%7B%22Version%22%3A%222012-10-17%22%7D");
        assert_eq!(document(&encoded), json!({"Version": "2012-10-17"}));
        assert_eq!(document(&json!("not json %")), json!("not json %"));
    }
}
