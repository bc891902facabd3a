//! A run over many sources, accounts and regions: what it is to do, and what came of it. In every build, whether it can
//! ask AWS or not.

use std::collections::BTreeMap;
use std::time::Duration;

use driftline_core::SourceName;
use serde::Serialize;

use crate::accounts::Shard;
use crate::args::PermissionArgs;
use crate::error::CommandError;
use crate::live_args::LiveArgs;
use crate::observe::Line;

/// One source that asks AWS, and what for.
#[derive(Debug)]
#[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "only what asks AWS acts on it"))]
pub(crate) struct Asking<'a> {
    pub source: &'a SourceName,
    pub observer: &'a str,
    pub args: LiveArgs,
}

/// Bounds on requests that are on the wire.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AtOnce {
    pub overall: usize,
    pub per_account: Option<usize>,
    pub per_region: Option<usize>,
    pub per_service: Option<usize>,
}

/// What is to be done.
#[derive(Debug)]
#[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "only what asks AWS acts on it"))]
pub(crate) struct Sweep<'a> {
    pub sources: Vec<Asking<'a>>,
    pub at_once: AtOnce,
    pub max_calls: Option<u64>,
    pub shard: Option<Shard>,
    /// Whether it is of configured sources: then who is in the organization is kept, and what is known of an account that
    /// cannot be entered becomes not checked.
    pub fleet: bool,
    /// Whether somebody tells the gaps of all accounts at the end, so that those of each stream need not be said.
    pub terse: bool,
    pub permissions: PermissionArgs,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    pub lines: Vec<Line>,
    pub accounts: BTreeMap<String, AccountRun>,
    pub failures: Vec<Failure>,
    /// Streams of which another run, that looked later, committed a version first.
    pub overtaken: Vec<String>,
}

/// What came of one source: what was committed, and what could not be.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub lines: Vec<Line>,
    pub failures: Vec<CommandError>,
    pub partial: bool,
}

/// Something that could not be observed or committed, and not for want of rights or patience.
#[derive(Debug)]
pub(crate) struct Failure {
    pub lost: Lost,
    pub error: CommandError,
}

/// What is lost by a failure. Sources are known by their place in the list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "only what asks AWS fails in part"))]
pub(crate) enum Lost {
    /// Whatever there was to ask.
    All,
    /// Who is in the organization, which is of no source.
    Roster,
    /// All of a source.
    Source(usize),
    /// A place or a stream of a source.
    Part(usize),
}

/// How it went in one account.
#[derive(Debug, Default)]
pub(crate) struct AccountRun {
    pub name: Option<String>,
    /// Why it was not entered, if it was not: to be told, and in the words that are kept.
    pub unreached: Option<(CommandError, String)>,
    /// Places that were looked at, whatever was seen there.
    pub looked: usize,
    pub streams: usize,
    pub resources: u64,
    pub complete: usize,
    pub partial: usize,
    /// Why extents are partial, with how many of them are for that.
    pub reasons: BTreeMap<String, usize>,
    pub failures: usize,
    pub calls: u64,
    pub throttled: u64,
    /// From entering it until the last of it was committed.
    pub took: Duration,
}

/// How it went, in a word. What needs a person comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    Unreached,
    Failed,
    Partial,
    Observed,
}

impl Standing {
    pub(crate) const ALL: [Standing; 4] =
        [Standing::Unreached, Standing::Failed, Standing::Partial, Standing::Observed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Standing::Unreached => "not entered",
            Standing::Failed => "failed",
            Standing::Partial => "partial",
            Standing::Observed => "observed",
        }
    }
}

impl AccountRun {
    /// Whether nothing of it was looked at because it could not be entered.
    pub(crate) fn is_unseen(&self) -> bool {
        self.unreached.is_some() && self.looked == 0
    }

    pub(crate) fn standing(&self) -> Standing {
        match self {
            run if run.unreached.is_some() => Standing::Unreached,
            run if run.failures > 0 => Standing::Failed,
            run if run.partial > 0 => Standing::Partial,
            _ => Standing::Observed,
        }
    }
}

impl Swept {
    /// Whether something was not looked at, or not whole.
    pub(crate) fn is_partial(&self) -> bool {
        self.accounts.values().any(|run| run.unreached.is_some() || run.partial > 0)
    }
}
