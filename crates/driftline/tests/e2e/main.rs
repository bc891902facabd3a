//! The real program, end to end: what users type, what they see, and what stays on disk.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(clippy::disallowed_methods, reason = "tests are told by their environment what is installed")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values to be given away")]

mod answers;
#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "bucket")]
mod azure;
mod bad_input;
#[cfg(feature = "web")]
mod browser;
mod cloudformation;
mod commands;
mod compare;
mod config;
mod crossing;
mod damage;
mod documents;
#[cfg(feature = "ballista")]
mod engine;
mod engines;
mod experiment;
mod fleet;
mod interop;
mod jsonata;
mod judging;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "kube")]
mod operator;
#[cfg(feature = "sql")]
mod queries;
mod query;
mod reliability;
mod reports;
mod schema;
#[cfg(feature = "web")]
mod serve;
mod story;
mod support;
mod swamp;
mod terraform;
mod trail;
mod traps;
#[cfg(feature = "notify")]
mod watch;
