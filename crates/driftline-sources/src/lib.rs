//! Normalizers: the bytes of one source in, an observation out.
//!
//! The only source-specific code there is. Each is deterministic and does no I/O of its own.

pub mod adopt;
pub mod aws;
pub mod builtin;
pub mod cloudformation;
pub mod cloudtrail;
pub mod common;
pub mod config;
pub mod declared;
pub mod dns;
pub mod identity;
pub mod inventory;
pub mod kubernetes;
pub mod mapped;
pub mod normalize;
pub mod organization;
pub mod place;
pub mod plain;
pub mod schema;
pub mod severity;
pub mod shuffle;
pub mod swamp;
pub mod target;
pub mod terraform;
pub mod topology;
