//! What was declared, against what is live: only what was declared is asked for, and equal things in other forms are
//! told from changed ones by what the type's schema says.
//!
//! The order in which a difference may be explained: what cannot be read back; arrays without an order; property
//! transforms; JSON in text and policies; the spelling of scalars; tags; what is empty. Then, as a tier of its own
//! that can be switched off, guesses that are usually right. Whatever explains a difference is told.

mod arrays;
mod document;
mod guess;
#[cfg(test)]
mod recorded_tests;
mod scalar;
#[cfg(test)]
mod tests;
mod transform;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use driftline_core::{Pattern, Pointer, Value};
use serde::Serialize;

use crate::schema::{self, Facts, Transform};

pub use guess::GUESSES;
pub use transform::{Engine, TransformRule};

/// What to go by besides the schemas.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Whether guesses count.
    pub heuristics: bool,
    /// Guesses that do not count all the same, by name.
    pub without: &'a [String],
    /// Transforms of the user's, asked before those of the schema.
    pub transforms: &'a [Transform],
    /// Evaluates transforms.
    pub engine: &'a Engine,
}

/// How a declared resource stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    InSync,
    Modified,
    Deleted,
    NotChecked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DifferenceType {
    /// Live has an element that was not declared.
    Add,
    /// What was declared is not there.
    Remove,
    NotEqual,
}

/// One place where live is not as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: Pointer,
    pub expected: Option<Value>,
    pub actual: Option<Value>,
    pub what: DifferenceType,
}

/// How sure an explanation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// A published schema says so.
    Schema,
    /// A property transform of a schema, or of the user's.
    Transform,
    /// It means the same in every type.
    Builtin,
    /// Usually right, and can be switched off.
    Heuristic,
}

/// A difference that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excuse {
    pub path: Pointer,
    pub rule: &'static str,
    pub tier: Tier,
    /// What it rests on, where that says more than the rule's name.
    pub detail: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub differences: Vec<Difference>,
    pub excused: Vec<Excuse>,
}

pub use driftline_core::rule::UNKNOWN;
pub(crate) use driftline_core::rule::is_unknown;

/// Compares what is live with what was declared of a type.
pub fn compare(kind: &str, declared: &Value, live: &Value, options: &Options<'_>) -> Found {
    static NONE: LazyLock<Facts> = LazyLock::new(Facts::default);
    let facts = schema::facts(kind).unwrap_or(&NONE);
    let walk = Walk { facts, options, root: declared, depth: 0, said: Said::all() };
    let mut found = Found::default();
    walk.values(&mut Pointer::root(), declared, Some(live), &mut found);
    found
}

/// What is declared against what is live, at one place and beneath it.
#[derive(Clone, Copy)]
struct Walk<'a> {
    facts: &'a Facts,
    options: &'a Options<'a>,
    /// All that was declared: transforms read from it.
    root: &'a Value,
    /// How many arrays are being paired around this place.
    depth: u32,
    /// Which facts may be about places here.
    said: Said,
}

/// Which lists of facts have something to say about a property at the top, or about a place in it. A list that has
/// not need not be searched for any place beneath, and most have not.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "one answer a list, each asked for by its name")]
struct Said {
    write_only: bool,
    read_only: bool,
    arrays: bool,
    documents: bool,
    scalars: bool,
}

impl Said {
    fn all() -> Self {
        Self { write_only: true, read_only: true, arrays: true, documents: true, scalars: true }
    }

    fn of(facts: &Facts, top: &str) -> Self {
        Self {
            write_only: may_begin(&facts.write_only, top),
            read_only: may_begin(&facts.read_only, top),
            arrays: may_begin(&facts.unordered, top) || may_begin(&facts.attribute_lists, top),
            documents: may_begin(&facts.documents, top) || may_begin(&facts.policies, top),
            scalars: facts.scalars.iter().any(|(pattern, _)| pattern.may_begin(Some(top))),
        }
    }
}

impl Walk<'_> {
    fn values(&self, path: &mut Pointer, declared: &Value, live: Option<&Value>, found: &mut Found) {
        if is_unknown(declared) || scalar::is_placeholder(declared) {
            found.excuse(path, "unknown", Tier::Builtin, Some("what was declared could not be resolved".into()));
            return;
        }
        if self.said.write_only && covers(&self.facts.write_only, path) {
            found.excuse(path, "write-only", Tier::Schema, Some("it is never read back".into()));
            return;
        }
        if live == Some(declared) {
            return;
        }
        if self.said.read_only && covers(&self.facts.read_only, path) {
            found.excuse(path, "read-only", Tier::Schema, None);
            return;
        }
        let mut inside = Found::default();
        self.unequal(path, declared, live, &mut inside);
        // What explains a place as a whole explains what was found inside of it.
        if !inside.differences.is_empty()
            && let Some(excuse) = self.whole(path, declared, live)
        {
            found.excused.push(excuse);
            return;
        }
        found.differences.append(&mut inside.differences);
        found.excused.append(&mut inside.excused);
    }

    fn unequal(&self, path: &mut Pointer, declared: &Value, live: Option<&Value>, found: &mut Found) {
        let Some(live) = live else {
            self.missing(path, declared, found);
            return;
        };
        if let Some((declared, live)) =
            document::opened(declared, live, || self.said.documents && matches(&self.facts.documents, path))
        {
            let mut inside = Found::default();
            self.values(path, &declared, Some(&live), &mut inside);
            found.excuse(path, "json text", Tier::Builtin, None);
            found.differences.append(&mut inside.differences);
            found.excused.append(&mut inside.excused);
            return;
        }
        match (declared, live) {
            (Value::Object(_), Value::Object(_))
                if document::is_policy(declared) || (self.said.documents && matches(&self.facts.policies, path)) =>
            {
                Self::policy(path, declared, live, found);
            }
            (Value::Object(declared), Value::Object(live)) => {
                // What a source says of the thing besides its properties.
                let root = path.is_root();
                for (name, value) in declared.iter().filter(|(name, _)| !root || !name.starts_with('$')) {
                    let live = live.get(name);
                    let hidden = if root { may_begin(&self.facts.write_only, name) } else { self.said.write_only };
                    if live == Some(value) && !hidden && is_known(value) {
                        continue;
                    }
                    let said = if root { Said::of(self.facts, name) } else { self.said };
                    path.push(name.as_str());
                    Self { said, ..*self }.values(path, value, live, found);
                    path.pop();
                }
            }
            (Value::Array(declared), Value::Array(live)) => self.arrays(path, declared, live, found),
            _ => self.leaf(path, declared, live, found),
        }
    }

    fn policy(path: &mut Pointer, declared: &Value, live: &Value, found: &mut Found) {
        let mut inside = Found::default();
        document::compare(path, declared, live, &mut inside);
        if inside.differences.is_empty() {
            found.excuse(path, "policy", Tier::Builtin, Some("the same policy in another form".into()));
        } else if has_unknown(declared) {
            // What has an unknown part may be what is there; and an unknown statement may be any that is too many.
            let open = declared.get("Statement").is_some_and(|them| {
                is_unknown(them) || them.as_array().is_some_and(|them| them.iter().any(is_unknown))
            });
            inside.differences.retain(|one| match &one.expected {
                Some(expected) => !has_unknown(expected),
                None => !open,
            });
            found.excuse(path, "unknown", Tier::Builtin, Some("a part of it could not be resolved".into()));
        }
        found.differences.append(&mut inside.differences);
    }

    fn missing(&self, path: &Pointer, declared: &Value, found: &mut Found) {
        if scalar::says_nothing(declared) {
            found.excuse(path, "empty", Tier::Builtin, Some("empty and missing are the same".into()));
            return;
        }
        if self.facts.defaults.iter().any(|(at, value)| at.matches(path) && value == declared) {
            found.excuse(path, "default", Tier::Schema, Some("missing means this value".into()));
            return;
        }
        // These cannot be taken away from a thing that is there: whoever read the thing does not tell them.
        for (always, rule) in [(&self.facts.create_only, "create-only"), (&self.facts.required, "required")] {
            if matches(always, path) {
                found.excuse(path, rule, Tier::Schema, Some("it is not read back".into()));
                return;
            }
        }
        if path.segments().last().is_some_and(|name| is_secret(name)) {
            found.excuse(path, "secret", Tier::Builtin, Some("a secret is never read back".into()));
            return;
        }
        if covers(&self.facts.deprecated, path) {
            found.excuse(path, "deprecated", Tier::Schema, Some("it may be missing from what is read".into()));
            return;
        }
        found.differ(path, Some(declared), None);
    }

    fn leaf(&self, path: &Pointer, declared: &Value, live: &Value, found: &mut Found) {
        let scalars = if self.said.scalars { &self.facts.scalars[..] } else { &[] };
        let kind = scalars.iter().find(|(at, _)| at.matches(path)).map(|(_, scalar)| *scalar);
        if scalar::same(declared, live, kind) {
            found.excuse(path, "spelling", if kind.is_some() { Tier::Schema } else { Tier::Builtin }, None);
            return;
        }
        if scalar::says_nothing(declared) && scalar::says_nothing(live) {
            found.excuse(path, "empty", Tier::Builtin, None);
            return;
        }
        if scalar::is_masked(declared, live) {
            found.excuse(
                path,
                "masked",
                Tier::Builtin,
                Some("a template is given back with ? for other letters".into()),
            );
            return;
        }
        found.differ(path, Some(declared), Some(live));
    }

    /// What explains the difference of a place as a whole: a transform, or a guess.
    fn whole(&self, path: &Pointer, declared: &Value, live: Option<&Value>) -> Option<Excuse> {
        let all = self.options.transforms.iter().chain(&self.facts.transforms);
        for transform in all.filter(|transform| transform.path.matches(path)) {
            if let Some(detail) = transform::explains(self.root, path, declared, live, transform, self.options.engine) {
                let path = path.clone();
                return Some(Excuse { path, rule: "transform", tier: Tier::Transform, detail: Some(detail) });
            }
        }
        if !self.options.heuristics {
            return None;
        }
        let guess = guess::explains(self, path, declared, live?)?;
        Some(Excuse { path: path.clone(), rule: guess, tier: Tier::Heuristic, detail: None })
    }
}

impl Found {
    fn excuse(&mut self, path: &Pointer, rule: &'static str, tier: Tier, detail: Option<String>) {
        self.excused.push(Excuse { path: path.clone(), rule, tier, detail });
    }

    fn differ(&mut self, path: &Pointer, expected: Option<&Value>, actual: Option<&Value>) {
        let what = match (expected, actual) {
            (None, _) => DifferenceType::Add,
            (_, None) => DifferenceType::Remove,
            _ => DifferenceType::NotEqual,
        };
        let (expected, actual) = (expected.cloned(), actual.cloned());
        self.differences.push(Difference { path: path.clone(), expected, actual, what });
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    ["password", "secretstring", "authtoken", "privatekey", "clientsecret"].iter().any(|word| name.ends_with(word))
}

/// Whether something in it is unknown.
pub(crate) fn has_unknown(value: &Value) -> bool {
    match value {
        _ if is_unknown(value) => true,
        Value::Array(items) => items.iter().any(has_unknown),
        Value::Object(members) => members.values().any(has_unknown),
        _ => false,
    }
}

/// Whether nothing in it is unknown or stands for something else.
fn is_known(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_known),
        Value::Object(members) => !is_unknown(value) && members.values().all(is_known),
        _ => !scalar::is_placeholder(value),
    }
}

fn may_begin(patterns: &[Pattern], top: &str) -> bool {
    patterns.iter().any(|pattern| pattern.may_begin(Some(top)))
}

fn matches(patterns: &[Pattern], path: &Pointer) -> bool {
    patterns.iter().any(|pattern| pattern.matches(path))
}

fn covers(patterns: &[Pattern], path: &Pointer) -> bool {
    patterns.iter().any(|pattern| pattern.covers(path))
}

/// The members of a list by one of their own members.
type ByKey<'v> = BTreeMap<&'v str, &'v Value>;
