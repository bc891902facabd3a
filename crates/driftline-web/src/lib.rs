//! The page and its JSON API.
//!
//! This crate turns answers into HTML and JSON and serves them. It asks for answers through [`Answers`] and has never
//! heard of a store, a configuration file or a clock: whoever implements the trait owns those.

pub mod answers;
pub mod model;

pub use answers::{Answers, Refusal};
