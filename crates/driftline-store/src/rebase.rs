//! What a pass means on top of another version than the one it was compared with: what counts as gone, and what was
//! seen told anew when someone else committed meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::{Header, ResourceKey};

use crate::catalog::Version;
use crate::error::StoreError;
use crate::net::{follow, invert};
use crate::segment::{Image, Row};
use crate::store::Store;

/// When a resource that a complete listing does not have is known to be gone.
pub(crate) enum Absence {
    /// The version before was listed in the same way. What that one only carried over may have been seen in another.
    SameWay { mixed: bool },
    /// It was listed in another way: gone is what this way saw when it was last used.
    LastSeen(BTreeSet<ResourceKey>),
}

impl Absence {
    pub(crate) fn counts(&self, key: &ResourceKey, seen: bool) -> bool {
        match self {
            Absence::SameWay { mixed } => seen || !mixed,
            Absence::LastSeen(keys) => keys.contains(key),
        }
    }
}

impl Store {
    /// What counts as gone in a pass with this header, on top of a version.
    pub(crate) fn absence(&self, header: &Header, parent: Option<&Version>) -> Result<Absence, StoreError> {
        let basis = header.coverage.basis();
        let Some(parent) = parent else { return Ok(Absence::SameWay { mixed: false }) };
        if parent.basis.as_deref() == basis {
            return Ok(Absence::SameWay { mixed: parent.mixed });
        }
        let last = self.catalog.stream(&header.stream)?.versions().rev().find(|one| one.basis.as_deref() == basis);
        Ok(Absence::LastSeen(match last {
            Some(last) => self.seen_keys(&header.stream, last.number)?,
            None => BTreeSet::new(),
        }))
    }
}

/// What we saw, told as changes from a version that came in between.
///
/// `ours` and `theirs` both start from the same older version.
pub(crate) fn rebase(
    mut ours: BTreeMap<ResourceKey, Row>,
    theirs: BTreeMap<ResourceKey, Row>,
    header: &Header,
    head: &Version,
) -> BTreeMap<ResourceKey, Row> {
    if !header.nature.is_state() {
        // What others added stays; what they added that we have, too, is told once.
        for (key, their) in theirs {
            if let Some(our) = ours.remove(&key)
                && let Some(row) = follow(invert(their), our)
            {
                ours.insert(key, row);
            }
        }
        return ours;
    }
    let same = head.basis.as_deref() == header.coverage.basis();
    let complete = |key: &ResourceKey| same && header.coverage.is_complete(&key.kind, key.place.as_str());
    let mut rebased: BTreeMap<ResourceKey, Row> = BTreeMap::new();
    for (key, their) in theirs {
        let our = ours.remove(&key);
        let looked_and_saw = match &our {
            Some(our) => our.is_seen,
            // No row of ours: as at the older version. There it was seen, or it was not there.
            None => their.before.is_some() && their.was_seen,
        };
        if !looked_and_saw && !complete(&key) {
            // We did not look where they did: what they know is carried over, be it that there is nothing.
            let after = their.after.map(|image| Image { json: None, ..image });
            let row = Row {
                key: key.clone(),
                before: after.clone(),
                after,
                was_seen: their.is_seen,
                is_seen: false,
                told: None,
            };
            if row.op().is_some() {
                rebased.insert(key, row);
            }
            continue;
        }
        let back = invert(their);
        let row = match our {
            Some(our) => follow(back, our),
            None => Some(back),
        };
        if let Some(row) = row {
            // A resource that is gone is not seen, whatever was known of it before.
            let is_seen = row.is_seen && row.after.is_some();
            rebased.insert(key, Row { is_seen, ..row });
        }
    }
    rebased.extend(ours);
    rebased
}
