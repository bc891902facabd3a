//! What was looked at, and how that went. Absence is a fact only inside a complete extent.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The smallest thing that can be listed whole: a type in a place. `*` stands for every type or every place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Extent {
    #[serde(rename = "type")]
    pub kind: String,
    pub place: String,
}

/// How listing an extent went.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Complete,
    Partial { reason: String },
}

/// Stands for every type or every place in an [`Extent`].
pub const EVERY: &str = "*";

/// The extents that an observation speaks of. An extent it does not speak of was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Coverage {
    /// By type and then place, so that a look-up needs no owned key. Most types are listed in the same places, and
    /// share them.
    extents: BTreeMap<String, Arc<Places>>,
    /// How the listing was made, where a source has more than one way and they do not see the same.
    basis: Option<String>,
}

/// How listing went in each place.
pub type Places = BTreeMap<String, Outcome>;

impl Coverage {
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything the source can see was listed whole.
    pub fn complete() -> Self {
        let mut coverage = Self::new();
        coverage.record(Extent { kind: EVERY.into(), place: EVERY.into() }, Outcome::Complete);
        coverage
    }

    /// Two words on one extent: the worse one holds, in whatever order they came.
    /// The same coverage, known to be made in one way of several.
    #[must_use]
    pub fn on_basis(self, basis: Option<String>) -> Self {
        Self { basis, ..self }
    }

    pub fn basis(&self) -> Option<&str> {
        self.basis.as_deref()
    }

    /// Why two listings cannot be held against each other at all, if they cannot.
    pub fn is_another_than(&self, other: &Coverage) -> Option<String> {
        let name = |coverage: &Coverage| coverage.basis.clone().unwrap_or_else(|| "an unnamed one".into());
        (self.basis != other.basis)
            .then(|| format!("listed by another backend: {}, and before {}", name(self), name(other)))
    }

    pub fn record(&mut self, extent: Extent, outcome: Outcome) {
        let places = Arc::make_mut(self.extents.entry(extent.kind).or_default());
        let slot = places.entry(extent.place).or_insert_with(|| outcome.clone());
        if outcome > *slot {
            *slot = outcome;
        }
    }

    /// Types that were listed in the same places with the same outcomes, together.
    pub fn groups(&self) -> BTreeMap<&Places, Vec<&str>> {
        let mut groups: BTreeMap<&Places, Vec<&str>> = BTreeMap::new();
        for (kind, places) in &self.extents {
            groups.entry(places).or_default().push(kind);
        }
        groups
    }

    /// The opposite of [`Coverage::groups`]: all these types, in these places.
    pub fn record_group(&mut self, kinds: impl IntoIterator<Item = String>, places: Places) {
        let places = Arc::new(places);
        for kind in kinds {
            self.extents.insert(kind, places.clone());
        }
    }

    /// How the listing went that would have shown such a thing; `None` when nobody looked.
    ///
    /// The nearest word holds: type and place, then either with `*`, then both. Where "this type everywhere"
    /// and "everything in this place" disagree, the partial one holds.
    pub fn outcome(&self, kind: &str, place: &str) -> Option<&Outcome> {
        let at = |kind: &str, place: &str| self.extents.get(kind).and_then(|places| places.get(place));
        at(kind, place).or_else(|| at(kind, EVERY).max(at(EVERY, place))).or_else(|| at(EVERY, EVERY))
    }

    pub fn is_complete(&self, kind: &str, place: &str) -> bool {
        self.outcome(kind, place) == Some(&Outcome::Complete)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &Outcome)> {
        self.extents.iter().flat_map(|(kind, places)| {
            places.iter().map(move |(place, outcome)| (kind.as_str(), place.as_str(), outcome))
        })
    }

    /// How many extents are complete, and how many partial.
    pub fn counts(&self) -> (usize, usize) {
        let complete = self.iter().filter(|(_, _, outcome)| **outcome == Outcome::Complete).count();
        (complete, self.iter().count() - complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(kind: &str, place: &str) -> Extent {
        Extent { kind: kind.into(), place: place.into() }
    }

    fn partial() -> Outcome {
        Outcome::Partial { reason: "throttled".into() }
    }

    #[test]
    fn what_nobody_spoke_of_was_not_looked_at() {
        let mut coverage = Coverage::new();
        coverage.record(extent("A", "p"), Outcome::Complete);
        assert!(coverage.is_complete("A", "p"));
        assert_eq!(coverage.outcome("A", "q"), None);
        assert_eq!(coverage.outcome("B", "p"), None);
        assert!(Coverage::complete().is_complete("anything", "anywhere"));
    }

    #[test]
    fn the_nearest_word_holds_and_of_two_the_worse() {
        let mut coverage = Coverage::complete();
        coverage.record(extent("*", "us-west-2"), partial());
        assert!(!coverage.is_complete("A", "us-west-2"));
        assert!(coverage.is_complete("A", "us-east-1"));
        coverage.record(extent("A", "us-west-2"), Outcome::Complete);
        assert!(coverage.is_complete("A", "us-west-2"));
        coverage.record(extent("A", "us-west-2"), partial());
        coverage.record(extent("A", "us-west-2"), Outcome::Complete);
        assert!(!coverage.is_complete("A", "us-west-2"));
        coverage.record(extent("B", "*"), Outcome::Complete);
        assert!(!coverage.is_complete("B", "us-west-2"), "a partial place beats a complete type");
    }
}
