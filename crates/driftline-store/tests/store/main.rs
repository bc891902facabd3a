//! The store as a whole, against a model made of maps; and under writers that race.
#![expect(clippy::unwrap_used, reason = "tests")]

mod events;
mod lines;
mod model;
mod packs;
mod races;
mod support;
