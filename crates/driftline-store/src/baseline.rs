//! Baselines: named, pinned versions, plus what was accepted since, by whom, when and why.

use std::collections::BTreeMap;

use driftline_core::{Pointer, ResourceKey, StreamId, Value};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A version per stream, and what was accepted since it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    pub set_at: Timestamp,
    pub set_by: String,
    pub pins: BTreeMap<StreamId, u64>,
    pub accepted: Vec<Accepted>,
}

/// A difference that someone looked at and took as the new expectation.
///
/// It carries the values it is about, so it outlives every version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    pub stream: StreamId,
    pub key: ResourceKey,
    /// Only this property; the whole resource without it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<Pointer>,
    /// What is expected from now on; absent if its absence is.
    #[serde(skip_serializing_if = "Option::is_none", default, with = "presence")]
    pub value: Option<Value>,
    /// The whole resource as the pinned version has it; absent if it is not there.
    #[serde(skip_serializing_if = "Option::is_none", default, with = "presence")]
    pub pinned: Option<Value>,
    pub reason: String,
    pub by: String,
    pub at: Timestamp,
}

/// Keeps "absent" and "present and null" apart, which a plain `Option` would fold into one.
mod presence {
    use driftline_core::Value;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde's `with` passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().unwrap_or(&Value::Null).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(deserializer).map(Some)
    }
}

impl Accepted {
    /// Whether this acceptance replaces `other`: it speaks of the same place, or of one above it.
    pub(crate) fn replaces(&self, other: &Accepted) -> bool {
        self.stream == other.stream
            && self.key == other.key
            && match (&self.path, &other.path) {
                (None, _) => true,
                (Some(mine), Some(theirs)) => theirs.is_within(mine),
                (Some(_), None) => false,
            }
    }
}
