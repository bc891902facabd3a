//! What drift is.
//!
//! Everything here is a pure function of its arguments: no I/O, no clock, no async, no vendor. Observers
//! produce [`Observation`]s, the store keeps them, and this crate says what two of them mean side by side.

pub mod canonical;
pub mod compare;
pub mod coverage;
pub mod difference;
pub mod graph;
pub mod judge;
pub mod key;
pub mod name;
pub mod observation;
pub mod pointer;
pub mod posture;
pub mod rule;
pub mod seal;
pub mod severity;
pub mod standing;
pub mod text;
pub mod value;
pub mod velocity;
pub mod verdict;

pub use canonical::{ContentId, Properties, PropertiesRef};
pub use compare::{Change, Comparison, Excused, compare};
pub use coverage::{Coverage, Extent, Outcome};
pub use key::{KeyRef, Place, ResourceKey};
pub use name::{BaselineName, NameError, SourceName, StreamId};
pub use observation::{Header, Nature, Observation, Pass, Problem, Resource, Span};
pub use pointer::{Pattern, Pointer};
pub use rule::{Equivalence, Origin, Rule, RuleBook, RuleKind};
pub use severity::Severity;
pub use value::{Number, Value};
pub use verdict::{DriftKind, Sight, Status};
