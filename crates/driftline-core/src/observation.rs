//! One pass of one source: the only thing that observers and the rest of Driftline share.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::canonical::Properties;
use crate::coverage::Coverage;
use crate::key::ResourceKey;
use crate::name::StreamId;
use crate::value::Value;

/// A thing as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    pub key: ResourceKey,
    pub properties: Properties,
}

/// Something that went wrong while observing, short of failing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    pub about: String,
    pub message: String,
}

/// What the resources of a stream are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// Things as they are. One that a whole listing does not have is gone.
    #[default]
    State,
    /// Things that happened. They do not change, cannot be missing, and are never drift; a pass only adds some. It
    /// says of which spans of time it knows every one.
    Events(Vec<Span>),
}

impl Nature {
    pub fn is_state(&self) -> bool {
        matches!(self, Nature::State)
    }

    /// The spans of which every event is known; `None` of what is not events.
    pub fn spans(&self) -> Option<&[Span]> {
        match self {
            Nature::State => None,
            Nature::Events(spans) => Some(spans),
        }
    }

    /// What is known after a pass, on top of what was known before it.
    #[must_use]
    pub fn on_top_of(&self, before: &Nature) -> Nature {
        match (self, before) {
            (Nature::Events(new), Nature::Events(old)) => Nature::Events(Span::union(new.iter().chain(old).copied())),
            _ => self.clone(),
        }
    }
}

/// A stretch of time, from its first moment up to, and without, its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Span {
    /// The same time in the fewest spans, oldest first. Those without length say nothing.
    pub fn union(spans: impl IntoIterator<Item = Span>) -> Vec<Span> {
        let mut spans: Vec<Span> = spans.into_iter().filter(|span| span.from < span.to).collect();
        spans.sort_unstable();
        let mut joined: Vec<Span> = Vec::new();
        for span in spans {
            match joined.last_mut() {
                Some(last) if span.from <= last.to => last.to = last.to.max(span.to),
                _ => joined.push(span),
            }
        }
        joined
    }

    /// The parts of this span that are in none of the others.
    pub fn without(self, others: &[Span]) -> Vec<Span> {
        let mut left = Vec::new();
        let mut from = self.from;
        for other in Span::union(others.iter().copied()) {
            if other.to <= from {
                continue;
            }
            if other.from >= self.to {
                break;
            }
            if other.from > from {
                left.push(Span { from, to: other.from });
            }
            from = from.max(other.to);
        }
        if from < self.to {
            left.push(Span { from, to: self.to });
        }
        left
    }
}

/// When an event happened: its id begins with that, up to the first slash.
pub fn event_time(id: &str) -> Option<Timestamp> {
    id.split_once('/')?.0.parse().ok()
}

/// Everything an observation says apart from its resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub stream: StreamId,
    pub taken_at: Timestamp,
    /// What produced it, when it says so; a change of this is not a change of the world.
    pub observer: Option<String>,
    pub coverage: Coverage,
    pub problems: Vec<Problem>,
    pub nature: Nature,
}

/// One pass of one source. Resources are kept by key, so any order of input makes the same observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub header: Header,
    resources: BTreeMap<ResourceKey, Properties>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{}` ({} in {}) was given twice in one observation", .0.id, .0.kind, .0.place)]
pub struct DuplicateKey(pub ResourceKey);

impl Observation {
    pub fn new(header: Header) -> Self {
        Self { header, resources: BTreeMap::new() }
    }

    pub fn insert(&mut self, resource: Resource) -> Result<(), DuplicateKey> {
        if self.resources.contains_key(&resource.key) {
            return Err(DuplicateKey(resource.key));
        }
        self.resources.insert(resource.key, resource.properties);
        Ok(())
    }

    pub fn resources(&self) -> impl ExactSizeIterator<Item = (&ResourceKey, &Properties)> {
        self.resources.iter()
    }

    pub fn get(&self, key: &ResourceKey) -> Option<&Properties> {
        self.resources.get(key)
    }
}

/// One pass of a stream as a version keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// Everything that is known, whether this pass saw it or an earlier one.
    pub resources: &'a BTreeMap<ResourceKey, Value>,
    /// What only an earlier one saw.
    pub unseen: &'a BTreeSet<ResourceKey>,
    pub coverage: &'a Coverage,
}

impl<'a> Pass<'a> {
    /// What this pass itself saw.
    pub fn seen(&self, key: &ResourceKey) -> Option<&'a Value> {
        self.resources.get(key).filter(|_| !self.unseen.contains(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: i64, to: i64) -> Span {
        let at = |second| Timestamp::from_second(second).expect("a time");
        Span { from: at(from), to: at(to) }
    }

    #[test]
    fn spans_are_joined_where_they_meet_and_cut_where_they_are_covered() {
        let spans = [span(5, 7), span(0, 2), span(2, 3), span(6, 9), span(4, 4), span(8, 1)];
        assert_eq!(Span::union(spans), [span(0, 3), span(5, 9)]);
        for (whole, expected) in [
            (span(0, 10), vec![span(3, 5), span(9, 10)]),
            (span(1, 2), vec![]),
            (span(3, 5), vec![span(3, 5)]),
            (span(10, 12), vec![span(10, 12)]),
            (span(2, 6), vec![span(3, 5)]),
        ] {
            assert_eq!(whole.without(&spans), expected);
        }
    }

    #[test]
    fn a_pass_adds_to_what_is_known_and_takes_nothing_away() {
        let old = Nature::Events(vec![span(0, 5)]);
        assert_eq!(Nature::Events(vec![span(4, 8)]).on_top_of(&old), Nature::Events(vec![span(0, 8)]));
        assert_eq!(Nature::Events(Vec::new()).on_top_of(&old), old);
    }

    #[test]
    fn the_id_of_an_event_begins_with_its_time() {
        assert_eq!(event_time("1970-01-01T00:00:05Z/x/y"), Timestamp::from_second(5).ok());
        assert_eq!(event_time("1970-01-01T00:00:05Z"), None);
        assert_eq!(event_time("x/1970-01-01T00:00:05Z"), None);
    }
}
