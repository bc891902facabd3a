//! The two-sided verdict: what baseline and live, each with what it looked at, say of one resource.
//!
//! | baseline | live | status |
//! |---|---|---|
//! | present | present, no change counts | `in_sync` |
//! | present | present, a change counts | `drifted`, modified |
//! | present | absent in a complete extent | `drifted`, deleted |
//! | absent in a complete extent | present | `unknown` |
//! | absent in a complete extent | absent in a complete extent | nothing to say |
//! | not looked at | anything | `not_checked` |
//! | anything | not looked at | `not_checked` |
//!
//! Two things stand above the table (see [`crate::judge`]): listings made in different ways cannot be held against
//! each other, so that whatever differs between them is `not_checked`; and where a rule says that being gone is good
//! news, present and then absent is `in_sync`, resolved.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What one side knows of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    Present,
    /// Not there, in an extent that was listed whole.
    Absent,
    /// Not seen, in an extent that was not listed whole.
    Unseen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    InSync,
    Drifted,
    Unknown,
    NotChecked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriftKind {
    Modified,
    Deleted,
    /// Gone, and that is good news: a rule says so. Never drift.
    Resolved,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::InSync => "in_sync",
            Status::Drifted => "drifted",
            Status::Unknown => "unknown",
            Status::NotChecked => "not_checked",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl DriftKind {
    pub fn name(self) -> &'static str {
        match self {
            DriftKind::Modified => "modified",
            DriftKind::Deleted => "deleted",
            DriftKind::Resolved => "resolved",
        }
    }
}

/// `None` when neither side has the resource. `change_counts` is only asked when both are present.
pub fn verdict(baseline: Sight, live: Sight, change_counts: bool) -> Option<(Status, Option<DriftKind>)> {
    match (baseline, live) {
        (Sight::Unseen, _) | (_, Sight::Unseen) => Some((Status::NotChecked, None)),
        (Sight::Present, Sight::Present) if change_counts => Some((Status::Drifted, Some(DriftKind::Modified))),
        (Sight::Present, Sight::Present) => Some((Status::InSync, None)),
        (Sight::Present, Sight::Absent) => Some((Status::Drifted, Some(DriftKind::Deleted))),
        (Sight::Absent, Sight::Present) => Some((Status::Unknown, None)),
        (Sight::Absent, Sight::Absent) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written from the questions a person would ask one after the other, not from the table above.
    fn oracle(baseline: Sight, live: Sight, change_counts: bool) -> Option<(Status, Option<DriftKind>)> {
        let looked = |sight| sight != Sight::Unseen;
        if !(looked(baseline) && looked(live)) {
            return Some((Status::NotChecked, None));
        }
        let (was, is) = (baseline == Sight::Present, live == Sight::Present);
        if was && !is {
            return Some((Status::Drifted, Some(DriftKind::Deleted)));
        }
        if is && !was {
            return Some((Status::Unknown, None));
        }
        if !was {
            return None;
        }
        Some(if change_counts { (Status::Drifted, Some(DriftKind::Modified)) } else { (Status::InSync, None) })
    }

    #[test]
    fn the_table_agrees_with_the_oracle_on_every_combination() {
        let sights = [Sight::Present, Sight::Absent, Sight::Unseen];
        for baseline in sights {
            for live in sights {
                for counts in [false, true] {
                    assert_eq!(
                        verdict(baseline, live, counts),
                        oracle(baseline, live, counts),
                        "{baseline:?} {live:?} {counts}"
                    );
                }
            }
        }
    }
}
