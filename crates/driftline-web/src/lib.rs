//! The page and its JSON API.
//!
//! This crate turns answers into HTML and JSON and serves them. It asks for answers through [`Answers`] and has never
//! heard of a store, a configuration file or a clock: whoever implements the trait owns those.

mod access;
pub mod answers;
mod api;
mod assets;
mod cache;
pub mod context;
pub mod drift_query;
mod forms;
mod guard;
mod listen;
mod live;
mod metrics;
pub mod model;
mod openapi;
pub mod page;
mod question;
mod routes;
mod server;
pub mod text;
mod words;

pub use access::{Access, Permission};
pub use answers::{Answers, Refusal, RefusalKind};
pub use listen::{Stop, Stopper, serve, stopper};
pub use server::Options;
