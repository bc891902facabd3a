//! What evaluations say of resources, and what became of that between two observations.
//!
//! Observers often list only what violates a rule. So an entry that is no longer there was fixed, if the extent it
//! would be in was listed whole; in any other extent nobody knows.

use std::collections::{BTreeMap, BTreeSet};

use crate::judge::not_checked;
use crate::key::ResourceKey;
use crate::name::StreamId;
use crate::observation::Pass;
use crate::pointer::Pointer;
use crate::value::Value;

/// What a rule says of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compliance {
    Compliant,
    NonCompliant,
    NotApplicable,
    InsufficientData,
}

impl Compliance {
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "COMPLIANT" => Compliance::Compliant,
            "NON_COMPLIANT" => Compliance::NonCompliant,
            "NOT_APPLICABLE" => Compliance::NotApplicable,
            "INSUFFICIENT_DATA" => Compliance::InsufficientData,
            _ => return None,
        })
    }
}

/// What the rules say, by rule; `None` when this is no evaluated resource.
pub fn evaluations<'v>(properties: &'v Value, path: &Pointer) -> Option<BTreeMap<&'v str, Compliance>> {
    let rules = path.find(properties)?.as_object()?;
    rules.iter().map(|(rule, word)| Some((rule.as_str(), Compliance::parse(word.as_str()?)?))).collect()
}

/// What one side says of one rule and one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Says(Compliance),
    /// No such entry, in an extent that was listed whole.
    Nothing,
    Unseen,
}

/// What became of one violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    New,
    Fixed,
    Still,
    NotChecked,
}

/// The table. `None` where there is no violation to speak of.
fn turn(before: Word, after: Word) -> Option<Turn> {
    use Compliance::{InsufficientData, NonCompliant};
    Some(match (before, after) {
        (Word::Says(NonCompliant), Word::Says(NonCompliant)) => Turn::Still,
        // One side did not look, or the rule can no longer tell, which is not to say that it is satisfied.
        (Word::Unseen, Word::Says(NonCompliant) | Word::Unseen)
        | (Word::Says(NonCompliant), Word::Unseen | Word::Says(InsufficientData)) => Turn::NotChecked,
        (_, Word::Says(NonCompliant)) => Turn::New,
        (Word::Says(NonCompliant), _) => Turn::Fixed,
        _ => return None,
    })
}

/// One rule, one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub rule: String,
    pub stream: StreamId,
    pub key: ResourceKey,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub compliant: u64,
    pub non_compliant: u64,
    pub other: u64,
}

impl Counts {
    fn add(&mut self, word: Compliance) {
        match word {
            Compliance::Compliant => self.compliant += 1,
            Compliance::NonCompliant => self.non_compliant += 1,
            Compliance::NotApplicable | Compliance::InsufficientData => self.other += 1,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            compliant: self.compliant + other.compliant,
            non_compliant: self.non_compliant + other.non_compliant,
            other: self.other + other.other,
        }
    }
}

/// One rule's part, or the whole: what is known on each side, and how many violations took which turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    pub before: Counts,
    pub now: Counts,
    pub newly_non_compliant: u64,
    pub newly_fixed: u64,
    pub still_non_compliant: u64,
    pub not_checked: u64,
}

impl Tally {
    fn plus(self, other: Self) -> Self {
        Self {
            before: self.before.plus(other.before),
            now: self.now.plus(other.now),
            newly_non_compliant: self.newly_non_compliant + other.newly_non_compliant,
            newly_fixed: self.newly_fixed + other.newly_fixed,
            still_non_compliant: self.still_non_compliant + other.still_non_compliant,
            not_checked: self.not_checked + other.not_checked,
        }
    }
}

/// The whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Posture {
    pub rules: BTreeMap<String, Tally>,
    /// Every violation, with its turn and, where it was not checked, the reason.
    pub violations: BTreeMap<Violation, (Turn, Option<String>)>,
}

impl Posture {
    pub fn total(&self) -> Tally {
        self.rules.values().fold(Tally::default(), |sum, tally| sum.plus(*tally))
    }

    pub fn taking(&self, turn: Turn) -> impl Iterator<Item = (&Violation, Option<&str>)> {
        let taken = self.violations.iter().filter(move |(_, (its, _))| *its == turn);
        taken.map(|(violation, (_, reason))| (violation, reason.as_deref()))
    }

    /// Adds what two observations of a stream say, of the rules that are wanted.
    pub fn add(
        &mut self,
        stream: &StreamId,
        before: Pass<'_>,
        after: Pass<'_>,
        path: &Pointer,
        wanted: &dyn Fn(&str) -> bool,
    ) {
        let another = after.coverage.is_another_than(before.coverage);
        let keys: BTreeSet<&ResourceKey> = before.resources.keys().chain(after.resources.keys()).collect();
        for key in keys {
            let known = |side: &Pass<'_>| {
                let found = side.resources.get(key).and_then(|properties| evaluations(properties, path));
                let owned = found.into_iter().flatten().map(|(rule, word)| (rule.to_owned(), word));
                owned.filter(|(rule, _)| wanted(rule)).collect::<BTreeMap<String, Compliance>>()
            };
            let (old, new) = (known(&before), known(&after));
            for (rule, word) in &old {
                self.rules.entry(rule.clone()).or_default().before.add(*word);
            }
            for (rule, word) in &new {
                self.rules.entry(rule.clone()).or_default().now.add(*word);
            }
            let violated =
                |known: &BTreeMap<String, Compliance>, rule: &str| known.get(rule) == Some(&Compliance::NonCompliant);
            for rule in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                if !violated(&old, rule) && !violated(&new, rule) {
                    continue;
                }
                let word = |side: &Pass<'_>, known: &BTreeMap<String, Compliance>| match known.get(rule) {
                    _ if side.unseen.contains(key) => Word::Unseen,
                    Some(word) => Word::Says(*word),
                    None if side.coverage.is_complete(&key.kind, key.place.as_str()) => Word::Nothing,
                    None => Word::Unseen,
                };
                let (was, is) = (word(&before, &old), word(&after, &new));
                let Some(mut turn) = turn(was, is) else { continue };
                if another.is_some() && turn != Turn::Still {
                    turn = Turn::NotChecked;
                }
                let reason = (turn == Turn::NotChecked).then(|| match is {
                    Word::Says(Compliance::InsufficientData) => "the rule has too little data to tell".to_owned(),
                    _ => not_checked(key.as_ref(), before.coverage, after.coverage).reason.unwrap_or_default(),
                });
                let tally = self.rules.entry(rule.clone()).or_default();
                match turn {
                    Turn::New => tally.newly_non_compliant += 1,
                    Turn::Fixed => tally.newly_fixed += 1,
                    Turn::Still => tally.still_non_compliant += 1,
                    Turn::NotChecked => tally.not_checked += 1,
                }
                let violation = Violation { rule: rule.clone(), stream: stream.clone(), key: key.clone() };
                self.violations.insert(violation, (turn, reason));
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::coverage::{Coverage, Extent, Outcome};
    use crate::key::Place;

    fn key(id: &str) -> ResourceKey {
        ResourceKey { kind: "T".into(), place: Place::new("p"), id: id.into() }
    }

    fn evaluated(id: &str, rules: &[(&str, &str)]) -> (ResourceKey, Value) {
        let rules = rules.iter().map(|(rule, word)| ((*rule).to_owned(), Value::from(*word))).collect();
        (key(id), Value::Object(BTreeMap::from([("rules".to_owned(), Value::Object(rules))])))
    }

    fn partial() -> Coverage {
        let mut coverage = Coverage::complete();
        let outcome = Outcome::Partial { reason: "throttled".into() };
        coverage.record(Extent { kind: "T".into(), place: "p".into() }, outcome);
        coverage
    }

    type Resources = BTreeMap<ResourceKey, Value>;

    fn posture(before: (&Resources, &Coverage), after: (&Resources, &Coverage), unseen: &[&str]) -> Posture {
        let (nothing, unseen) = (BTreeSet::new(), unseen.iter().map(|id| key(id)).collect());
        let mut posture = Posture::default();
        posture.add(
            &"s".parse().unwrap(),
            Pass { resources: before.0, unseen: &nothing, coverage: before.1 },
            Pass { resources: after.0, unseen: &unseen, coverage: after.1 },
            &"/rules".parse().unwrap(),
            &|_| true,
        );
        posture
    }

    fn turns(posture: &Posture) -> Vec<(&str, &str, Turn)> {
        let told = posture.violations.iter();
        told.map(|(violation, (turn, _))| (violation.rule.as_str(), violation.key.id.as_str(), *turn)).collect()
    }

    const BAD: &str = "NON_COMPLIANT";
    const GOOD: &str = "COMPLIANT";

    #[test]
    fn every_pair_of_words_has_its_turn() {
        use Compliance::{Compliant, InsufficientData, NonCompliant, NotApplicable};
        let words = [
            Word::Says(NonCompliant),
            Word::Says(Compliant),
            Word::Says(NotApplicable),
            Word::Says(InsufficientData),
            Word::Nothing,
            Word::Unseen,
        ];
        let (still, new, fixed, unclear) =
            (Some(Turn::Still), Some(Turn::New), Some(Turn::Fixed), Some(Turn::NotChecked));
        let table = [
            [still, fixed, fixed, unclear, fixed, unclear],
            [new, None, None, None, None, None],
            [new, None, None, None, None, None],
            [new, None, None, None, None, None],
            [new, None, None, None, None, None],
            [unclear, None, None, None, None, unclear],
        ];
        for (before, row) in words.iter().zip(table) {
            for (after, expected) in words.iter().zip(row) {
                assert_eq!(turn(*before, *after), expected, "{before:?} and then {after:?}");
            }
        }
    }

    #[test]
    fn an_entry_that_is_gone_was_fixed_only_where_everything_was_listed() {
        let before = Resources::from([evaluated("a", &[("r", BAD), ("q", BAD)]), evaluated("b", &[("r", BAD)])]);
        let after = Resources::from([evaluated("a", &[("r", BAD)])]);
        let whole = Coverage::complete();
        let found = posture((&before, &whole), (&after, &whole), &[]);
        assert_eq!(turns(&found), [("q", "a", Turn::Fixed), ("r", "a", Turn::Still), ("r", "b", Turn::Fixed)]);
        let total = found.total();
        assert_eq!((total.before.non_compliant, total.now.non_compliant, total.newly_fixed), (3, 1, 2));

        let cut = posture((&before, &whole), (&after, &partial()), &[]);
        assert_eq!(turns(&cut), [("q", "a", Turn::NotChecked), ("r", "a", Turn::Still), ("r", "b", Turn::NotChecked)]);
        let (_, reason) = cut.taking(Turn::NotChecked).next().unwrap();
        assert_eq!(reason, Some("the live listing was partial: throttled"));
    }

    #[test]
    fn what_the_baseline_did_not_look_at_is_not_new() {
        let (nothing, after) = (Resources::new(), Resources::from([evaluated("a", &[("r", BAD), ("q", GOOD)])]));
        let whole = Coverage::complete();
        assert_eq!(turns(&posture((&nothing, &whole), (&after, &whole), &[])), [("r", "a", Turn::New)]);
        for cut in [partial(), Coverage::new(), Coverage::complete().on_basis(Some("other".into()))] {
            assert_eq!(turns(&posture((&nothing, &cut), (&after, &whole), &[])), [("r", "a", Turn::NotChecked)]);
        }
    }

    #[test]
    fn what_is_carried_over_counts_and_is_not_checked() {
        let before = Resources::from([evaluated("a", &[("r", BAD)])]);
        let found = posture((&before, &Coverage::complete()), (&before, &partial()), &["a"]);
        assert_eq!(turns(&found), [("r", "a", Turn::NotChecked)]);
        assert_eq!(found.total().now.non_compliant, 1, "it is not known to be fixed");
    }

    #[test]
    fn a_resource_counts_only_if_its_rules_speak_of_compliance() {
        let path: Pointer = "/rules".parse().unwrap();
        let value = |json: &str| serde_json::from_str::<Value>(json).unwrap();
        for (json, counts) in [
            (r#"{"rules": {"r": "COMPLIANT"}}"#, true),
            (r#"{"rules": {}}"#, true),
            (r#"{"rules": {"r": "COMPLIANT", "q": "ENABLED"}}"#, false),
            (r#"{"rules": {"r": 1}}"#, false),
            (r#"{"rules": ["COMPLIANT"]}"#, false),
            (r#"{"other": {}}"#, false),
        ] {
            assert_eq!(evaluations(&value(json), &path).is_some(), counts, "{json}");
        }
    }
}
