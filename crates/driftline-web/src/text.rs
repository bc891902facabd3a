//! Text from outside, made safe to look at: the rule of the reports and the terminal.

pub use driftline_core::text::{is_hidden, visible};
