//! Signs, paces and retries calls to AWS. It has never heard of drift, and knows no service's types: a call is data.
//!
//! Credentials, regions, SSO, profiles and signing are AWS's own runtime crates. What is here is what those leave to
//! the per-service crates: endpoints, the five protocols, the errors of each dialect, retries and pacing.

pub mod call;
pub mod client;
pub mod endpoint;
pub mod error;
pub mod gate;
mod identity;
pub mod pace;
pub mod retry;
mod sign;
pub mod xml;

pub use call::{Body, Call, Protocol, Reply};
pub use client::{Client, Options};
pub use error::{Error, Kind};
pub use gate::Bounds;
pub use identity::{CallerIdentity, Keys, Role};
pub use pace::{Counts, Pace};
pub use xml::Element;
