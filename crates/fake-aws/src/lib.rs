//! Stands in front of an emulator of AWS and makes it as unpleasant as AWS can be.
//!
//! It reads who asks what from the signature and the request ([`request`]), does what its [`rules`] say in the service's
//! own [`dialect`], answers from [`fixture`]s what no emulator answers, asks the [`emulator`] otherwise, and counts
//! ([`calls`]). For tests only; it checks no signature.

pub mod calls;
mod control;
pub mod dialect;
pub mod emulator;
pub mod fixture;
pub mod flight;
pub mod listing;
mod operation;
pub mod proxy;
pub mod request;
pub mod rules;
mod tenant;

pub use calls::Counted;
pub use emulator::Emulator;
pub use fixture::Fixture;
pub use flight::Peaks;
pub use proxy::{Proxy, Settings};
pub use rules::Rule;
