//! SQL over the store: read-only, within limits of time, memory and disk; embedded, or on a Ballista cluster.
//!
//! Views are made of the files that the log says count. This crate knows the store and what drift is; what `findings`
//! are is told by whoever asks, because only the program has the rules and severities.

pub mod answer;
#[cfg(feature = "ballista")]
pub mod cluster;
pub mod error;
mod extent;
mod functions;
mod history;
mod json;
pub mod library;
mod masked;
mod objects;
pub mod parameters;
pub mod query;
mod resources;
mod sizes;
mod tables;
pub mod views;

pub use answer::Answer;
pub use error::{Allowing, SqlError};
pub use extent::LONGEST;
pub use library::{Library, Named};
pub use objects::Opener;
pub use query::{Engine, Limits, Stop, ask};
pub use tables::FindingRow;
pub use views::Asked;
