//! Small things that both kinds of test need.

use driftline_core::coverage::Coverage;
use driftline_core::{
    Extent, Header, Nature, Observation, Outcome, Place, Properties, Resource, ResourceKey, StreamId, Value,
};
use driftline_store::Tuning;
use jiff::{SignedDuration, Timestamp};

/// Does everything early, so that small stores use all of it.
pub(crate) const EAGER: Tuning =
    Tuning { snapshot_every: 3, view_rows: 1, index_rows: 1, rebase_bytes: 0, rebase_versions: 4, pack_files: 2 };

pub(crate) fn stream(name: &str) -> StreamId {
    name.parse().unwrap()
}

pub(crate) fn moment(step: u32) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start + SignedDuration::from_hours(i64::from(step))
}

pub(crate) fn key(kind: &str, place: &str, id: &str) -> ResourceKey {
    ResourceKey { kind: kind.into(), place: Place::new(place), id: id.into() }
}

pub(crate) fn observation<'a>(
    stream: &StreamId,
    taken_at: Timestamp,
    coverage: Coverage,
    resources: impl IntoIterator<Item = (&'a ResourceKey, &'a Value)>,
) -> Observation {
    let header = Header {
        stream: stream.clone(),
        taken_at,
        observer: None,
        coverage,
        problems: Vec::new(),
        nature: Nature::State,
    };
    let mut observation = Observation::new(header);
    for (key, value) in resources {
        observation.insert(Resource { key: key.clone(), properties: Properties::new(value) }).unwrap();
    }
    observation
}

pub(crate) fn extent(kind: &str, place: &str) -> Extent {
    Extent { kind: kind.into(), place: place.into() }
}

pub(crate) fn partial() -> Outcome {
    Outcome::Partial { reason: "throttled".into() }
}
