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

/// What one pass of a source did to the resources of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    pub total: u64,
    /// How many changed, went or came back, and it counts.
    pub changed: u64,
    /// Of those, how many are now as they were at some earlier pass.
    pub returned: u64,
}

/// A type whose rate says more about how it is observed than about the infrastructure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Noise {
    pub passes: usize,
    /// In how many of them much of it changed.
    pub noisy_passes: usize,
    /// The share that changes in the middle one of the passes.
    pub usual_rate: f64,
    /// The share of changes that only brought back what was there before.
    pub returned_rate: f64,
}

/// From how many passes on something can be told.
const ENOUGH_PASSES: usize = 3;
/// Much of a type is this share of it.
const MUCH: f64 = 0.1;

/// Whether a type changes without anyone changing it: much of it in nearly every pass, or back and forth.
pub fn noise(passes: &[Pass]) -> Option<Noise> {
    let mut rates: Vec<f64> =
        passes.iter().map(|pass| Rate::new(pass.changed, pass.total.max(pass.changed)).drift_rate).collect();
    if rates.len() < ENOUGH_PASSES {
        return None;
    }
    rates.sort_by(f64::total_cmp);
    let usual_rate = rates[rates.len() / 2];
    let noisy_passes = rates.iter().filter(|rate| **rate >= MUCH).count();
    let (changed, returned) = passes.iter().fold((0, 0), |(a, b), pass| (a + pass.changed, b + pass.returned));
    let returned_rate = Rate::new(returned, changed).drift_rate;
    let steady = noisy_passes * 4 >= passes.len() * 3;
    // The first change of each never is a return, so half of all is back and forth.
    let back_and_forth = returned_rate >= 0.5 && noisy_passes * 2 >= passes.len();
    (steady || back_and_forth).then_some(Noise { passes: passes.len(), noisy_passes, usual_rate, returned_rate })
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

    #[test]
    fn a_type_that_changes_in_every_pass_or_back_and_forth_is_noisy_and_one_that_was_worked_on_is_not() {
        let passes = |changed: &[u64], returned: u64| -> Vec<Pass> {
            let last = changed.len() - 1;
            let pass = |(at, changed): (usize, &u64)| Pass {
                total: 67,
                changed: *changed,
                returned: if at == last { returned } else { 0 },
            };
            changed.iter().enumerate().map(pass).collect()
        };
        for (changed, returned, noisy) in [
            (&[46, 45, 47, 46][..], 0, true),
            (&[46, 0, 45, 0, 46, 0], 92, true),
            (&[46, 0, 0, 0], 0, false),
            (&[1, 1, 1, 1], 0, false),
            (&[1, 1, 1, 1], 4, false),
            (&[46, 46], 46, false),
            (&[0, 0, 0, 0], 0, false),
        ] {
            assert_eq!(noise(&passes(changed, returned)).is_some(), noisy, "{changed:?}");
        }
    }
}
