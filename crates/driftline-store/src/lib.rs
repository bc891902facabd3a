//! Versions, baselines and history, kept as open data.
//!
//! A version is one immutable Parquet file of the rows that changed and one log record, created only if absent.
//! The log is the append-only part of the Delta Lake protocol, so other engines read the store in place.

pub mod baseline;
mod cache;
pub mod catalog;
mod check;
pub mod detect;
pub mod draft;
pub mod error;
mod events;
pub mod gc;
pub mod history;
mod index;
pub mod location;
pub mod log;
pub mod net;
mod pack;
mod rebase;
mod record;
mod remote;
pub mod segment;
mod slots;
mod state;
pub mod store;
pub mod verify;

pub use baseline::{Accepted, Baseline};
pub use catalog::{Catalog, Stream, Version};
pub use detect::{Drift, Finding, Question, SourceReport};
pub use draft::{Committed, Draft};
pub use error::StoreError;
pub use location::{Bucket, Location, Place};
pub use log::FileRef;
pub use store::{Store, Tuning};
