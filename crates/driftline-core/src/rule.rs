//! Rules: differences that do not count, as data, each with its origin and reason.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::difference::Told;
use crate::key::KeyRef;
use crate::pointer::{Pattern, Pointer};
use crate::value::Value;

/// Where a rule comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Shipped with Driftline.
    Builtin,
    /// From a published resource schema.
    Schema,
    /// From a property transform of a schema.
    Transform,
    /// A guess that is usually right; a tier of its own that can be switched off.
    Heuristic,
    /// Written by the user; says where.
    User(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Builtin => f.write_str("builtin"),
            Origin::Schema => f.write_str("schema"),
            Origin::Transform => f.write_str("transform"),
            Origin::Heuristic => f.write_str("heuristic"),
            Origin::User(place) => write!(f, "user: {place}"),
        }
    }
}

/// What a rule says of the places it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// Differences here, and beneath, do not count.
    Ignore,
    /// The value changes by itself: counters, timestamps, annotations. Excuses like `Ignore`, but says why.
    Volatile,
    /// The order of this array does not count.
    Unordered,
    /// Absent means this value.
    Default(Value),
    /// Two forms of one meaning.
    Equivalent(Equivalence),
    /// The expected value, turned into another form, is what is there.
    Transform(Transform),
    /// What the path names is a finding, and its going away means that it was seen to. If values are given, they are
    /// the findings; anything else is not one.
    Resolved(Vec<Value>),
}

impl RuleKind {
    pub fn name(&self) -> &'static str {
        match self {
            RuleKind::Ignore => "ignore",
            RuleKind::Volatile => "volatile",
            RuleKind::Unordered => "unordered",
            RuleKind::Default(_) => "default",
            RuleKind::Equivalent(_) => "equivalent",
            RuleKind::Transform(_) => "transform",
            RuleKind::Resolved(_) => "resolved",
        }
    }
}

/// Turns what is expected into the form in which it is given back, and says whether that is what is there.
pub trait Transformation: fmt::Debug + Send + Sync {
    /// `root` is all that is expected of the resource; the transformation may read from it.
    fn explains(&self, root: &Value, path: &Pointer, expected: &Value, actual: Option<&Value>) -> bool;
}

/// A transformation that rules can share.
#[derive(Clone, Debug)]
pub struct Transform(pub Arc<dyn Transformation>);

/// One is only itself: whether two transformations do the same cannot be told.
impl PartialEq for Transform {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Transform {}

/// When two unequal values mean the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Equivalence {
    /// Text that differs in upper and lower case only.
    Case,
    /// A number or a truth value, and the text that spells it.
    Spelling,
    /// Null, an empty object or array, an empty text, and absence.
    Empty,
    /// Any two of these values.
    Values(Vec<Value>),
    /// Anything, and a value that is known to be unknown.
    Unknown,
}

/// The member by which a value is known to be unknown, e.g. what a declaration could not be resolved to.
pub const UNKNOWN: &str = "$unknown";

/// Whether a value stands for one that is not known.
pub fn is_unknown(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.len() == 1 && members.contains_key(UNKNOWN))
}

impl Equivalence {
    pub fn holds(&self, expected: Option<&Value>, actual: Option<&Value>) -> bool {
        match self {
            Equivalence::Case => match (expected, actual) {
                (Some(Value::String(a)), Some(Value::String(b))) => a.to_lowercase() == b.to_lowercase(),
                _ => false,
            },
            Equivalence::Spelling => match (expected, actual) {
                (Some(Value::String(text)), Some(other @ (Value::Number(_) | Value::Bool(_))))
                | (Some(other @ (Value::Number(_) | Value::Bool(_))), Some(Value::String(text))) => {
                    *text == other.to_json()
                }
                _ => false,
            },
            Equivalence::Unknown => expected.is_some_and(is_unknown) || actual.is_some_and(is_unknown),
            Equivalence::Empty => is_empty(expected) && is_empty(actual),
            Equivalence::Values(values) => match (expected, actual) {
                (Some(a), Some(b)) => values.contains(a) && values.contains(b),
                _ => false,
            },
        }
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => false,
    }
}

/// Text in which `*` stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Glob(String);

impl Glob {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn matches_everything(&self) -> bool {
        self.0.chars().all(|char| char == '*')
    }

    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().expect("split gives at least one part");
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let mut last = None;
        for part in parts {
            if let Some(part) = last.replace(part) {
                match rest.find(part) {
                    Some(at) => rest = &rest[at + part.len()..],
                    None => return false,
                }
            }
        }
        match last {
            Some(part) => rest.ends_with(part),
            None => rest.is_empty(),
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which resources a rule speaks of. What is not given is not asked.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Subject {
    pub kind: Option<Glob>,
    pub place: Option<Glob>,
    pub id: Option<Glob>,
    pub source: Option<Glob>,
}

impl Subject {
    pub fn matches(&self, key: KeyRef<'_>, source: &str) -> bool {
        let fits = |glob: &Option<Glob>, text: &str| glob.as_ref().is_none_or(|glob| glob.matches(text));
        fits(&self.kind, key.kind)
            && fits(&self.place, key.place)
            && fits(&self.id, key.id)
            && fits(&self.source, source)
    }

    pub fn matches_everything(&self) -> bool {
        let open = |glob: &Option<Glob>| glob.as_ref().is_none_or(Glob::matches_everything);
        open(&self.kind) && open(&self.place) && open(&self.id) && open(&self.source)
    }
}

/// A difference that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub subject: Subject,
    /// Where in the properties; the root pattern `""` speaks of the whole resource.
    pub path: Pattern,
    pub kind: RuleKind,
    pub origin: Origin,
    pub reason: String,
}

impl Rule {
    /// Whether this rule explains why `expected` and `actual` differ at `path`, in a resource expected to be `root`.
    pub(crate) fn explains(
        &self,
        root: &Value,
        path: &Pointer,
        expected: Option<&Value>,
        actual: Option<&Value>,
    ) -> bool {
        match &self.kind {
            RuleKind::Transform(transform) => {
                self.path.matches(path)
                    && expected.is_some_and(|expected| transform.0.explains(root, path, expected, actual))
            }
            RuleKind::Ignore | RuleKind::Volatile => self.path.covers(path),
            RuleKind::Unordered => false,
            RuleKind::Resolved(findings) => {
                let gone = actual.is_none() && expected.is_some_and(|value| findings.contains(value));
                gone && self.path.matches(path)
            }
            RuleKind::Default(value) => {
                self.path.matches(path)
                    && matches!((expected, actual), (None, Some(other)) | (Some(other), None) if other == value)
            }
            RuleKind::Equivalent(equivalence) => self.path.matches(path) && equivalence.holds(expected, actual),
        }
    }
}

/// All rules in force, in the order in which they are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleBook {
    rules: Vec<Rule>,
    /// For each rule a name that is part of every place it speaks of, if there is one.
    needles: Vec<Option<String>>,
}

/// The rules that speak of one resource, each with its number in the book.
#[derive(Clone, Debug, Default)]
pub struct Applicable<'a>(pub(crate) Vec<(usize, &'a Rule)>);

impl RuleBook {
    pub fn new(rules: Vec<Rule>) -> Self {
        let needle = |rule: &Rule| match rule.kind {
            RuleKind::Equivalent(Equivalence::Unknown) => Some(UNKNOWN.to_owned()),
            _ => rule.path.needle().map(ToOwned::to_owned),
        };
        let needles = rules.iter().map(needle).collect();
        Self { rules, needles }
    }

    /// Whether some rule may have a say in what differs. `false` is certain; `true` means they have to be asked.
    pub fn may_touch(&self, key: KeyRef<'_>, source: &str, told: &Told) -> bool {
        self.rules.iter().zip(&self.needles).any(|(rule, needle)| {
            let named = needle.as_ref().is_none_or(|needle| {
                told.changes.contains(needle.as_str())
                    || told.arrays.as_ref().is_some_and(|text| text.contains(needle.as_str()))
            });
            named && rule.subject.matches(key, source)
        })
    }

    /// Whether a rule for this resource reads more of it than what differs.
    pub fn reads_all_of(&self, key: KeyRef<'_>, source: &str) -> bool {
        let transforms = |rule: &Rule| matches!(rule.kind, RuleKind::Transform(_));
        self.rules.iter().any(|rule| transforms(rule) && rule.subject.matches(key, source))
    }

    /// Whether a rule says of this resource that its being gone may be good news, which only what it was can tell.
    pub fn may_resolve(&self, key: KeyRef<'_>, source: &str) -> bool {
        let resolves = |rule: &Rule| matches!(rule.kind, RuleKind::Resolved(_));
        self.rules.iter().any(|rule| resolves(rule) && rule.subject.matches(key, source))
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub fn applicable(&self, key: KeyRef<'_>, source: &str) -> Applicable<'_> {
        let rules = self.rules.iter().enumerate().filter(|(_, rule)| rule.subject.matches(key, source));
        Applicable(rules.collect())
    }
}

impl<'a> Applicable<'a> {
    pub fn all(book: &'a RuleBook) -> Self {
        Self(book.rules.iter().enumerate().collect())
    }

    pub(crate) fn unordered(&self, path: &Pointer) -> Option<usize> {
        self.0.iter().find(|(_, rule)| rule.kind == RuleKind::Unordered && rule.path.matches(path)).map(|(at, _)| *at)
    }

    pub(crate) fn explaining(
        &self,
        root: &Value,
        path: &Pointer,
        expected: Option<&Value>,
        actual: Option<&Value>,
    ) -> Option<usize> {
        self.0.iter().find(|(_, rule)| rule.explains(root, path, expected, actual)).map(|(at, _)| *at)
    }

    /// The rule by which a resource that is gone is a finding that was seen to.
    pub fn resolving(&self, gone: &Value) -> Option<usize> {
        let says = |rule: &Rule| match &rule.kind {
            RuleKind::Resolved(findings) => {
                let named = rule.path.find_all(gone);
                !named.is_empty() && named.iter().all(|found| findings.is_empty() || findings.contains(found))
            }
            _ => false,
        };
        self.0.iter().find(|(_, rule)| says(rule)).map(|(at, _)| *at)
    }

    /// The rule that excuses the resource's being there at all.
    pub fn ignoring_whole(&self) -> Option<usize> {
        self.explaining(&Value::Null, &Pointer::root(), None, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_texts() {
        for (glob, text, matches) in [
            ("AWS::EC2::*", "AWS::EC2::VPC", true),
            ("AWS::EC2::*", "AWS::S3::Bucket", false),
            ("*", "", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("*abc", "xabc", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(Glob::new(glob).matches(text), matches, "{glob} {text}");
        }
    }
}
