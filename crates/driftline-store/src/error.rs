//! Everything that can go wrong with a store, each said once.

use driftline_core::{BaselineName, ResourceKey, StreamId};
use jiff::Timestamp;
use thiserror::Error;

/// The newest store format that this program knows.
pub const FORMAT: u32 = PACK_FORMAT;

/// Since when versions may share a file.
pub(crate) const PACK_FORMAT: u32 = 3;

/// Since when there are streams of events.
pub(crate) const EVENT_FORMAT: u32 = 2;

/// The format of a record that every program before this one understands. A record has the least format that it takes
/// to understand it, so that a store without events and packed files stays readable for all.
pub(crate) const PLAIN_FORMAT: u32 = 1;

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("there is no store at `{location}`")]
    NoStore { location: String },
    #[error("`{location}` is not a store: {reason}")]
    NotAStore { location: String, reason: String },
    #[error(
        "the store at `{location}` has format {found}; this program knows format {FORMAT} and will not touch a newer one"
    )]
    NewerFormat { location: String, found: u32 },
    #[error("cannot {action} `{path}` in the store")]
    Io {
        action: &'static str,
        path: String,
        #[source]
        source: object_store::Error,
    },
    #[error("`{path}` is damaged: {reason}")]
    Damaged { path: String, reason: String },
    #[error("cannot write a Parquet file")]
    Parquet(#[source] parquet::errors::ParquetError),
    #[error("`{0}` holds events, and not the state of things: nothing in it can drift")]
    Events(StreamId),
    #[error("`{stream}` holds {holds}, and this is an observation of {given}")]
    OtherNature { stream: StreamId, holds: &'static str, given: &'static str },
    #[error("the id of the event `{id}` does not begin with its time")]
    Timeless { id: String },
    #[error("the source `{0}` has no versions in this store")]
    NoSuchStream(StreamId),
    #[error("the source `{stream}` has no version {version}")]
    NoSuchVersion { stream: StreamId, version: u64 },
    #[error("there is no baseline `{0}`")]
    NoSuchBaseline(BaselineName),
    #[error("`{}` ({} in {}) is given twice: as resource {first} and as resource {second}", key.id, key.kind, key.place)]
    Duplicate { key: Box<ResourceKey>, first: u32, second: u32 },
    #[error("the observation of `{stream}` is empty, but version {version} has {rows} resources")]
    Empty { stream: StreamId, version: u64, rows: u64 },
    #[error("the observation of `{stream}` was taken at {taken_at}, before version {version} ({newest})")]
    OutOfOrder { stream: StreamId, taken_at: Timestamp, version: u64, newest: Timestamp },
    #[error("the secrets in this store were sealed with another key ({expected}, not {found})")]
    OtherSealKey { expected: String, found: String },
    #[error("{tries} other commits came first, one after the other")]
    Contended { tries: u32 },
    #[error("an observation has more than {} resources", u32::MAX)]
    TooMany,
}

impl StoreError {
    pub(crate) fn damaged(path: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        StoreError::Damaged { path: path.into(), reason: reason.to_string() }
    }
}
