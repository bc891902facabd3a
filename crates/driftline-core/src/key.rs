//! What a thing is called, whoever saw it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a thing: its type, the place it lives in, and its id there.
///
/// The observer is not part of it, so two observers of one thing meet. Order is type, place, id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResourceKey {
    #[serde(rename = "type")]
    pub kind: String,
    pub place: Place,
    pub id: String,
}

/// A borrowed [`ResourceKey`], for loops over millions of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRef<'a> {
    pub kind: &'a str,
    pub place: &'a str,
    pub id: &'a str,
}

impl ResourceKey {
    pub fn as_ref(&self) -> KeyRef<'_> {
        KeyRef { kind: &self.kind, place: self.place.as_str(), id: &self.id }
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// The id alone where it says everything (an ARN), else type, place and id.
impl fmt::Display for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

impl From<KeyRef<'_>> for ResourceKey {
    fn from(key: KeyRef<'_>) -> Self {
        Self { kind: key.kind.to_owned(), place: Place(key.place.to_owned()), id: key.id.to_owned() }
    }
}

/// Where a thing lives: a path such as `aws/123456789012/us-east-1` or `k8s/prod/default`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place(String);

impl Place {
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The part of a place that is not known.
pub const NOWHERE: &str = "-";

/// The last part of the place of something that belongs to an account but to no region.
pub const GLOBAL: &str = "global";
