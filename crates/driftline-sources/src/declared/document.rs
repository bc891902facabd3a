//! JSON in text, and IAM policies in the one form in which equal policies are equal.

use std::collections::BTreeMap;

use driftline_core::Value;

/// Both sides as JSON values, where at least one is JSON in text and what it holds can be compared with the other.
pub(super) fn opened(declared: &Value, live: &Value, known: bool) -> Option<(Value, Value)> {
    let parsed = |value: &Value| match value {
        Value::String(text) => parse(text),
        _ => None,
    };
    match (declared, live) {
        (Value::String(_), Value::String(_)) => {
            let (left, right) = (parsed(declared)?, parsed(live)?);
            Some((left, right))
        }
        (Value::String(_), Value::Object(_) | Value::Array(_)) => Some((parsed(declared)?, live.clone())),
        (Value::Object(_) | Value::Array(_), Value::String(_)) if known || is_container(live) => {
            Some((declared.clone(), parsed(live)?))
        }
        _ => None,
    }
}

fn is_container(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim_start().starts_with(['{', '[', '%']))
}

/// A text that is a JSON object or array, also with its signs written for an address.
fn parse(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    let decoded;
    let trimmed = match trimmed.starts_with("%7B") || trimmed.starts_with("%5B") {
        true => {
            decoded = percent_decoded(trimmed)?;
            decoded.as_str()
        }
        false => trimmed,
    };
    if !trimmed.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(trimmed).ok()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let pair = [rest.next()?, rest.next()?];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
            }
            b'+' => bytes.push(b' '),
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a value has the shape of a policy: statements that have an effect.
pub(super) fn is_policy(value: &Value) -> bool {
    let has_effect = |statement: &Value| statement.get("Effect").is_some();
    match value.get("Statement") {
        Some(Value::Array(statements)) => !statements.is_empty() && statements.iter().all(has_effect),
        Some(statement) => has_effect(statement),
        None => false,
    }
}

/// Members of a statement that are a text or a list of texts in any order.
const LISTS: &[&str] = &["Action", "NotAction", "Resource", "NotResource"];

/// The policy with every choice of form made: lists for single texts, sorted, account ids as root ARNs, no empty ids.
pub(super) fn canonical(policy: &Value) -> Value {
    let Value::Object(members) = policy else { return policy.clone() };
    let mut members = members.clone();
    if let Some(statements) = members.remove("Statement") {
        let mut statements: Vec<Value> = listed(statements).into_iter().map(statement).collect();
        statements.sort();
        members.insert("Statement".into(), Value::Array(statements));
    }
    if members.get("Id").and_then(Value::as_str) == Some("") {
        members.remove("Id");
    }
    Value::Object(members)
}

fn statement(statement: Value) -> Value {
    let Value::Object(members) = statement else { return statement };
    let mut canonical = BTreeMap::new();
    for (name, value) in members {
        let value = match name.as_str() {
            "Sid" if value.as_str() == Some("") => continue,
            name if LISTS.contains(&name) => sorted(value, |text| {
                // Actions are written in any capitals.
                if name.ends_with("Action") { text.to_lowercase() } else { text }
            }),
            "Principal" | "NotPrincipal" => principal(value),
            "Condition" => condition(value),
            _ => value,
        };
        canonical.insert(name, value);
    }
    Value::Object(canonical)
}

fn principal(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let member = |(name, value): (String, Value)| {
                let value = sorted(value, |text| if name == "AWS" { account(&text) } else { text });
                (name, value)
            };
            Value::Object(members.into_iter().map(member).collect())
        }
        // Everyone, in two forms.
        Value::String(text) if text == "*" => {
            Value::Object(BTreeMap::from([("AWS".to_owned(), Value::Array(vec![Value::String(text)]))]))
        }
        other => other,
    }
}

/// An account is also written as its root.
fn account(text: &str) -> String {
    let id = text.strip_suffix(":root").and_then(|arn| arn.rsplit("::").next()).unwrap_or(text);
    if id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_digit()) { id.to_owned() } else { text.to_owned() }
}

fn condition(value: Value) -> Value {
    let Value::Object(operators) = value else { return value };
    let operator = |(name, value): (String, Value)| {
        let value = match value {
            Value::Object(keys) => {
                let key = |(name, value): (String, Value)| (name.to_lowercase(), sorted(texts(value), |text| text));
                Value::Object(keys.into_iter().map(key).collect())
            }
            other => other,
        };
        (name, value)
    };
    Value::Object(operators.into_iter().map(operator).collect())
}

/// Truth values and numbers in conditions are texts, too.
fn texts(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(texts).collect()),
        Value::Bool(_) | Value::Number(_) => Value::String(value.to_json()),
        other => other,
    }
}

fn listed(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        other => vec![other],
    }
}

fn sorted(value: Value, form: impl Fn(String) -> String) -> Value {
    let mut items: Vec<Value> = listed(value)
        .into_iter()
        .map(|item| match item {
            Value::String(text) => Value::String(form(text)),
            other => other,
        })
        .collect();
    items.sort();
    items.dedup();
    Value::Array(items)
}
