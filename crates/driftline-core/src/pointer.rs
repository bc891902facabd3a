//! JSON pointers (RFC 6901), and patterns over them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::value::Value;

/// Where in a value something is: a list of member names and array indices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer(Vec<String>);

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a JSON pointer: {reason}")]
pub struct PointerError {
    pub text: String,
    pub reason: &'static str,
}

impl Pointer {
    pub fn root() -> Self {
        Self::default()
    }

    pub fn from_segments(segments: impl IntoIterator<Item = String>) -> Self {
        Self(segments.into_iter().collect())
    }

    pub fn segments(&self) -> &[String] {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn child(&self, segment: impl Into<String>) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment.into());
        Self(segments)
    }

    /// This place, and from there on the other.
    #[must_use]
    pub fn join(&self, other: &Pointer) -> Self {
        Self(self.0.iter().chain(&other.0).cloned().collect())
    }

    pub fn push(&mut self, segment: impl Into<String>) {
        self.0.push(segment.into());
    }

    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// Whether this pointer is `other` or lies beneath it.
    pub fn is_within(&self, other: &Pointer) -> bool {
        self.0.starts_with(&other.0)
    }

    pub fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |at, segment| match at {
            Value::Object(members) => members.get(segment),
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// Puts `new` at this place (`None` takes away what is there). Missing objects on the way are made;
    /// an index past the end appends. `false` when the place cannot exist in this value.
    pub fn set(&self, value: &mut Value, new: Option<Value>) -> bool {
        let Some((last, parents)) = self.0.split_last() else {
            *value = new.unwrap_or_default();
            return true;
        };
        let mut at = value;
        for segment in parents {
            at = match at {
                Value::Object(members) => {
                    if new.is_none() && !members.contains_key(segment) {
                        return true;
                    }
                    members.entry(segment.clone()).or_insert_with(|| Value::Object(BTreeMap::default()))
                }
                Value::Array(items) => match segment.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                    Some(item) => item,
                    None => return false,
                },
                _ => return false,
            };
        }
        match at {
            Value::Object(members) => {
                match new {
                    Some(new) => members.insert(last.clone(), new),
                    None => members.remove(last),
                };
                true
            }
            Value::Array(items) => match (last.parse::<usize>(), new) {
                (Ok(index), Some(new)) if index < items.len() => {
                    items[index] = new;
                    true
                }
                (_, Some(new)) => {
                    items.push(new);
                    true
                }
                (Ok(index), None) if index < items.len() => {
                    items.remove(index);
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.0 {
            write!(f, "/{}", segment.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        let error = |reason| PointerError { text: text.to_owned(), reason };
        if text.is_empty() {
            return Ok(Self::root());
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(error("it must be empty or begin with `/`"));
        };
        rest.split('/')
            .map(|segment| unescape(segment).ok_or_else(|| error("`~` must be followed by 0 or 1")))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn unescape(segment: &str) -> Option<String> {
    // Almost no name has one, and the table of schemas has tens of thousands of names.
    if !segment.contains('~') {
        return Some(segment.to_owned());
    }
    let mut text = String::with_capacity(segment.len());
    let mut chars = segment.chars();
    while let Some(char) = chars.next() {
        match char {
            '~' => match chars.next()? {
                '0' => text.push('~'),
                '1' => text.push('/'),
                _ => return None,
            },
            char => text.push(char),
        }
    }
    Some(text)
}

impl TryFrom<String> for Pointer {
    type Error = PointerError;

    fn try_from(text: String) -> Result<Self, PointerError> {
        text.parse()
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> String {
        pointer.to_string()
    }
}

/// A pointer in which `*` stands for any one segment and `**` for any number of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Vec<Step>);

/// What a pattern says of the next segments of a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// This one.
    Literal(String),
    /// Any one.
    Any,
    /// Any number of them, also none.
    Deep,
}

impl Pattern {
    /// The pattern that names one place, whatever its segments look like.
    pub fn exactly<S: Into<String>>(segments: impl IntoIterator<Item = S>) -> Self {
        Self(segments.into_iter().map(|segment| Step::Literal(segment.into())).collect())
    }

    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Everything in a value that the pattern names.
    pub(crate) fn find_all<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let mut found = Vec::new();
        find_all(&self.0, value, &mut found);
        found
    }

    /// Whether the pattern names exactly this place.
    pub fn matches(&self, pointer: &Pointer) -> bool {
        self.may_begin(pointer.0.first()) && steps_match(&self.0, pointer.segments())
    }

    /// Whether the pattern names this place or one above it: what is said of a subtree holds for its leaves.
    pub fn covers(&self, pointer: &Pointer) -> bool {
        let segments = pointer.segments();
        self.may_begin(segments.first()) && (0..=segments.len()).any(|upto| steps_match(&self.0, &segments[..upto]))
    }

    /// Whether a place that begins so may be named, or lie beneath one that is. Most patterns are told apart by this.
    #[inline]
    pub fn may_begin<S: AsRef<str>>(&self, first: Option<S>) -> bool {
        match (self.0.first(), first) {
            (Some(Step::Literal(name)), Some(first)) => name == first.as_ref(),
            (Some(Step::Literal(_) | Step::Any), None) => false,
            _ => true,
        }
    }

    /// A name that stands, as it is, in the text of every place that this pattern names or lies above of.
    pub(crate) fn needle(&self) -> Option<&str> {
        let literal = |step: &Step| match step {
            // Characters that JSON or a pointer escapes would have to be looked for in their other forms, too.
            Step::Literal(name) if name.chars().all(|char| char.is_ascii_alphanumeric() || "-_.:@ ".contains(char)) => {
                Some(name.len())
            }
            _ => None,
        };
        let longest = self.0.iter().max_by_key(|step| literal(step))?;
        match longest {
            Step::Literal(name) if literal(longest).is_some_and(|length| length > 0) => Some(name),
            _ => None,
        }
    }

    /// Whether every place is named: nothing but stars, or nothing at all.
    pub fn names_everything(&self) -> bool {
        self.0.iter().all(|step| !matches!(step, Step::Literal(_)))
    }
}

fn steps_match(steps: &[Step], segments: &[String]) -> bool {
    match (steps.split_first(), segments.split_first()) {
        (None, None) => true,
        (Some((Step::Deep, rest)), _) => (0..=segments.len()).any(|skip| steps_match(rest, &segments[skip..])),
        (None, Some(_)) | (Some(_), None) => false,
        (Some((Step::Any, rest)), Some((_, tail))) => steps_match(rest, tail),
        (Some((Step::Literal(name), rest)), Some((segment, tail))) => name == segment && steps_match(rest, tail),
    }
}

/// Collects what `steps` name in a value.
fn find_all<'v>(steps: &[Step], value: &'v Value, found: &mut Vec<&'v Value>) {
    let Some((first, rest)) = steps.split_first() else {
        found.push(value);
        return;
    };
    let children: Box<dyn Iterator<Item = &'v Value>> = match (first, value) {
        (Step::Literal(name), Value::Object(members)) => Box::new(members.get(name).into_iter()),
        (Step::Literal(name), Value::Array(items)) => {
            Box::new(name.parse::<usize>().ok().and_then(|at| items.get(at)).into_iter())
        }
        (_, Value::Object(members)) => Box::new(members.values()),
        (_, Value::Array(items)) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    };
    if *first == Step::Deep {
        find_all(rest, value, found);
        children.for_each(|child| find_all(steps, child, found));
    } else {
        children.for_each(|child| find_all(rest, child, found));
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match step {
                Step::Any => f.write_str("/*")?,
                Step::Deep => f.write_str("/**")?,
                Step::Literal(name) => write!(f, "/{}", name.replace('~', "~0").replace('/', "~1"))?,
            }
        }
        Ok(())
    }
}

impl FromStr for Pattern {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        let pointer: Pointer = text.parse()?;
        let steps = pointer.0.into_iter().map(|segment| match segment.as_str() {
            "*" => Step::Any,
            "**" => Step::Deep,
            _ => Step::Literal(segment),
        });
        Ok(Self(steps.collect()))
    }
}

impl TryFrom<String> for Pattern {
    type Error = PointerError;

    fn try_from(text: String) -> Result<Self, PointerError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.to_string()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_places_and_cover_what_lies_beneath() {
        for (pattern, pointer, matches, covers) in [
            ("/a/b", "/a/b", true, true),
            ("/a/b", "/a/b/c", false, true),
            ("/a/b", "/a", false, false),
            ("/a/*", "/a/0", true, true),
            ("/a/*/c", "/a/0/c", true, true),
            ("/a/*/c", "/a/c", false, false),
            ("/**/arn", "/arn", true, true),
            ("/**/arn", "/x/0/arn", true, true),
            ("/**/arn", "/x/arnold", false, false),
            ("/a~1b", "/a~1b", true, true),
            ("", "/anything", false, true),
        ] {
            let (pattern_, pointer_): (Pattern, Pointer) = (pattern.parse().unwrap(), pointer.parse().unwrap());
            assert_eq!(pattern_.matches(&pointer_), matches, "{pattern} matches {pointer}");
            assert_eq!(pattern_.covers(&pointer_), covers, "{pattern} covers {pointer}");
            assert_eq!(pattern_.to_string(), pattern);
        }
    }

    #[test]
    fn a_pattern_of_stars_names_everything() {
        for (pattern, everything) in
            [("", true), ("/**", true), ("/*", true), ("/*/*", true), ("/**/*", true), ("/a", false), ("/**/a", false)]
        {
            assert_eq!(pattern.parse::<Pattern>().unwrap().names_everything(), everything, "{pattern}");
        }
    }

    #[test]
    fn a_text_that_is_no_pointer_is_refused() {
        assert!("a/b".parse::<Pointer>().is_err());
        assert!("/a~2".parse::<Pointer>().is_err());
    }
}
