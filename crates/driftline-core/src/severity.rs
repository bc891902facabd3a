//! How much a difference matters, and the single values by which that is judged.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::compare::Change;
use crate::pointer::Pointer;
use crate::seal::is_sealed;
use crate::value::Value;

/// In ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    Low,
    Medium,
    High,
    Critical,
}

impl Severity {
    /// The worst first, as reports list them.
    pub const ALL: [Severity; 5] =
        [Severity::Critical, Severity::High, Severity::Medium, Severity::Low, Severity::Info];

    pub fn name(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
            Severity::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is none of the five.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a severity: they are critical, high, medium, low and info")]
pub struct SeverityError(String);

impl FromStr for Severity {
    type Err = SeverityError;

    fn from_str(text: &str) -> Result<Self, SeverityError> {
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| SeverityError(text.to_owned()))
    }
}

/// One value that differs; absence is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf<'a> {
    pub path: Pointer,
    pub expected: Option<&'a Value>,
    pub actual: Option<&'a Value>,
}

/// The single values of a change. When a whole object or array came or went, each value in it did.
pub fn leaves(change: &Change) -> Vec<Leaf<'_>> {
    let mut found = Vec::new();
    walk(&mut change.path.clone(), change.expected.as_ref(), change.actual.as_ref(), &mut found);
    found
}

/// Something with members to look at one by one.
fn has_members(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty() && !is_sealed(value),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn walk<'a>(path: &mut Pointer, expected: Option<&'a Value>, actual: Option<&'a Value>, found: &mut Vec<Leaf<'a>>) {
    if expected == actual && expected.is_some() {
        return;
    }
    let fits = |side: Option<&Value>, other: Option<&Value>| match (side, other) {
        (None, Some(other)) => has_members(other),
        (Some(Value::Object(_)), Some(Value::Object(_))) | (Some(Value::Array(_)), Some(Value::Array(_))) => {
            side.is_some_and(has_members) || other.is_some_and(has_members)
        }
        _ => false,
    };
    let sealed = |side: Option<&Value>| side.is_some_and(is_sealed);
    if !(fits(expected, actual) || fits(actual, expected)) || sealed(expected) || sealed(actual) {
        found.push(Leaf { path: path.clone(), expected, actual });
        return;
    }
    let object = |side: Option<&'a Value>| side.and_then(Value::as_object);
    if let (left, right) = (object(expected), object(actual))
        && (left.is_some() || right.is_some())
    {
        let names: BTreeSet<&String> = left.into_iter().chain(right).flat_map(|members| members.keys()).collect();
        for name in names {
            path.push(name.as_str());
            walk(path, left.and_then(|members| members.get(name)), right.and_then(|members| members.get(name)), found);
            path.pop();
        }
        return;
    }
    let items = |side: Option<&'a Value>| side.and_then(Value::as_array).unwrap_or_default();
    let (left, right) = (items(expected), items(actual));
    for at in 0..left.len().max(right.len()) {
        path.push(at.to_string());
        walk(path, left.get(at), right.get(at), found);
        path.pop();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::tests::any_value;

    fn told(expected: Option<&str>, actual: Option<&str>) -> Vec<String> {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let change = Change { path: "/p".parse().unwrap(), expected: expected.map(read), actual: actual.map(read) };
        let side = |value: Option<&Value>| value.map_or_else(|| "-".to_owned(), Value::to_json);
        leaves(&change)
            .iter()
            .map(|leaf| format!("{} {} {}", leaf.path, side(leaf.expected), side(leaf.actual)))
            .collect()
    }

    #[test]
    fn a_change_is_asked_about_value_by_value() {
        for (expected, actual, leaves) in [
            (Some("1"), Some("2"), &["/p 1 2"][..]),
            (None, Some(r#"{"a":{"b":1},"c":[2]}"#), &["/p/a/b - 1", "/p/c/0 - 2"]),
            (Some(r#"{"a":1,"b":2}"#), Some(r#"{"a":1,"b":3}"#), &["/p/b 2 3"]),
            (Some("[1,2]"), Some("[1]"), &["/p/1 2 -"]),
            (Some("[1]"), Some("[]"), &["/p/0 1 -"]),
            (Some("{}"), None, &["/p {} -"]),
            (Some("1"), Some(r#"{"a":1}"#), &[r#"/p 1 {"a":1}"#]),
            (None, None, &["/p - -"]),
        ] {
            assert_eq!(told(expected, actual), leaves, "{expected:?} {actual:?}");
        }
    }

    #[test]
    fn the_order_of_severities_is_that_of_their_names() {
        let names = Severity::ALL.map(Severity::name);
        assert_eq!(names, ["critical", "high", "medium", "low", "info"]);
        assert!(Severity::ALL.is_sorted_by(|a, b| a > b));
        assert_eq!("high".parse(), Ok(Severity::High));
        assert!("HIGH".parse::<Severity>().unwrap_err().to_string().contains("critical, high"));
    }

    proptest! {
        #[test]
        fn what_differs_has_at_least_one_value_that_does(a in any_value(), b in any_value()) {
            let change = Change { path: Pointer::root(), expected: Some(a.clone()), actual: Some(b.clone()) };
            let found = leaves(&change);
            prop_assert_eq!(found.is_empty(), a == b);
            for leaf in found {
                prop_assert_ne!(leaf.expected, leaf.actual);
            }
        }
    }
}
