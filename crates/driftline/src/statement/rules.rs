//! Rules as conditions of SQL.
//!
//! The columns they speak of: `type`, `place`, `id` and `source` of the resource; `path`, a JSON pointer as it stands
//! in the JSON of a change file; `was_value` and `is_value`, what is there on either side, as canonical JSON (null where
//! nothing is); `clear`, 1 where these two could be told apart.

use driftline_core::pointer::{Pattern, Step};
use driftline_core::rule::{Equivalence, Rule, RuleBook, RuleKind, Subject, UNKNOWN};
use driftline_core::{Pointer, Value};

use super::dialect::{Dialect, escape, glob};

/// What the statement says of a rule that it cannot follow.
const TRANSFORM: &str = "a transform has a say in it";
const CASE: &str = "upper and lower case of letters beyond ASCII do not count in it";
pub(crate) const BENEATH: &str = "a rule has a say in a part of what came or went";

/// Any one segment, any number of them.
const ONE: &str = "/[^/]*";
const ANY: &str = "(?:/[^/]*)*";

fn step(step: &Step) -> String {
    match step {
        Step::Literal(name) => escape(&in_json(&Pointer::from_segments([name.clone()]).to_string())),
        Step::Any => ONE.to_owned(),
        Step::Deep => ANY.to_owned(),
    }
}

/// A text as it stands between quotes in our JSON.
pub(crate) fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_json();
    quoted[1..quoted.len() - 1].to_owned()
}

fn expression(steps: &[Step]) -> String {
    steps.iter().map(step).collect()
}

/// The regular expression of the places that a pattern names.
fn named(pattern: &Pattern) -> String {
    format!("\\A{}\\z", expression(pattern.steps()))
}

/// The same with everything beneath them.
fn covered(pattern: &Pattern) -> String {
    format!("\\A{}(?:/(?s:.*))?\\z", expression(pattern.steps()))
}

/// The places above those that a pattern names.
fn above(pattern: &Pattern) -> Option<String> {
    let steps = pattern.steps();
    let mut starts = Vec::new();
    for upto in 0..steps.len() {
        if steps[upto] == Step::Deep {
            starts.push(format!("{}{ANY}", expression(&steps[..upto])));
            break;
        }
        starts.push(expression(&steps[..upto]));
    }
    (!starts.is_empty()).then(|| format!("\\A(?:{})\\z", starts.join("|")))
}

/// A member that is named in every value in which the pattern names something further down.
fn member(pattern: &Pattern) -> Option<String> {
    match pattern.steps().last() {
        Some(Step::Literal(name)) if name.parse::<usize>().is_err() => Some(format!("\"{}\":", in_json(name))),
        _ => None,
    }
}

/// One condition after the other, all of them.
fn all(conditions: &[String]) -> String {
    if conditions.is_empty() { "true".to_owned() } else { conditions.join(" AND ") }
}

fn any(conditions: &[String]) -> Option<String> {
    (!conditions.is_empty()).then(|| conditions.join("\n      OR "))
}

fn subject(dialect: Dialect, subject: &Subject) -> Vec<String> {
    let columns =
        [("type", &subject.kind), ("place", &subject.place), ("id", &subject.id), ("source", &subject.source)];
    let condition = |(column, pattern): (&str, &Option<_>)| glob(dialect, column, pattern.as_ref()?);
    columns.into_iter().filter_map(condition).collect()
}

fn when(dialect: Dialect, rule: &Rule, more: impl IntoIterator<Item = String>) -> String {
    let mut conditions = subject(dialect, &rule.subject);
    conditions.extend(more);
    all(&conditions)
}

fn list(dialect: Dialect, values: &[Value]) -> String {
    values.iter().map(|value| dialect.text(&value.to_json())).collect::<Vec<_>>().join(", ")
}

/// Which way a difference at a place goes under a rule: the conditions in the order in which they are asked, each with
/// what is said where it holds.
fn explains(dialect: Dialect, rule: &Rule) -> Vec<(Vec<String>, String)> {
    let excused = || "'excused'".to_owned();
    let here = dialect.matches("path", &named(&rule.path));
    let clear = || "clear = 1".to_owned();
    match &rule.kind {
        RuleKind::Ignore | RuleKind::Volatile => {
            vec![(vec![dialect.matches("path", &covered(&rule.path))], excused())]
        }
        RuleKind::Resolved(findings) if !findings.is_empty() => {
            let gone = format!("is_value IS NULL AND was_value IN ({})", list(dialect, findings));
            vec![(vec![clear(), gone, here], "'resolved'".to_owned())]
        }
        RuleKind::Unordered | RuleKind::Resolved(_) | RuleKind::Equivalent(Equivalence::Unknown) => Vec::new(),
        RuleKind::Default(value) => {
            let one = "(was_value IS NULL OR is_value IS NULL)".to_owned();
            let same = format!("coalesce(was_value, is_value) = {}", dialect.text(&value.to_json()));
            vec![(vec![clear(), one, same, here], excused())]
        }
        RuleKind::Equivalent(Equivalence::Values(values)) if values.is_empty() => Vec::new(),
        RuleKind::Equivalent(Equivalence::Values(values)) => {
            let values = list(dialect, values);
            let both = format!("was_value IN ({values}) AND is_value IN ({values})");
            vec![(vec![clear(), both, here], excused())]
        }
        RuleKind::Equivalent(Equivalence::Empty) => {
            let empty = |side: &str| format!("coalesce({side}, 'null') IN ('null', '\"\"', '[]', '{{}}')");
            vec![(vec![clear(), empty("was_value"), empty("is_value"), here], excused())]
        }
        RuleKind::Equivalent(Equivalence::Spelling) => {
            let plain = |side: &str| dialect.matches(side, "\\A(?:[-0-9]|true\\z|false\\z)");
            let spelt = |text: &str, other: &str| format!("({text} = '\"' || {other} || '\"' AND {})", plain(other));
            let either = format!("({} OR {})", spelt("was_value", "is_value"), spelt("is_value", "was_value"));
            vec![(vec![clear(), either, here], excused())]
        }
        RuleKind::Equivalent(Equivalence::Case) => {
            let texts = "substr(was_value, 1, 1) = '\"' AND substr(is_value, 1, 1) = '\"'".to_owned();
            let beyond = dialect.matches("was_value || is_value", "[^\\x00-\\x7f]");
            let same = "lower(was_value) = lower(is_value)".to_owned();
            vec![
                (vec![clear(), texts.clone(), here.clone(), beyond], dialect.text(&format!("undecided: {CASE}"))),
                (vec![clear(), texts, here, same], excused()),
            ]
        }
        RuleKind::Transform(_) => {
            let expected = "(was_value IS NOT NULL OR clear = 0)".to_owned();
            vec![(vec![here, expected], dialect.text(&format!("undecided: {TRANSFORM}")))]
        }
    }
}

/// The branches of a `CASE` that says what a rule, the first one in the book that has a say, makes of a difference.
pub(crate) fn explaining(dialect: Dialect, book: &RuleBook) -> String {
    let mut branches: Vec<(Vec<String>, String)> = Vec::new();
    for rule in book.rules() {
        for (conditions, said) in explains(dialect, rule) {
            branches.push((vec![when(dialect, rule, conditions)], said));
        }
    }
    // Neighbours that say the same are one branch.
    let mut merged: Vec<(Vec<String>, String)> = Vec::new();
    for (conditions, said) in branches {
        match merged.last_mut() {
            Some((earlier, same)) if *same == said => earlier.extend(conditions),
            _ => merged.push((conditions, said)),
        }
    }
    let branch = |(conditions, said): (Vec<String>, String)| {
        format!("    WHEN {}\n      THEN {said}\n", any(&conditions).unwrap_or_else(|| "false".to_owned()))
    };
    merged.into_iter().map(branch).collect()
}

/// Whether all that a rule can say of the elements of an array is that one member of each does not count.
fn masks(rule: &Rule) -> Option<(&[Step], &str)> {
    let open = |step: &Step| matches!(step, Step::Any | Step::Deep);
    let index = |step: &Step| matches!(step, Step::Literal(name) if name.parse::<usize>().is_ok());
    match (&rule.kind, rule.path.steps()) {
        (RuleKind::Ignore | RuleKind::Volatile, [to @ .., element, Step::Literal(member)])
            if open(element) && !rule.path.steps().iter().any(index) && !(to.is_empty() && *element == Step::Any) =>
        {
            Some((&rule.path.steps()[..rule.path.steps().len() - 1], member))
        }
        _ => None,
    }
}

/// The members of the elements of the array at `path` that do not count, as a regular expression; empty for none.
pub(crate) fn masked_members(dialect: Dialect, book: &RuleBook) -> String {
    let mask = |rule: &Rule| {
        let (to, member) = masks(rule)?;
        let at = dialect.matches("path || '/0'", &format!("\\A{}\\z", expression(to)));
        let name = dialect.text(&format!("|{}", escape(&in_json(member))));
        Some(format!("CASE WHEN {} THEN {name} ELSE '' END", when(dialect, rule, [at])))
    };
    let masks: Vec<String> = book.rules().iter().filter_map(mask).collect();
    if masks.is_empty() { "''".to_owned() } else { format!("substr({}, 2)", masks.join("\n      || ")) }
}

/// A condition that some rule may excuse a part of `value`, which is at `path`; without those that only mask members
/// of elements, where `elements` are what is asked for.
pub(crate) fn reaches_into(dialect: Dialect, book: &RuleBook, value: &str, elements: bool) -> String {
    let reaching = |rule: &Rule| {
        if elements && masks(rule).is_some() {
            return None;
        }
        if matches!(rule.kind, RuleKind::Unordered | RuleKind::Equivalent(Equivalence::Unknown))
            || matches!(&rule.kind, RuleKind::Resolved(findings) if findings.is_empty())
        {
            return None;
        }
        let mut conditions = vec![dialect.matches("path", &above(&rule.path)?)];
        if let Some(member) = member(&rule.path) {
            conditions.push(format!("position({} IN {value}) > 0", dialect.text(&member)));
        }
        Some(when(dialect, rule, conditions))
    };
    any(&book.rules().iter().filter_map(reaching).collect::<Vec<_>>()).unwrap_or_else(|| "false".to_owned())
}

/// The same of nested arrays without an order.
pub(crate) fn sorts_within(dialect: Dialect, book: &RuleBook) -> String {
    let unordered = book.rules().iter().filter(|rule| rule.kind == RuleKind::Unordered);
    let within = |rule: &Rule| Some(when(dialect, rule, [dialect.matches("path", &above(&rule.path)?)]));
    any(&unordered.filter_map(within).collect::<Vec<_>>()).unwrap_or_else(|| "false".to_owned())
}

/// A condition that `path` is an array whose order does not count.
pub(crate) fn is_unordered(dialect: Dialect, book: &RuleBook) -> String {
    let unordered = book.rules().iter().filter(|rule| rule.kind == RuleKind::Unordered);
    let here = |rule: &Rule| when(dialect, rule, [dialect.matches("path", &named(&rule.path))]);
    any(&unordered.map(here).collect::<Vec<_>>()).unwrap_or_else(|| "false".to_owned())
}

/// A condition that `path` lies inside of one.
pub(crate) fn in_unordered(dialect: Dialect, book: &RuleBook) -> String {
    let unordered = book.rules().iter().filter(|rule| rule.kind == RuleKind::Unordered);
    let inside =
        |rule: &Rule| when(dialect, rule, [dialect.matches("path", &format!("\\A{}/", expression(rule.path.steps())))]);
    any(&unordered.map(inside).collect::<Vec<_>>()).unwrap_or_else(|| "false".to_owned())
}

/// A condition that whatever differs at `path`, or beneath it, does not count.
pub(crate) fn ignored(dialect: Dialect, book: &RuleBook) -> String {
    let ignoring = |rule: &&Rule| matches!(rule.kind, RuleKind::Ignore | RuleKind::Volatile);
    let here = |rule: &Rule| when(dialect, rule, [dialect.matches("path", &covered(&rule.path))]);
    any(&book.rules().iter().filter(ignoring).map(here).collect::<Vec<_>>()).unwrap_or_else(|| "false".to_owned())
}

/// A condition that something beneath `path` may be a finding that was seen to.
pub(crate) fn resolves_within(dialect: Dialect, book: &RuleBook) -> String {
    let resolving = |rule: &&Rule| matches!(&rule.kind, RuleKind::Resolved(findings) if !findings.is_empty());
    let within = |rule: &Rule| Some(when(dialect, rule, [dialect.matches("path", &above(&rule.path)?)]));
    any(&book.rules().iter().filter(resolving).filter_map(within).collect::<Vec<_>>())
        .unwrap_or_else(|| "false".to_owned())
}

/// A condition that some rule may have a say in a resource that is in one of its versions `image`. Where it does not
/// hold, whatever differs counts.
pub(crate) fn may_touch(dialect: Dialect, book: &RuleBook, image: &str) -> String {
    let touching = |rule: &Rule| {
        let name = match &rule.kind {
            RuleKind::Resolved(findings) if findings.is_empty() => return None,
            RuleKind::Equivalent(Equivalence::Unknown) => Some(UNKNOWN),
            _ => longest_name(&rule.path),
        };
        Some(when(dialect, rule, has_member(dialect, name, image)))
    };
    any(&book.rules().iter().filter_map(touching).collect::<Vec<_>>()).unwrap_or_else(|| "false".to_owned())
}

/// A condition that an image has a member of this name, if one is needed.
fn has_member(dialect: Dialect, name: Option<&str>, image: &str) -> Option<String> {
    let member = dialect.text(&format!("\"{}\":", in_json(name?)));
    Some(format!("position({member} IN {image}) > 0"))
}

/// A name that every image has in which the pattern names something.
fn longest_name(pattern: &Pattern) -> Option<&str> {
    let names = pattern.steps().iter().filter_map(|step| match step {
        Step::Literal(name) if name.parse::<usize>().is_err() => Some(name.as_str()),
        _ => None,
    });
    names.max_by_key(|name| name.len())
}

/// A condition that the resource's being there at all is excused.
pub(crate) fn ignored_whole(dialect: Dialect, book: &RuleBook) -> String {
    let whole = |rule: &&Rule| {
        let root = rule.path.matches(&Pointer::root());
        root && matches!(rule.kind, RuleKind::Ignore | RuleKind::Volatile | RuleKind::Equivalent(Equivalence::Empty))
    };
    let rules = book.rules().iter().filter(whole);
    any(&rules.map(|rule| when(dialect, rule, [])).collect::<Vec<_>>()).unwrap_or_else(|| "false".to_owned())
}

/// A condition that the resource's being gone is good news, whatever it was.
pub(crate) fn resolved_whole(dialect: Dialect, book: &RuleBook) -> String {
    let whole = |rule: &&Rule| {
        matches!(&rule.kind, RuleKind::Resolved(findings) if findings.is_empty()) && rule.path.matches(&Pointer::root())
    };
    let rules = book.rules().iter().filter(whole);
    any(&rules.map(|rule| when(dialect, rule, [])).collect::<Vec<_>>()).unwrap_or_else(|| "false".to_owned())
}

/// A condition that a resource which is `image` in one of its versions may be one whose being gone is good news, if
/// it was what some rule says.
pub(crate) fn may_resolve(dialect: Dialect, book: &RuleBook, image: &str) -> String {
    let resolving = |rule: &&Rule| matches!(rule.kind, RuleKind::Resolved(_));
    let rules = book.rules().iter().filter(resolving);
    let conditions = rules.map(|rule| when(dialect, rule, has_member(dialect, longest_name(&rule.path), image)));
    any(&conditions.collect::<Vec<_>>()).unwrap_or_else(|| "false".to_owned())
}

/// A condition that a value which is known to be unknown excuses whatever is on the other side.
pub(crate) fn excuses_unknown(dialect: Dialect, book: &RuleBook) -> Option<String> {
    let unknown = |rule: &&Rule| matches!(rule.kind, RuleKind::Equivalent(Equivalence::Unknown));
    any(&book.rules().iter().filter(unknown).map(|rule| when(dialect, rule, [])).collect::<Vec<_>>())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_regular_expressions_over_pointers_as_json_has_them() {
        for (pattern, names, above_it) in [
            ("", r"\A\z", None),
            ("/a", r"\A/a\z", Some(r"\A(?:)\z")),
            ("/a/*/b.c", r"\A/a/[^/]*/b\.c\z", Some(r"\A(?:|/a|/a/[^/]*)\z")),
            ("/a/**/b", r"\A/a(?:/[^/]*)*/b\z", Some(r"\A(?:|/a(?:/[^/]*)*)\z")),
            // A slash is escaped by the pointer; a quote and a backslash by JSON, and then by the expression.
            ("/a~1b", r"\A/a~1b\z", Some(r"\A(?:)\z")),
            (r#"/say"\"#, r#"\A/say\\"\\\\\z"#, Some(r"\A(?:)\z")),
        ] {
            let read: Pattern = pattern.parse().unwrap();
            assert_eq!(named(&read), names, "{pattern}");
            assert_eq!(above(&read).as_deref(), above_it, "{pattern}");
        }
    }

    #[test]
    fn a_name_that_may_be_an_index_is_no_name() {
        let pattern = |text: &str| text.parse::<Pattern>().unwrap();
        assert_eq!(longest_name(&pattern("/a/10000/*")), Some("a"));
        assert_eq!(longest_name(&pattern("/*/7")), None);
        assert_eq!(member(&pattern("/a/7")), None);
        assert_eq!(member(&pattern(r#"/a/b""#)).as_deref(), Some(r#""b\"":"#));
    }
}
