//! Scalars: one meaning in two spellings.

use driftline_core::Value;

use crate::schema::Scalar;

/// Whether two unequal scalars mean the same where the schema has such a scalar, or where any type would.
pub(super) fn same(declared: &Value, live: &Value, kind: Option<Scalar>) -> bool {
    match (declared, live) {
        (Value::String(text), other @ (Value::Number(_) | Value::Bool(_)))
        | (other @ (Value::Number(_) | Value::Bool(_)), Value::String(text)) => spells(text, other),
        (Value::String(a), Value::String(b)) if kind.is_some() => match (number(a), number(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a.eq_ignore_ascii_case(b),
        },
        _ => false,
    }
}

/// Whether a text spells a number or a truth value.
fn spells(text: &str, value: &Value) -> bool {
    match value {
        Value::Bool(truth) => text.eq_ignore_ascii_case(if *truth { "true" } else { "false" }),
        Value::Number(_) => number(text).is_some_and(|number| number == *value),
        _ => false,
    }
}

fn number(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    matches!(value, Value::Number(_)).then_some(value)
}

/// Null, an empty text, list or object, and what holds nothing but such.
pub(super) fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(says_nothing),
        Value::Object(members) => members.values().all(says_nothing),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A text that says itself that it stands for something else: a reference, a hidden parameter, a value left open.
pub(super) fn is_placeholder(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    if !text.starts_with(['_', '*']) && memchr::memchr(b'{', text.as_bytes()).is_none() {
        return false;
    }
    let left_open = text.starts_with("__") && text.ends_with("__") && text.to_lowercase().contains("unresolved");
    let hidden = text.len() >= 4 && text.bytes().all(|byte| byte == b'*');
    left_open || hidden || text.contains("{{resolve:") || text.contains("${Token[")
}

/// Whether what was declared is what is live with its letters beyond ASCII hidden.
pub(super) fn is_masked(declared: &Value, live: &Value) -> bool {
    let (Some(declared), Some(live)) = (declared.as_str(), live.as_str()) else { return false };
    !live.is_ascii() && declared.chars().eq(live.chars().map(|char| if char.is_ascii() { char } else { '?' }))
}
