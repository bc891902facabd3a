//! JSON in text, and IAM policies in the one form in which equal policies are equal.

use std::collections::BTreeMap;

use driftline_core::{Pointer, Value};

use super::Found;

/// Both sides as JSON values, where at least one is JSON in text and what it holds can be compared with the other.
pub(super) fn opened(declared: &Value, live: &Value, known: impl Fn() -> bool) -> Option<(Value, Value)> {
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
        (Value::Object(_) | Value::Array(_), Value::String(_)) if is_container(live) || known() => {
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

/// Compares two policies. Every difference is told where the declared policy has it.
pub(super) fn compare(path: &mut Pointer, declared: &Value, live: &Value, found: &mut Found) {
    let (Value::Object(left), Value::Object(right)) = (declared, live) else {
        found.differ(path, Some(declared), Some(live));
        return;
    };
    for (name, value) in left {
        path.push(name.as_str());
        match right.get(name) {
            Some(other) if name == "Statement" => statements(path, value, other, found),
            Some(other) if other == value => {}
            None if value.as_str() == Some("") => {}
            other => found.differ(path, Some(value), other),
        }
        path.pop();
    }
}

fn statements(path: &mut Pointer, declared: &Value, live: &Value, found: &mut Found) {
    let (left, right) = (items(declared), items(live));
    let forms =
        |statements: &[&Value]| -> Vec<Value> { statements.iter().map(|one| statement((*one).clone())).collect() };
    let (left_forms, right_forms) = (forms(&left), forms(&right));
    let mut taken = vec![false; right.len()];
    let mut pairs: Vec<Option<usize>> = vec![None; left.len()];
    for (l, form) in left_forms.iter().enumerate() {
        if let Some(r) = (0..right.len()).find(|r| !taken[*r] && right_forms[*r] == *form) {
            (pairs[l], taken[r]) = (Some(r), true);
        }
    }
    // Of the rest, those that have most in common belong together; a name in common goes before all.
    let alike = |l: usize, r: usize| {
        let (Value::Object(left), Value::Object(right)) = (&left_forms[l], &right_forms[r]) else { return 0 };
        let shared = left.iter().filter(|(name, value)| right.get(*name) == Some(value)).count();
        let named = left.contains_key("Sid") && left.get("Sid") == right.get("Sid");
        shared + if named { 100 } else { 0 }
    };
    let mut open: Vec<(usize, usize, usize)> = (0..left.len())
        .filter(|l| pairs[*l].is_none())
        .flat_map(|l| (0..right.len()).map(move |r| (l, r)))
        .filter(|(_, r)| !taken[*r])
        .map(|(l, r)| (alike(l, r), l, r))
        .collect();
    open.sort_by_key(|(alike, l, r)| (std::cmp::Reverse(*alike), *l, *r));
    for (_, l, r) in open {
        if pairs[l].is_none() && !taken[r] {
            (pairs[l], taken[r]) = (Some(r), true);
        }
    }
    let single = declared.as_array().is_none();
    for (l, pair) in pairs.iter().enumerate() {
        if !single {
            path.push(l.to_string());
        }
        match pair {
            Some(r) if left_forms[l] == right_forms[*r] => {}
            Some(r) => members(path, left[l], right[*r], found),
            None => found.differ(path, Some(left[l]), None),
        }
        if !single {
            path.pop();
        }
    }
    for r in (0..right.len()).filter(|r| !taken[*r]) {
        path.push(r.to_string());
        found.differ(path, None, Some(right[r]));
        path.pop();
    }
}

fn members(path: &mut Pointer, declared: &Value, live: &Value, found: &mut Found) {
    let (Value::Object(left), Value::Object(right)) = (declared, live) else {
        found.differ(path, Some(declared), Some(live));
        return;
    };
    let empty = |name: &str, value: &Value| name == "Sid" && value.as_str() == Some("");
    for (name, value) in left {
        let other = right.get(name);
        let same = other.is_some_and(|other| member(name, value.clone()) == member(name, other.clone()));
        if same || (other.is_none() && empty(name, value)) {
            continue;
        }
        path.push(name.as_str());
        match (name.as_str(), other) {
            (name, Some(other)) if LISTS.contains(&name) => texts_of(path, name, value, other, found),
            ("Principal" | "NotPrincipal" | "Condition", Some(other)) => nested(path, value, other, found),
            (_, other) => found.differ(path, Some(value), other),
        }
        path.pop();
    }
    for (name, value) in right.iter().filter(|(name, value)| !left.contains_key(*name) && !empty(name, value)) {
        path.push(name.as_str());
        found.differ(path, None, Some(value));
        path.pop();
    }
}

/// A principal or a condition, one name after the other.
fn nested(path: &mut Pointer, declared: &Value, live: &Value, found: &mut Found) {
    let (Value::Object(left), Value::Object(right)) = (declared, live) else {
        found.differ(path, Some(declared), Some(live));
        return;
    };
    for (name, value) in left {
        let other = right.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, other)| other);
        path.push(name.as_str());
        match other {
            Some(other @ Value::Object(_)) => nested(path, value, other, found),
            Some(other) => texts_of(path, if name == "AWS" { "AWS" } else { "" }, value, other, found),
            None => found.differ(path, Some(value), None),
        }
        path.pop();
    }
    for (name, value) in right.iter().filter(|(name, _)| !left.keys().any(|other| other.eq_ignore_ascii_case(name))) {
        path.push(name.as_str());
        found.differ(path, None, Some(value));
        path.pop();
    }
}

/// A text, or texts in any order.
fn texts_of(path: &mut Pointer, name: &str, declared: &Value, live: &Value, found: &mut Found) {
    let form = |item: &Value| member_text(name, texts(item.clone()));
    let (left, right) = (items(declared), items(live));
    let single = declared.as_array().is_none();
    for (at, item) in left.iter().enumerate() {
        if right.iter().any(|other| form(other) == form(item)) {
            continue;
        }
        // One for one, it is the same text that changed.
        let other = (left.len() == 1 && right.len() == 1).then(|| right[0]);
        if !single {
            path.push(at.to_string());
        }
        found.differ(path, Some(item), other);
        if !single {
            path.pop();
        }
    }
    let replaced = left.len() == 1 && right.len() == 1;
    for (at, item) in right.iter().enumerate().filter(|_| !replaced) {
        if left.iter().any(|other| form(other) == form(item)) {
            continue;
        }
        path.push(at.to_string());
        found.differ(path, None, Some(item));
        path.pop();
    }
}

fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    }
}

fn member_text(name: &str, value: Value) -> Value {
    match value {
        // Actions are written in any capitals.
        Value::String(text) if name.ends_with("Action") => Value::String(text.to_lowercase()),
        Value::String(text) if name == "AWS" => Value::String(account(&text)),
        other => other,
    }
}

/// A statement with every choice of form made.
fn statement(statement: Value) -> Value {
    let Value::Object(members) = statement else { return statement };
    let kept = members.into_iter().filter(|(name, value)| name != "Sid" || value.as_str() != Some(""));
    Value::Object(kept.map(|(name, value)| (name.clone(), member(&name, value))).collect())
}

fn member(name: &str, value: Value) -> Value {
    match name {
        name if LISTS.contains(&name) => sorted(value, |item| member_text(name, item)),
        "Principal" | "NotPrincipal" => principal(value),
        "Condition" => condition(value),
        _ => value,
    }
}

fn principal(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let member = |(name, value): (String, Value)| {
                let value = sorted(value, |item| member_text(&name, item));
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
                let key = |(name, value): (String, Value)| (name.to_lowercase(), sorted(texts(value), |item| item));
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

fn sorted(value: Value, form: impl Fn(Value) -> Value) -> Value {
    let mut items: Vec<Value> = listed(value).into_iter().map(form).collect();
    items.sort();
    items.dedup();
    Value::Array(items)
}
