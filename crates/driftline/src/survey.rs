//! What every source says now, or said at a time: the whole of it, for questions that go across sources.

use std::collections::BTreeMap;

use driftline_core::{Coverage, Outcome, ResourceKey, StreamId, Value};
use driftline_sources::inventory;
use driftline_store::Store;
use jiff::Timestamp;

use crate::drift::is_named;
use crate::error::CommandResult;

/// One stream at one version.
#[derive(Debug)]
pub(crate) struct Surveyed {
    pub stream: StreamId,
    pub version: u64,
    pub taken_at: Timestamp,
    pub coverage: Coverage,
    pub resources: BTreeMap<ResourceKey, Value>,
    /// Whether it tells who manages things rather than what is there.
    pub claims: bool,
}

/// What the streams that are named, or all, have at a time, or now.
pub(crate) fn survey(store: &Store, named: &[StreamId], at: Option<Timestamp>) -> CommandResult<Vec<Surveyed>> {
    let mut found = Vec::new();
    for (id, stream) in store.catalog().streams().filter(|(id, _)| is_named(id, named)) {
        let version = match at {
            Some(time) => stream.at(time),
            None => stream.head(),
        };
        let Some(version) = version else { continue };
        let resources = store.resources(id, version.number, |_| true)?;
        found.push(Surveyed {
            claims: resources.values().any(is_claim),
            stream: id.clone(),
            version: version.number,
            taken_at: version.taken_at,
            coverage: store.coverage(&version.coverage)?,
            resources,
        });
    }
    Ok(found)
}

/// What Driftline itself makes up to tell something: edges, findings. No one owns these.
pub(crate) fn is_a_thing(kind: &str) -> bool {
    !kind.starts_with("Driftline::") && !kind.starts_with("Terraform::")
}

/// The members in which a normalizer keeps who manages a thing.
pub(crate) const TERRAFORM: &str = "$terraform";
pub(crate) const CLOUDFORMATION: &str = driftline_sources::cloudformation::ABOUT;

/// Whether this is what a tool manages, and not what somebody saw.
pub(crate) fn is_claim(value: &Value) -> bool {
    value.get(TERRAFORM).or_else(|| value.get(CLOUDFORMATION)).is_some()
}

/// Whether the listing would have everything of its extents, and not just what some backend or tool knows of.
pub(crate) fn sees_everything(coverage: &Coverage) -> bool {
    inventory::sees_everything(coverage.basis())
}

/// Why a place was not wholly seen by any of these, if it was not.
pub(crate) fn unseen<'s>(
    surveyed: impl Iterator<Item = &'s Surveyed>,
    kind: &str,
    place: &str,
    counts: impl Fn(&Coverage) -> bool,
) -> Option<String> {
    let mut why = None;
    for one in surveyed {
        match one.coverage.outcome(kind, place) {
            Some(Outcome::Complete) if counts(&one.coverage) => return None,
            Some(Outcome::Complete) => {
                let basis = one.coverage.basis().unwrap_or_default();
                why = why.or_else(|| Some(format!("{} does not list everything ({basis})", one.stream)));
            }
            Some(Outcome::Partial { reason }) => {
                why = Some(format!("{} listed it only in part: {reason}", one.stream));
            }
            None => {}
        }
    }
    Some(why.unwrap_or_else(|| format!("no source looked at {kind} in {place}")))
}
