//! Property transforms: the declared value as the service gives it back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use driftline_core::rule::Transformation;
use driftline_core::{Pointer, Value};
use jsonata::{Expression, Input, Limits, Outcome};
use regex::{Regex, RegexBuilder};

use super::scalar;
use crate::schema::Transform;

/// Evaluates expressions, each parsed once.
#[derive(Debug, Default)]
pub struct Engine {
    limits: Limits,
    parsed: Mutex<HashMap<String, Option<Expression>>>,
    patterns: Mutex<HashMap<String, Option<Regex>>>,
}

impl Engine {
    /// What an expression says of a context. `None` is undefined, or an error: neither ever matches.
    fn evaluate(&self, expression: &str, context: &Value) -> Option<Value> {
        let parsed = {
            let mut known = self.parsed.lock().ok()?;
            match known.get(expression) {
                Some(parsed) => parsed.clone(),
                None => {
                    let parsed = Expression::parse(expression, &self.limits).ok();
                    known.insert(expression.to_owned(), parsed.clone());
                    parsed
                }
            }
        }?;
        let input = Input::new(&serde_json::to_value(context).ok()?, &self.limits).ok()?;
        match parsed.evaluate(&input, &[], &self.limits).ok()? {
            Outcome::Value(value) => serde_json::from_value(value).ok(),
            Outcome::Undefined => None,
        }
    }

    /// Whether live matches a pattern as a whole; what is no pattern matches nothing.
    fn matches(&self, pattern: &str, live: &str) -> bool {
        let Ok(mut known) = self.patterns.lock() else { return false };
        // Most patterns hold a declared value, so there is no end of them.
        if known.len() > MOST_PATTERNS {
            known.clear();
        }
        let compiled = known
            .entry(pattern.to_owned())
            .or_insert_with(|| RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(1 << 20).build().ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(live))
    }
}

const MOST_PATTERNS: usize = 256;

/// No pattern that a declared value was put into may be longer.
const LONGEST_PATTERN: usize = 4096;

/// Which alternative turns what was declared into what is live.
pub(super) fn explains(
    root: &Value,
    path: &Pointer,
    declared: &Value,
    live: Option<&Value>,
    transform: &Transform,
    engine: &Engine,
) -> Option<String> {
    let (leaf, parents) = path.segments().split_last()?;
    let parent = parents.iter().try_fold(root, |value, segment| step(value, segment))?;
    for (number, alternative) in transform.alternatives.iter().enumerate() {
        let from_root = parents.first().is_some_and(|first| names_first(alternative, first));
        let context = if from_root { root } else { parent };
        let mut results = vec![engine.evaluate(alternative, context)];
        // A parameter arrives as a text although the property is a number, and the other way round.
        if let Some(other) = respelled(declared) {
            let (base, at) =
                if from_root { (root, path.clone()) } else { (parent, Pointer::root().child(leaf.as_str())) };
            let mut base = base.clone();
            at.set(&mut base, Some(other));
            results.push(engine.evaluate(alternative, &base));
        }
        for result in results.into_iter().flatten() {
            // A transform of a whole object may give all of the root.
            let inner = path.find(&result).cloned();
            let matches = |result: &Value| same(declared, result, live, engine);
            if matches(&result) || inner.is_some_and(|inner| matches(&inner)) {
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

fn same(declared: &Value, result: &Value, live: Option<&Value>, engine: &Engine) -> bool {
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
    engine.matches(&pattern, live)
}

/// A transform as a rule of any comparison.
#[derive(Debug)]
pub struct TransformRule {
    pub transform: Transform,
    pub engine: Arc<Engine>,
}

impl Transformation for TransformRule {
    fn explains(&self, root: &Value, path: &Pointer, expected: &Value, actual: Option<&Value>) -> bool {
        explains(root, path, expected, actual, &self.transform, &self.engine).is_some()
    }
}
