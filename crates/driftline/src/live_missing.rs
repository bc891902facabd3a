//! Stands in for `live.rs` in a build without the feature `aws`: says what is missing.

use driftline_core::{SourceName, Span};
use driftline_sources::cloudtrail::Event;

use crate::args::{IamPolicyArgs, PermissionArgs};
use crate::error::{CommandError, CommandResult};
use crate::live_args::LiveArgs;
use crate::settings::Settings;
use crate::swept::{Failure, Lost, Observed, Sweep, Swept};

fn missing() -> CommandError {
    CommandError::new("this build cannot ask AWS itself")
        .hint("name documents to read, or build with the feature `aws`: cargo build --release --features aws")
}

pub(crate) fn observe(
    _: &Settings,
    _: &str,
    _: &SourceName,
    _: &LiveArgs,
    _: PermissionArgs,
) -> CommandResult<Observed> {
    Err(missing())
}

pub(crate) fn sweep(_: &Settings, sweep: &Sweep<'_>) -> Swept {
    let each = 0..sweep.sources.len();
    let failures = each.map(|source| Failure { lost: Lost::Source(source), error: missing() }).collect();
    Swept { failures, ..Swept::default() }
}

pub(crate) fn plan_all(_: &Settings, _: &Sweep<'_>) -> CommandResult<()> {
    Err(missing())
}

pub(crate) fn plan(_: &Settings, _: &str, _: &SourceName, _: &LiveArgs) -> CommandResult<()> {
    Err(missing())
}

pub(crate) fn lookup(
    _: &Settings,
    _: Option<&str>,
    _: &str,
    _: &str,
    _: Span,
    _: &[&str],
) -> CommandResult<Vec<Event>> {
    Err(missing())
}

pub(crate) fn iam_policy(_: &Settings, _: &IamPolicyArgs) -> CommandResult<()> {
    Err(missing())
}
