//! Stands in for `engine.rs` in a build without the feature `ballista`: says what is missing.

use driftline_store::Store;
use driftline_store::detect::{Drift, Question};

use crate::error::{CommandError, CommandResult};
use crate::query_args::EngineCommand;
use crate::settings::Settings;

fn missing() -> CommandError {
    CommandError::new("this driftline was built without Ballista").hint(
        "in its source: cargo install --path crates/driftline --features ballista (half an hour of CPU time, once)",
    )
}

pub(crate) fn run(_: &Settings, _: &EngineCommand) -> CommandResult<()> {
    Err(missing())
}

pub(crate) fn drift(_: &Settings, _: &Store, _: &Question, _: &str, _: &str) -> CommandResult<Drift> {
    Err(missing().hint("without --engine this machine answers"))
}
