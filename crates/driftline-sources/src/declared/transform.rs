//! Property transforms: the declared value as the service gives it back.

use driftline_core::{Pointer, Value};
use regex::Regex;

use super::{Options, scalar};
use crate::schema::Transform;

/// Evaluates one expression over a context. `None` is undefined, or an error: neither ever matches.
pub trait Transformer: std::fmt::Debug {
    fn evaluate(&self, expression: &str, context: &Value) -> Option<Value>;
}

/// Where transforms are not evaluated: nothing matches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transforms;

impl Transformer for Transforms {
    fn evaluate(&self, _: &str, _: &Value) -> Option<Value> {
        None
    }
}

/// No pattern that a declared value was put into may be longer.
const LONGEST_PATTERN: usize = 4096;

/// Which alternative turns what was declared into what is live.
pub(super) fn explains(
    root: &Value,
    path: &Pointer,
    declared: &Value,
    live: Option<&Value>,
    transform: &Transform,
    options: &Options<'_>,
) -> Option<String> {
    let (leaf, parents) = path.segments().split_last()?;
    let parent = parents.iter().fold(Some(root), |value, segment| step(value?, segment))?;
    for (number, alternative) in transform.alternatives.iter().enumerate() {
        let from_root = parents.first().is_some_and(|first| names_first(alternative, first));
        let context = if from_root { root } else { parent };
        let mut results = vec![options.transformer.evaluate(alternative, context)];
        // A parameter arrives as a text although the property is a number, and the other way round.
        if let Some(other) = respelled(declared) {
            let (base, at) =
                if from_root { (root, path.clone()) } else { (parent, Pointer::root().child(leaf.as_str())) };
            let mut base = base.clone();
            at.set(&mut base, Some(other));
            results.push(options.transformer.evaluate(alternative, &base));
        }
        for result in results.into_iter().flatten() {
            // A transform of a whole object may give all of the root.
            let inner = path.find(&result).cloned();
            if same(declared, &result, live) || inner.is_some_and(|inner| same(declared, &inner, live)) {
                let weak = !mentions(alternative, leaf);
                let about = if weak { ", which does not look at the value" } else { "" };
                return Some(format!("alternative {}: {alternative}{about}", number + 1));
            }
        }
    }
    None
}

fn step<'v>(value: &'v Value, segment: &str) -> Option<&'v Value> {
    match value {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        other => other.get(segment),
    }
}

/// Whether a path in the expression begins with this name: then it is read from the root.
fn names_first(expression: &str, name: &str) -> bool {
    let mut rest = expression;
    while let Some(at) = rest.find(name) {
        let before = rest[..at].chars().next_back();
        let after = rest[at + name.len()..].chars().next();
        let starts = before.is_none_or(|char| !(char.is_alphanumeric() || "_.$'\"".contains(char)));
        if starts && after == Some('.') {
            return true;
        }
        rest = &rest[at + name.len()..];
    }
    false
}

fn mentions(expression: &str, leaf: &str) -> bool {
    expression.contains(leaf) || leaf.bytes().all(|byte| byte.is_ascii_digit())
}

fn respelled(declared: &Value) -> Option<Value> {
    match declared {
        Value::String(text) => {
            serde_json::from_str::<Value>(text).ok().filter(|value| matches!(value, Value::Number(_)))
        }
        Value::Number(_) => Some(Value::String(declared.to_json())),
        _ => None,
    }
}

fn same(declared: &Value, result: &Value, live: Option<&Value>) -> bool {
    let Some(live) = live else { return scalar::says_nothing(result) };
    if result == live || scalar::same(result, live, None) {
        return true;
    }
    let (Value::String(pattern), Value::String(live)) = (result, live) else { return false };
    // Often the result is a pattern that live has to match as a whole.
    if declared == result || pattern.len() > LONGEST_PATTERN {
        return false;
    }
    let pattern = pattern.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(pattern);
    // `[[]` and `[]]` are one bracket in the dialect they were written for.
    let pattern = pattern.replace("[[]", r"\[").replace("[]]", r"\]");
    Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|regex| regex.is_match(live))
}
