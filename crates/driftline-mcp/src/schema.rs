//! JSON schemas, put together from a few words.

use serde_json::{Map, Value, json};

pub type Object = Map<String, Value>;

pub fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

pub fn whole(about: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": about})
}

pub fn yes_or_no(about: &str) -> Value {
    json!({"type": "boolean", "description": about})
}

pub fn one_of(about: &str, values: &[&str]) -> Value {
    json!({"type": "string", "enum": values, "description": about})
}

pub fn list(of: &Value, about: &str) -> Value {
    json!({"type": "array", "items": of, "description": about})
}

/// An object with these members, of which the first so many are always there.
pub fn object(about: &str, required: usize, members: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = members.iter().take(required).map(|(name, _)| *name).collect();
    let members: Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "description": about, "properties": members, "required": names})
}

/// What a tool takes: these members and no others.
pub fn input(required: usize, members: &[(&str, Value)]) -> Object {
    let mut schema = object("", required, members);
    schema["additionalProperties"] = false.into();
    into_object(schema)
}

/// What a tool gives: these members, what was left out, and what there is to say beside it.
pub fn output(required: usize, members: &[(&str, Value)]) -> Object {
    let mut all = members.to_vec();
    all.push(("truncated", list(&text("where, and how much there is"), "what was left out to keep the answer short")));
    all.push(("warnings", list(&text("one remark"), "what makes the answer less than it seems, e.g. stale sources")));
    into_object(object("", required, &all))
}

fn into_object(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}
