//! The real program, end to end: what users type, what they see, and what stays on disk.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod bad_input;
mod commands;
mod config;
mod damage;
mod interop;
mod judging;
mod reliability;
mod story;
mod support;
