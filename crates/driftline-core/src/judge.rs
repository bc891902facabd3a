//! One resource, both sides of it, and what that means: the table of [`crate::verdict`] with its reasons.

use crate::compare::{Change, Comparison, Excused, compare};
use crate::coverage::{Coverage, Outcome};
use crate::key::KeyRef;
use crate::pointer::Pointer;
use crate::rule::{RuleBook, RuleKind};
use crate::value::Value;
use crate::verdict::{DriftKind, Sight, Status, verdict};

/// What one side has to say of a resource.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    pub value: Option<&'a Value>,
    pub coverage: &'a Coverage,
}

impl Side<'_> {
    fn sight(&self, key: KeyRef<'_>) -> Sight {
        match self.value {
            Some(_) => Sight::Present,
            None if self.coverage.is_complete(key.kind, key.place) => Sight::Absent,
            None => Sight::Unseen,
        }
    }
}

/// What is said of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub status: Status,
    pub kind: Option<DriftKind>,
    pub changes: Vec<Change>,
    pub excused: Vec<Excused>,
    /// Why it was not checked.
    pub reason: Option<String>,
}

/// Judges one resource; `None` when there is nothing on either side.
pub fn judge(
    key: KeyRef<'_>,
    source: &str,
    expected: &Side<'_>,
    live: &Side<'_>,
    book: &RuleBook,
) -> Option<Judgement> {
    let (expected_sight, live_sight) = (expected.sight(key), live.sight(key));
    let another = live.coverage.is_another_than(expected.coverage).is_some();
    let rules = book.applicable(key, source);
    let mut found = match (expected.value, live.value) {
        (Some(expected), Some(live)) => compare(expected, live, &rules),
        _ => Comparison::default(),
    };
    let (mut status, mut kind) = verdict(expected_sight, live_sight, !found.changes.is_empty())?;
    if status == Status::NotChecked || (another && status != Status::InSync) {
        return Some(not_checked(key, expected.coverage, live.coverage));
    }
    if status == Status::Unknown
        && let Some(rule) = rules.ignoring_whole()
    {
        // Being there at all is what is excused. That something is gone never is: accept it, with a reason.
        let change = Change { path: Pointer::root(), expected: None, actual: None };
        found.excused.push(Excused { change, rule });
        status = Status::InSync;
    }
    if kind == Some(DriftKind::Deleted)
        && let Some(rule) = expected.value.and_then(|gone| rules.resolving(gone))
    {
        let change = Change { path: Pointer::root(), expected: None, actual: None };
        found.excused.push(Excused { change, rule });
        (status, kind) = (Status::InSync, Some(DriftKind::Resolved));
    }
    let resolves = |one: &Excused| matches!(book.rules()[one.rule].kind, RuleKind::Resolved(_));
    if status == Status::InSync && kind.is_none() && found.excused.iter().any(resolves) {
        kind = Some(DriftKind::Resolved);
    }
    Some(Judgement { status, kind, changes: found.changes, excused: found.excused, reason: None })
}

/// The judgement on something that one of the two sides did not look at.
pub fn not_checked(key: KeyRef<'_>, expected: &Coverage, live: &Coverage) -> Judgement {
    let why = |side: &str, coverage: &Coverage| match coverage.outcome(key.kind, key.place) {
        Some(Outcome::Complete) => None,
        Some(Outcome::Partial { reason }) => Some(format!("{side} listing was partial: {reason}")),
        None => Some(format!("{side} observation did not look there")),
    };
    let reason = live
        .is_another_than(expected)
        .or_else(|| why("the live", live))
        .or_else(|| why("the baseline's", expected))
        .unwrap_or_else(|| "the baseline's observation did not see it".into());
    Judgement { status: Status::NotChecked, kind: None, changes: Vec::new(), excused: Vec::new(), reason: Some(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Extent;
    use crate::rule::{Glob, Origin, Rule, Subject};

    const KEY: KeyRef<'_> = KeyRef { kind: "T", place: "p", id: "x" };

    fn ignoring_type() -> RuleBook {
        RuleBook::new(vec![Rule {
            subject: Subject { kind: Some(Glob::new("T")), ..Subject::default() },
            path: "".parse().expect("the root is a pattern"),
            kind: RuleKind::Ignore,
            origin: Origin::Builtin,
            reason: "a test says so".into(),
        }])
    }

    fn status(expected: Option<i64>, live: Option<i64>, live_complete: bool, book: &RuleBook) -> Option<Status> {
        let complete = Coverage::complete();
        let mut partial = Coverage::new();
        let outcome = Outcome::Partial { reason: "throttled".into() };
        partial.record(Extent { kind: "T".into(), place: "p".into() }, outcome);
        let (expected, live) = (expected.map(Value::from), live.map(Value::from));
        let live_coverage = if live_complete { &complete } else { &partial };
        let sides = (
            Side { value: expected.as_ref(), coverage: &complete },
            Side { value: live.as_ref(), coverage: live_coverage },
        );
        judge(KEY, "s", &sides.0, &sides.1, book).map(|judgement| judgement.status)
    }

    #[test]
    fn a_listing_cut_short_is_not_a_deletion() {
        let none = RuleBook::default();
        assert_eq!(status(Some(1), None, true, &none), Some(Status::Drifted));
        assert_eq!(status(Some(1), None, false, &none), Some(Status::NotChecked));
        assert_eq!(status(Some(1), Some(2), false, &none), Some(Status::Drifted), "what was seen was seen");
    }

    #[test]
    fn ignoring_a_resource_excuses_its_changes_and_its_being_new_but_never_its_being_gone() {
        let book = ignoring_type();
        assert_eq!(status(Some(1), Some(2), true, &book), Some(Status::InSync));
        assert_eq!(status(None, Some(2), true, &book), Some(Status::InSync));
        assert_eq!(status(Some(1), None, true, &book), Some(Status::Drifted));
    }

    #[test]
    fn what_differs_between_two_backends_is_not_checked_and_what_is_equal_is_in_sync() {
        let one = Coverage::complete().on_basis(Some("explorer".into()));
        let other = Coverage::complete().on_basis(Some("tags".into()));
        let (a, b) = (Value::from(1i64), Value::from(2i64));
        let none = RuleBook::default();
        let mut told = Vec::new();
        for (expected, live) in [(Some(&a), Some(&b)), (Some(&a), None), (None, Some(&a)), (Some(&a), Some(&a))] {
            let sides = (Side { value: expected, coverage: &one }, Side { value: live, coverage: &other });
            let judgement = judge(KEY, "s", &sides.0, &sides.1, &none).expect("one side has it");
            told.push((judgement.status, judgement.reason.is_some_and(|reason| reason.contains("another backend"))));
        }
        let not_checked = (Status::NotChecked, true);
        assert_eq!(told, [not_checked, not_checked, not_checked, (Status::InSync, false)]);
    }

    #[test]
    fn a_finding_that_is_gone_is_resolved_and_anything_else_that_is_gone_is_deleted() {
        let rule = |path: &str, findings: Vec<Value>| Rule {
            subject: Subject::default(),
            path: path.parse().expect("a pattern"),
            kind: RuleKind::Resolved(findings),
            origin: Origin::Builtin,
            reason: "a test says so".into(),
        };
        let book = RuleBook::new(vec![rule("/rules/*", vec!["BAD".into()]), rule("/orphan", Vec::new())]);
        let complete = Coverage::complete();
        let told = |expected: &str, live: Option<&str>| {
            let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            let (expected, live) = (read(expected), live.map(read));
            let sides = (
                Side { value: Some(&expected), coverage: &complete },
                Side { value: live.as_ref(), coverage: &complete },
            );
            let judgement = judge(KEY, "s", &sides.0, &sides.1, &book).expect("it was there");
            (judgement.status, judgement.kind)
        };
        let resolved = (Status::InSync, Some(DriftKind::Resolved));
        assert_eq!(told(r#"{"rules":{"a":"BAD","b":"BAD"}}"#, None), resolved);
        assert_eq!(told(r#"{"rules":{"a":"BAD","b":"BAD"}}"#, Some(r#"{"rules":{"a":"BAD"}}"#)), resolved);
        assert_eq!(told(r#"{"orphan":1}"#, None), resolved);
        let (modified, deleted) = (Some(DriftKind::Modified), Some(DriftKind::Deleted));
        assert_eq!(told(r#"{"rules":{"a":"GOOD"}}"#, Some(r#"{"rules":{"a":"BAD"}}"#)), (Status::Drifted, modified));
        assert_eq!(told(r#"{"rules":{"a":"BAD"},"x":1}"#, Some(r#"{"rules":{}}"#)), (Status::Drifted, modified));
        assert_eq!(told(r#"{"rules":{"a":"BAD","b":"GOOD"}}"#, None), (Status::Drifted, deleted));
        assert_eq!(told(r#"{"rules":{}}"#, None), (Status::Drifted, deleted), "nothing was found in it");
        assert_eq!(told("{}", None), (Status::Drifted, deleted));
    }

    #[test]
    fn what_could_not_be_resolved_on_one_side_is_no_change() {
        let book = RuleBook::new(vec![Rule {
            subject: Subject::default(),
            path: "/**".parse().expect("a pattern"),
            kind: RuleKind::Equivalent(crate::rule::Equivalence::Unknown),
            origin: Origin::Builtin,
            reason: "a test says so".into(),
        }]);
        let complete = Coverage::complete();
        let told = |expected: &str, live: &str| {
            let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            let (expected, live) = (read(expected), read(live));
            let sides = (
                Side { value: Some(&expected), coverage: &complete },
                Side { value: Some(&live), coverage: &complete },
            );
            judge(KEY, "s", &sides.0, &sides.1, &book).map(|judgement| judgement.status)
        };
        assert_eq!(told(r#"{"a":{"$unknown":"x"},"b":1}"#, r#"{"a":{"deep":[1]},"b":1}"#), Some(Status::InSync));
        assert_eq!(told(r#"{"a":7,"b":1}"#, r#"{"a":{"$unknown":"x"},"b":1}"#), Some(Status::InSync));
        assert_eq!(told(r#"{"a":{"$unknown":"x"},"b":1}"#, r#"{"a":2,"b":2}"#), Some(Status::Drifted));
        assert_eq!(told(r#"{"a":{"$unknown":"x","c":1}}"#, r#"{"a":2}"#), Some(Status::Drifted), "that is an object");
    }
}
