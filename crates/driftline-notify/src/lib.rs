//! Tells people: messages in, deliveries out, and an outbox between them that survives a crash at any instruction.
//!
//! What is told is decided elsewhere; nothing here has seen a store, a baseline or a rule. Time, randomness and secrets
//! are arguments.

pub mod channel;
pub mod courier;
pub mod email;
pub mod http;
pub mod journal;
pub mod message;
pub mod outbox;
pub mod retry;
pub mod slack;
#[cfg(feature = "sns")]
pub mod sns;
pub mod words;

pub use channel::{Channel, Endpoint, Failure, Sent, SetupError};
pub use courier::{Courier, Happened};
pub use journal::JournalError;
pub use message::{About, Change, Counts, Digest, DigestCause, Event, Finding, Health, Message, Turn, Turned};
pub use outbox::{ChannelState, Outbox, Round, State, Told, Update};
