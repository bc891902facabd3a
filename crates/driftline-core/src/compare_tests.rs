#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::canonical::tests::any_value;
use crate::rule::{Equivalence, Origin, Rule, RuleBook, RuleKind, Subject};

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn rule(kind: RuleKind, path: &str) -> Rule {
    Rule {
        subject: Subject::default(),
        path: path.parse().unwrap(),
        kind,
        origin: Origin::Builtin,
        reason: "a test says so".into(),
    }
}

/// Changes as `path: expected -> actual`, excused ones in brackets.
fn check(expected: &str, actual: &str, rules: Vec<Rule>, differences: &[&str]) {
    let book = RuleBook::new(rules);
    let found = compare(&value(expected), &value(actual), &Applicable::all(&book));
    let show = |change: &Change| {
        let side = |value: &Option<Value>| value.as_ref().map_or("absent".to_owned(), Value::to_json);
        format!("{}: {} -> {}", change.path, side(&change.expected), side(&change.actual))
    };
    let mut shown: Vec<String> = found.changes.iter().map(show).collect();
    shown.extend(
        found
            .excused
            .iter()
            .map(|excused| format!("[{} {}]", book.rules()[excused.rule].kind.name(), excused.change.path)),
    );
    assert_eq!(shown, differences, "{expected} against {actual}");
}

#[test]
fn a_change_is_reported_at_its_leaf() {
    check(r#"{"a":{"b":1}}"#, r#"{"a":{"b":2}}"#, vec![], &["/a/b: 1 -> 2"]);
    check(r#"{"a":1}"#, r#"{"a":1,"b":{"c":2}}"#, vec![], &[r#"/b: absent -> {"c":2}"#]);
    check(r#"{"a":null}"#, "{}", vec![], &["/a: null -> absent"]);
    check(r#"{"a":30}"#, r#"{"a":30.0}"#, vec![], &[]);
    check(r#"{"a":30}"#, r#"{"a":"30"}"#, vec![], &[r#"/a: 30 -> "30""#]);
    check(r#"{"a/b":{"~":1}}"#, r#"{"a/b":{"~":2}}"#, vec![], &["/a~1b/~0: 1 -> 2"]);
    check("[1,2,3]", "[1,3]", vec![], &["/1: 2 -> 3", "/2: 3 -> absent"]);
    check(r#"{"a":{"b":1}}"#, r#"{"a":[1]}"#, vec![], &[r#"/a: {"b":1} -> [1]"#]);
}

#[test]
fn a_rule_excuses_and_is_named() {
    check(r#"{"a":1,"b":1}"#, r#"{"a":2,"b":2}"#, vec![rule(RuleKind::Ignore, "/a")], &["/b: 1 -> 2", "[ignore /a]"]);
    check(
        r#"{"a":{"b":{"c":1}}}"#,
        r#"{"a":{"b":{"c":2}}}"#,
        vec![rule(RuleKind::Volatile, "/a")],
        &["[volatile /a/b/c]"],
    );
    check("{}", r#"{"a":5}"#, vec![rule(RuleKind::Default(value("5")), "/a")], &["[default /a]"]);
    check("{}", r#"{"a":6}"#, vec![rule(RuleKind::Default(value("5")), "/a")], &["/a: absent -> 6"]);
    check(r#"{"a":null}"#, r#"{"a":5}"#, vec![rule(RuleKind::Default(value("5")), "/a")], &["/a: null -> 5"]);
    check(
        r#"{"a":"Allow"}"#,
        r#"{"a":"ALLOW"}"#,
        vec![rule(RuleKind::Equivalent(Equivalence::Case), "/a")],
        &["[equivalent /a]"],
    );
    check(r#"{"a":[]}"#, "{}", vec![rule(RuleKind::Equivalent(Equivalence::Empty), "/a")], &["[equivalent /a]"]);
    check(
        r#"{"a":"30","b":"true"}"#,
        r#"{"a":30,"b":true}"#,
        vec![rule(RuleKind::Equivalent(Equivalence::Spelling), "/*")],
        &["[equivalent /a]", "[equivalent /b]"],
    );
}

#[test]
fn what_is_on_one_side_only_is_excused_when_all_of_it_is() {
    let rules = || vec![rule(RuleKind::Ignore, "/meta/stamp")];
    check("{}", r#"{"meta":{"stamp":1}}"#, rules(), &["[ignore /meta]"]);
    check("{}", r#"{"meta":{"stamp":1,"x":2}}"#, rules(), &[r#"/meta: absent -> {"stamp":1,"x":2}"#]);
    check("{}", r#"{"meta":{}}"#, rules(), &["/meta: absent -> {}"]);
}

#[test]
fn elements_of_a_bag_are_paired_so_that_least_differs() {
    let bag = || vec![rule(RuleKind::Unordered, "/a")];
    check(r#"{"a":[1,2,3]}"#, r#"{"a":[3,1,2]}"#, bag(), &["[unordered /a]"]);
    check(r#"{"a":[1,2]}"#, r#"{"a":[2,1,4]}"#, bag(), &["/a/2: absent -> 4", "[unordered /a]"]);
    check(r#"{"a":[1,2,2]}"#, r#"{"a":[2,1]}"#, bag(), &["/a/2: 2 -> absent", "[unordered /a]"]);
    check(
        r#"{"a":[{"k":"x","v":1},{"k":"y","v":2}]}"#,
        r#"{"a":[{"k":"y","v":2},{"k":"x","v":9}]}"#,
        bag(),
        &["/a/0/v: 1 -> 9", "[unordered /a]"],
    );
    check(
        r#"{"a":[{"k":"x","v":1,"w":1},{"k":"y","v":2,"w":2}]}"#,
        r#"{"a":[{"k":"y","v":3,"w":2},{"k":"x","v":4,"w":1}]}"#,
        bag(),
        &["/a/0/v: 1 -> 4", "/a/1/v: 2 -> 3", "[unordered /a]"],
    );
    check(r#"{"a":[1,2]}"#, r#"{"a":[1,2]}"#, bag(), &[]);
}

#[test]
fn long_bags_are_paired_in_sorted_order() {
    let items = |skip: i64| Value::Array((0..500).filter(|n| *n != skip).map(Value::from).rev().collect());
    let found = compare(&items(3), &items(4), &Applicable::all(&RuleBook::new(vec![rule(RuleKind::Unordered, "")])));
    assert_eq!(found.changes.len(), 1);
    assert_eq!(found.changes[0].expected, Some(Value::from(4i64)));
    assert_eq!(found.changes[0].actual, Some(Value::from(3i64)));
}

#[test]
fn what_is_taken_away_does_not_move_what_is_added_elsewhere() {
    let (a, b) = (value("[[],null,null,[]]"), value("[[null,null],[null,null],null]"));
    let book = RuleBook::new(vec![rule(RuleKind::Unordered, "/**")]);
    assert_eq!(sorted(&apply(&a, &compare(&a, &b, &Applicable::all(&book)).changes)), sorted(&b));
}

#[test]
fn a_sealed_value_is_one_leaf() {
    check(
        r#"{"a":{"$sealed":"1"}}"#,
        r#"{"a":{"$sealed":"2"}}"#,
        vec![],
        &[r#"/a: {"$sealed":"1"} -> {"$sealed":"2"}"#],
    );
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let path = prop_oneof![
        Just("/a"),
        Just("/b"),
        Just("/*"),
        Just("/**"),
        Just("/**/a"),
        Just("/a/*"),
        Just("/*/b"),
        Just("/*/*"),
        Just("")
    ];
    let kind = prop_oneof![
        Just(RuleKind::Ignore),
        Just(RuleKind::Volatile),
        Just(RuleKind::Unordered),
        Just(RuleKind::Unordered),
        Just(RuleKind::Default(Value::from(0i64))),
        Just(RuleKind::Default(Value::Array(vec![]))),
        Just(RuleKind::Equivalent(Equivalence::Case)),
        Just(RuleKind::Equivalent(Equivalence::Empty)),
        Just(RuleKind::Equivalent(Equivalence::Spelling)),
        Just(RuleKind::Equivalent(Equivalence::Values(vec![Value::Null, Value::from(0i64), Value::from("a")]))),
    ];
    (path, kind).prop_map(|(path, kind)| rule(kind, path))
}

/// Small values over few names, so that two of them have much in common.
fn similar_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), (0i64..3).prop_map(Value::from), "[aA]".prop_map(Value::from)];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map("[ab]", inner, 0..3).prop_map(Value::Object),
        ]
    })
}

/// Two values are one bag of bags when sorting every array makes them equal.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort();
            Value::Array(items)
        }
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, member)| (name.clone(), sorted(member))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_differs_from_itself(a in any_value(), rules in prop::collection::vec(any_rule(), 0..4)) {
        let book = RuleBook::new(rules);
        prop_assert_eq!(compare(&a, &a, &Applicable::all(&book)), Comparison::default());
    }

    #[test]
    fn equal_means_no_changes_and_no_changes_means_equal(a in similar_value(), b in similar_value()) {
        let found = compare(&a, &b, &Applicable::default());
        prop_assert_eq!(a == b, found.changes.is_empty());
        prop_assert!(found.excused.is_empty());
    }

    #[test]
    fn applying_the_changes_to_the_expected_side_gives_the_actual_side(
        (a, b) in prop_oneof![(any_value(), any_value()), (similar_value(), similar_value())],
    ) {
        let found = compare(&a, &b, &Applicable::default());
        prop_assert_eq!(apply(&a, &found.changes), b);
    }

    #[test]
    fn applying_the_changes_of_bags_gives_the_same_bags(a in similar_value(), b in similar_value()) {
        let book = RuleBook::new(vec![rule(RuleKind::Unordered, "/**")]);
        let found = compare(&a, &b, &Applicable::all(&book));
        prop_assert_eq!(sorted(&apply(&a, &found.changes)), sorted(&b));
    }

    #[test]
    fn a_bag_in_any_order_is_the_same_bag(
        items in prop::collection::vec(similar_value(), 0..8).prop_flat_map(|items| (Just(items.clone()), Just(items).prop_shuffle())),
    ) {
        let book = RuleBook::new(vec![rule(RuleKind::Unordered, "")]);
        let found = compare(&Value::Array(items.0), &Value::Array(items.1), &Applicable::all(&book));
        prop_assert_eq!(found.changes, vec![]);
    }

    #[test]
    fn adding_a_rule_never_adds_a_change(
        a in similar_value(), b in similar_value(),
        rules in prop::collection::vec(any_rule(), 0..3), extra in any_rule(), first in any::<bool>(),
    ) {
        let without = compare(&a, &b, &Applicable::all(&RuleBook::new(rules.clone())));
        let mut more = rules;
        more.insert(if first { 0 } else { more.len() }, extra);
        let with = compare(&a, &b, &Applicable::all(&RuleBook::new(more)));
        prop_assert!(with.changes.len() <= without.changes.len(), "{:?}\n{:?}", without.changes, with.changes);
    }
}
