//! How fast things drift: by type now, and by type over the last day, week and month of stored history.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// Of how many resources that were compared how many had drifted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    pub drifted_count: u64,
    pub total_count: u64,
    pub drift_rate: f64,
}

impl Rate {
    #[expect(clippy::cast_precision_loss, reason = "a ratio of counts of resources")]
    pub fn new(drifted_count: u64, total_count: u64) -> Self {
        let drift_rate = if total_count == 0 { 0.0 } else { drifted_count as f64 / total_count as f64 };
        Self { drifted_count, total_count, drift_rate }
    }
}

/// The windows that are always shown, longest last.
pub const WINDOWS: [(&str, SignedDuration); 3] = [
    ("last24h", SignedDuration::from_hours(24)),
    ("last7d", SignedDuration::from_hours(24 * 7)),
    ("last30d", SignedDuration::from_hours(24 * 30)),
];

/// Something that happened to a resource between two versions, and counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: String,
    /// Names the resource within its type; only compared for equality.
    pub resource: String,
    pub at: Timestamp,
}

/// One window: how many resources changed in it, and how many changes that were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    #[serde(flatten)]
    pub rate: Rate,
    pub change_count: u64,
}

/// For each window ending at `now`, the types that changed in it. `totals` counts the resources of each type.
///
/// A resource that changed twice is one drifted resource and two changes. Every type with a change in a longer
/// window is listed in the shorter ones too, with zero.
pub fn windows(
    now: Timestamp,
    events: &[Event],
    totals: &BTreeMap<String, u64>,
) -> BTreeMap<&'static str, BTreeMap<String, Window>> {
    let kinds: BTreeSet<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    let mut result = BTreeMap::new();
    for (name, length) in WINDOWS {
        let start = now.checked_sub(length).unwrap_or(Timestamp::MIN);
        let mut by_kind: BTreeMap<String, Window> = BTreeMap::new();
        for kind in &kinds {
            let inside = || events.iter().filter(|event| event.kind == *kind && event.at > start && event.at <= now);
            let resources: BTreeSet<&str> = inside().map(|event| event.resource.as_str()).collect();
            let drifted = resources.len() as u64;
            // What was deleted in the window is no longer in the totals, yet it was there to drift.
            let total = totals.get(*kind).copied().unwrap_or(0).max(drifted);
            let window = Window { rate: Rate::new(drifted, total), change_count: inside().count() as u64 };
            by_kind.insert((*kind).to_owned(), window);
        }
        result.insert(name, by_kind);
    }
    result
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_resource_that_changed_twice_is_one_resource_and_two_changes() {
        let now: Timestamp = "2026-06-29T10:00:00Z".parse().unwrap();
        let event = |kind: &str, resource: &str, at: &str| Event {
            kind: kind.into(),
            resource: resource.into(),
            at: at.parse().unwrap(),
        };
        let events = [
            event("A", "x", "2026-06-29T09:00:00Z"),
            event("A", "x", "2026-06-29T08:00:00Z"),
            event("A", "y", "2026-06-25T08:00:00Z"),
            event("B", "z", "2026-06-01T08:00:00Z"),
            event("B", "old", "2026-01-01T00:00:00Z"),
            event("B", "future", "2026-07-01T00:00:00Z"),
        ];
        let totals = BTreeMap::from([("A".to_owned(), 4), ("B".to_owned(), 0)]);
        let windows = windows(now, &events, &totals);
        let show = |window: &str, kind: &str| {
            let found = windows[window][kind];
            (found.rate.drifted_count, found.rate.total_count, found.change_count)
        };
        assert_eq!(show("last24h", "A"), (1, 4, 2));
        assert_eq!(show("last7d", "A"), (2, 4, 3));
        assert_eq!(show("last24h", "B"), (0, 0, 0));
        assert_eq!(show("last30d", "B"), (1, 1, 1));
        assert!((windows["last7d"]["A"].rate.drift_rate - 0.5).abs() < f64::EPSILON);
    }
}
