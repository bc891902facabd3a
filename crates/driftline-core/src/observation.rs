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

/// Everything an observation says apart from its resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub stream: StreamId,
    pub taken_at: Timestamp,
    /// What produced it, when it says so; a change of this is not a change of the world.
    pub observer: Option<String>,
    pub coverage: Coverage,
    pub problems: Vec<Problem>,
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
