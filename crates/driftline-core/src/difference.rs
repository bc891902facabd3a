//! Two images of one resource, as the list of what differs before any rule is asked.
//!
//! Objects are looked into, arrays are not: whether their order counts is for a rule to say. Comparing what such a
//! list tells of both sides finds the same changes as comparing the whole images, because members that are equal
//! on both sides never differ under any rule. Change files and views keep it as [`Told`].

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::{Change, compare};
use crate::pointer::{Pointer, PointerError};
use crate::rule::Applicable;
use crate::seal::is_sealed;
use crate::value::{Value, write_json_string};

/// The places where two values differ.
pub fn differences(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    walk(before, after, &mut Pointer::root(), &mut found);
    found
}

fn walk(before: &Value, after: &Value, path: &mut Pointer, found: &mut Vec<Change>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(left), Value::Object(right)) if !is_sealed(before) && !is_sealed(after) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                path.push(name.as_str());
                match (left.get(name), right.get(name)) {
                    (Some(left), Some(right)) => walk(left, right, path, found),
                    (left, right) => {
                        found.push(Change { path: path.clone(), expected: left.cloned(), actual: right.cloned() });
                    }
                }
                path.pop();
            }
        }
        _ => found.push(Change { path: path.clone(), expected: Some(before.clone()), actual: Some(after.clone()) }),
    }
}

/// The image after, from the image before and what differs.
pub fn redo(before: &Value, changes: &[Change]) -> Value {
    let mut value = before.clone();
    for change in changes {
        change.path.set(&mut value, change.actual.clone());
    }
    value
}

/// The image before, from the image after and what differs.
pub fn undo(after: &Value, changes: &[Change]) -> Value {
    let mut value = after.clone();
    for change in changes {
        change.path.set(&mut value, change.expected.clone());
    }
    value
}

/// Both sides, with only what differs and the objects around it.
pub fn sides(changes: &[Change]) -> (Value, Value) {
    let side = |pick: fn(&Change) -> &Option<Value>| {
        let mut value = Value::Object(BTreeMap::new());
        for change in changes {
            // The objects around a difference are there on both sides, or it would lie further up.
            change.path.set(&mut value, Some(Value::Null));
            change.path.set(&mut value, pick(change).clone());
        }
        value
    };
    (side(|change| &change.expected), side(|change| &change.actual))
}

/// A list as it is kept: ready to be reported where no rule has a say, and whole where one has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Every change down to its leaf, arrays index by index, as JSON in the form that reports print.
    pub changes: Box<str>,
    /// The arrays that differ, whole; `None` when there are none.
    pub arrays: Option<Box<str>>,
}

/// How a list is kept.
pub fn tell(list: &[Change]) -> Told {
    let is_array =
        |change: &&Change| matches!((&change.expected, &change.actual), (Some(Value::Array(_)), Some(Value::Array(_))));
    let mut leaves = Vec::with_capacity(list.len());
    for change in list {
        match (&change.expected, &change.actual) {
            (Some(before @ Value::Array(_)), Some(after @ Value::Array(_))) => {
                let inside = compare(before, after, &Applicable::default()).changes;
                leaves.extend(inside.into_iter().map(|leaf| Change { path: change.path.join(&leaf.path), ..leaf }));
            }
            _ => leaves.push(change.clone()),
        }
    }
    let arrays: Vec<Change> = list.iter().filter(is_array).cloned().collect();
    Told { changes: to_json(&leaves).into(), arrays: (!arrays.is_empty()).then(|| to_json(&arrays).into()) }
}

/// The list again, from both parts of what is kept of it.
pub fn retell(changes: Vec<Change>, arrays: Vec<Change>) -> Vec<Change> {
    let in_an_array = |change: &Change| arrays.iter().any(|array| change.path.is_within(&array.path));
    let mut list: Vec<Change> = changes.into_iter().filter(|change| !in_an_array(change)).collect();
    list.extend(arrays);
    list.sort_by(|a, b| a.path.cmp(&b.path));
    list
}

/// How a change is called in every report.
pub fn operation(change: &Change) -> &'static str {
    match (&change.expected, &change.actual) {
        (None, _) => "add",
        (_, None) => "remove",
        _ => "replace",
    }
}

/// A list as JSON, in the form that reports print.
pub fn to_json(changes: &[Change]) -> String {
    let mut out = String::from("[");
    for (at, change) in changes.iter().enumerate() {
        out.push_str(if at == 0 { "{\"path\":" } else { ",{\"path\":" });
        write_json_string(&change.path.to_string(), &mut out);
        out.push_str(",\"op\":\"");
        out.push_str(operation(change));
        out.push('"');
        for (name, value) in [(",\"baseline\":", &change.expected), (",\"current\":", &change.actual)] {
            if let Some(value) = value {
                out.push_str(name);
                out.push_str(&value.to_json());
            }
        }
        out.push('}');
    }
    out.push(']');
    out
}

/// A list from the JSON that [`to_json`] made, already parsed; `None` when it is something else.
pub fn from_value(value: &Value) -> Option<Vec<Change>> {
    let change = |value: &Value| {
        let path: Result<Pointer, PointerError> = value.get("path")?.as_str()?.parse();
        Some(Change {
            path: path.ok()?,
            expected: value.get("baseline").cloned(),
            actual: value.get("current").cloned(),
        })
    };
    value.as_array()?.iter().map(change).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::tests::any_value;
    use crate::compare::compare;
    use crate::rule::{Applicable, Origin, Rule, RuleBook, RuleKind, Subject};

    fn object() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[a-c]", any_value(), 0..4).prop_map(Value::Object)
    }

    proptest! {
        #[test]
        fn what_differs_is_enough_to_go_back_and_forth(a in object(), b in object()) {
            let found = differences(&a, &b);
            prop_assert_eq!(&redo(&a, &found), &b);
            prop_assert_eq!(&undo(&b, &found), &a);
            prop_assert_eq!(a == b, found.is_empty());
        }

        #[test]
        fn both_sides_of_what_differs_compare_like_the_whole(a in object(), b in object()) {
            let bags = RuleBook::new(vec![Rule {
                subject: Subject::default(),
                path: "/**".parse().unwrap(),
                kind: RuleKind::Unordered,
                origin: Origin::Builtin,
                reason: "a test says so".into(),
            }]);
            let (left, right) = sides(&differences(&a, &b));
            for rules in [Applicable::default(), Applicable::all(&bags)] {
                prop_assert_eq!(compare(&left, &right, &rules), compare(&a, &b, &rules));
            }
        }

        #[test]
        fn the_text_of_a_list_reads_back(a in object(), b in object()) {
            let found = differences(&a, &b);
            let told = tell(&found);
            let read = |text: &str| from_value(&serde_json::from_str(text).unwrap()).unwrap();
            let changes = read(&told.changes);
            prop_assert_eq!(&changes, &compare(&a, &b, &Applicable::default()).changes);
            let mut found = found;
            found.sort_by(|a, b| a.path.cmp(&b.path));
            prop_assert_eq!(retell(changes, told.arrays.as_deref().map(read).unwrap_or_default()), found);
        }
    }
}
