//! Stands in for `query.rs` in a build without the feature `sql`: says what is missing.

use crate::error::{CommandError, CommandResult};
use crate::query_args::QueryArgs;
use crate::settings::Settings;

pub(crate) fn run(_: &Settings, _: &QueryArgs) -> CommandResult<u8> {
    Err(CommandError::new("this driftline was built without SQL")
        .hint("in its source: cargo install --path crates/driftline --features sql (half an hour of CPU time, once)")
        .hint("DuckDB, Spark and others read the store in place, without a build: docs/store.md"))
}
