//! The page and its JSON API.
//!
//! This crate turns answers into HTML and JSON and serves them. It asks for answers through [`Answers`] and has never
//! heard of a store, a configuration file or a clock: whoever implements the trait owns those.

pub mod answers;
pub mod context;
pub mod drift_query;
pub mod model;
pub mod page;
pub mod text;
mod words;

pub use answers::{Answers, Refusal};
