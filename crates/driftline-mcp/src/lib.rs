//! Answers agents over the Model Context Protocol, on standard input and output. It knows what can be asked and how;
//! the answers come from whoever runs it, through one trait. It never sees a store.

pub mod schema;
pub mod server;
pub mod tools;

pub use server::{Answers, Refusal, ServeError, serve};
