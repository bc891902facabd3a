//! What is told: owned, bounded, and without secrets. Whoever fills these in has replaced every sealed value by words.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The schema of [`Event`] as JSON. Members may be added, never renamed or removed.
pub const SCHEMA: &str = "driftline.notification/v1";

/// One delivery to one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The same however often it is sent; whoever receives it may forget the second.
    pub id: String,
    pub channel: String,
    /// What it is about, where later messages may be about the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub at: Timestamp,
    /// What everything is held against.
    pub baseline: String,
    #[serde(flatten)]
    pub about: About,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "about")]
pub enum About {
    /// One finding, and what became of it.
    Finding(Turned<Finding>),
    /// A source that does not work, or does again.
    Source(Turned<Health>),
    /// Many of both at once.
    Digest(Box<Digest>),
    /// Somebody tries the channel out.
    Test,
}

impl About {
    /// One word for it: the turn, `digest` or `test`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Finding(turned) => turned.event.name(),
            Self::Source(turned) => turned.event.name(),
            Self::Digest(_) => "digest",
            Self::Test => "test",
        }
    }
}

/// What became of something since it was last told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    New,
    Changed,
    Resolved,
    /// It comes and goes; nothing more is said until it has been quiet for a while.
    Flapping,
    /// It was flapping, and is as it was last told.
    Settled,
}

impl Turn {
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Resolved => "resolved",
            Self::Flapping => "flapping",
            Self::Settled => "settled",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turned<T> {
    pub event: Turn,
    /// It was resolved before, and is back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// Why it is resolved: `back`, `accepted`, `baseline`, `gone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// How often it changed lately, of what flaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_lately: Option<usize>,
    pub subject: T,
}

/// One resource that is not as expected. Of one that is resolved: as it was last told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The same as long as source, type, place and id are.
    pub id: String,
    pub canonical_id: String,
    pub resource_type: String,
    pub place: String,
    pub source: String,
    /// `drifted` or `unknown`.
    pub status: String,
    /// `modified` or `deleted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<Timestamp>,
    /// The first of them; `change_count` says how many there are.
    pub changes: Vec<Change>,
    pub change_count: usize,
}

/// One change: both sides as people read them, short, never a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// A JSON pointer; empty for the whole resource.
    pub path: String,
    pub before: String,
    pub after: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
}

/// How a source does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    pub id: String,
    pub source: String,
    /// `failing` or `stale`.
    pub trouble: String,
    /// Why, in one line.
    pub reason: String,
}

/// Many things at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    pub cause: DigestCause,
    pub counts: Counts,
    /// How many of the findings that are new or changed have each severity.
    pub severities: BTreeMap<String, usize>,
    /// The worst first; at most as many as there is room for.
    pub findings: Vec<Turned<Finding>>,
    pub sources: Vec<Turned<Health>>,
    /// How many are not listed.
    pub more: usize,
}

/// Why there is one message and not many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DigestCause {
    /// The channel is told for the first time.
    First,
    /// There would have been too many.
    Storm,
    /// They were held during a maintenance window.
    Quiet,
    /// The channel has no threads, so that one message tells of a round.
    Round,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub new: usize,
    pub changed: usize,
    pub resolved: usize,
    pub flapping: usize,
    pub settled: usize,
}

impl Counts {
    pub fn add(&mut self, turn: Turn) {
        match turn {
            Turn::New => self.new += 1,
            Turn::Changed => self.changed += 1,
            Turn::Resolved => self.resolved += 1,
            Turn::Flapping => self.flapping += 1,
            Turn::Settled => self.settled += 1,
        }
    }

    pub fn total(self) -> usize {
        self.new + self.changed + self.resolved + self.flapping + self.settled
    }

    /// `2 new, 1 resolved`; nothing when there is nothing.
    pub fn words(self) -> String {
        let parts = [
            (self.new, "new"),
            (self.changed, "changed"),
            (self.resolved, "resolved"),
            (self.flapping, "flapping"),
            (self.settled, "settled"),
        ];
        let some = parts.iter().filter(|(number, _)| *number > 0);
        some.map(|(number, word)| format!("{number} {word}")).collect::<Vec<_>>().join(", ")
    }
}

impl Message {
    /// The message as the JSON that a webhook gets.
    pub fn json(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(&self.event).unwrap_or_default();
        if let Some(members) = value.as_object_mut() {
            members.insert("schema".into(), SCHEMA.into());
            members.insert("deliveryId".into(), self.id.clone().into());
            members.insert("channel".into(), self.channel.clone().into());
            // A tag that says what it is about also says what happened, in one place for everything.
            members.insert("event".into(), self.event.about.word().into());
        }
        value
    }
}
