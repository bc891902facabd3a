//! Normalizers: the bytes of one source in, an observation out.
//!
//! The only source-specific code there is. Each is deterministic and does no I/O of its own.

pub mod builtin;
pub mod place;
pub mod plain;
