//! One resource of the estate, made from its number and how often it has changed. Nothing is remembered.

use crate::json::{Part, fill};
use crate::kind::{KINDS, Kind, SLOTS};
use crate::random::{Random, mix, mix32};

const REGIONS: [&str; 6] = ["us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1", "ap-southeast-2"];
const TEAMS: [&str; 12] = [
    "orders",
    "billing",
    "search",
    "identity",
    "platform",
    "data-lake",
    "checkout",
    "catalog",
    "shipping",
    "fraud",
    "mobile",
    "observability",
];
const WORKS: [&str; 8] = ["api", "worker", "ingest", "export", "scheduler", "cache", "events", "audit"];

/// What a stream of random numbers is for, so that no two uses share one.
const IDENTITY: u64 = 1;
const PROPERTIES: u64 = 2;
const MUTATION: u64 = 3;

/// What every record of an estate depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) seed: u64,
    pub(crate) accounts: usize,
}

/// The properties of one resource while they are drawn.
#[derive(Debug)]
pub(crate) struct Draw<'a> {
    pub(crate) account: &'a str,
    pub(crate) region: &'a str,
    pub(crate) name: &'a str,
    pub(crate) team: &'static str,
    /// Stands for the account and region, so that neighbours name the same networks.
    place: u64,
    random: Random,
    /// How often each mutable attribute has moved on.
    moved: [usize; SLOTS],
}

impl Draw<'_> {
    /// One of `choices`, for good.
    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.below(choices.len())]
    }

    /// One of `choices`; each mutation of `slot` moves on to the next.
    pub(crate) fn slot<T: Copy>(&mut self, slot: usize, choices: &[T]) -> T {
        let first = self.random.below(choices.len());
        choices[(first + self.moved[slot]) % choices.len()]
    }

    /// Sixteen digits that nothing else has, as half an id or a quarter of a digest.
    pub(crate) fn digest(&mut self) -> Part<'static> {
        Part::Hex(self.random.next(), 16)
    }

    /// For what is drawn as often as a slot says: the draws after it stay where they are.
    pub(crate) fn fork(&mut self) -> Random {
        self.random.fork()
    }

    /// One of `count` ids that the whole estate shares.
    pub(crate) fn shared(&mut self, what: &str, count: u64) -> u64 {
        mix(hash(what) ^ (self.random.next() % count))
    }

    /// One of `count` ids that the place shares.
    pub(crate) fn nearby(&mut self, what: &str, count: u64) -> u64 {
        mix(mix(hash(what) ^ self.place).wrapping_add(self.random.next() % count))
    }

    /// The `at`-th of the place's ids; draws nothing.
    pub(crate) fn neighbour(&self, what: &str, at: u64) -> u64 {
        let first = mix(hash(what) ^ hash(self.name)) % 20;
        mix(mix(hash(what) ^ self.place).wrapping_add((first + at) % 20))
    }

    pub(crate) fn vpc(&mut self) -> String {
        let mut out = String::with_capacity(24);
        fill!(&mut out, "vpc-0$", Part::Hex(self.nearby("vpc", 2), 16));
        out
    }

    pub(crate) fn zone(&mut self) -> &'static str {
        self.of(&["a", "b", "c"])
    }
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0, |sum, byte| mix(sum ^ u64::from(byte)))
}

/// The room that rendering needs, kept from one record to the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    account: String,
    name: String,
}

/// Appends the JSON of resource `index` after `generation` mutations.
pub(crate) fn render(shape: Shape, index: u32, generation: u16, scratch: &mut Scratch, out: &mut String) {
    let mut identity = Random::of(shape.seed, IDENTITY, u64::from(index));
    let kind = kind_at(identity.below(100));
    let account = identity.below(shape.accounts);
    let region = identity.below(REGIONS.len());
    let team = TEAMS[identity.below(TEAMS.len())];
    let work = WORKS[identity.below(WORKS.len())];

    scratch.account.clear();
    push_account(account, &mut scratch.account);
    // `mix32` is one to one, and so is `mix`: no two resources have one name or one id.
    scratch.name.clear();
    fill!(&mut scratch.name, "$-$-$", team, work, Part::Hex(u64::from(mix32(index)), 8));

    fill!(out, r#"{"canonicalId":""#);
    for piece in kind.arn.split_inclusive(['@', '#']) {
        out.push_str(piece.trim_end_matches(['@', '#']));
        if piece.ends_with('@') {
            out.push_str(REGIONS[region]);
        } else if piece.ends_with('#') {
            out.push_str(&scratch.account);
        }
    }
    if kind.id_prefix.is_empty() {
        out.push_str(&scratch.name);
    } else {
        fill!(out, "$$", kind.id_prefix, Part::Hex(mix(shape.seed ^ u64::from(index)), 16));
    }
    fill!(out, r#"","resourceType":"$","account":"$","#, kind.name, &scratch.account);
    if kind.regional {
        fill!(out, r#""region":"$","#, REGIONS[region]);
    }
    fill!(out, r#""snapshot":"#);
    let mut draw = Draw {
        account: &scratch.account,
        region: REGIONS[region],
        name: &scratch.name,
        team,
        place: mix(shape.seed ^ (account * REGIONS.len() + region) as u64),
        random: Random::of(shape.seed, PROPERTIES, u64::from(index)),
        moved: moved(shape, kind, index, generation),
    };
    (kind.properties)(&mut draw, out);
    out.push('}');
}

/// Which attributes the first `generation` mutations of a resource moved, and how often each.
fn moved(shape: Shape, kind: &Kind, index: u32, generation: u16) -> [usize; SLOTS] {
    let mut moved = [0; SLOTS];
    let mut random = Random::of(shape.seed, MUTATION, u64::from(index));
    for _ in 0..generation {
        moved[random.below(kind.slots)] += 1;
    }
    moved
}

fn kind_at(mut percent: usize) -> &'static Kind {
    for kind in &KINDS {
        match percent.checked_sub(kind.share) {
            Some(rest) => percent = rest,
            None => return kind,
        }
    }
    &KINDS[0]
}

fn push_account(number: usize, out: &mut String) {
    fill!(out, "$", 104_500_000_000 + number as u64 * 4_037_373_737);
}

/// Appends every extent there can be, each of them complete: a JSON list.
pub(crate) fn render_coverage(shape: Shape, out: &mut String) {
    const GLOBAL: &[&str] = &["global"];
    let mut separator = "[";
    let mut account = String::new();
    for kind in &KINDS {
        for number in 0..shape.accounts {
            account.clear();
            push_account(number, &mut account);
            for region in if kind.regional { &REGIONS } else { GLOBAL } {
                let template = r#"${"type":"$","place":"aws/$/$","outcome":"complete"}"#;
                fill!(out, template, separator, kind.name, &account, *region);
                separator = ",";
            }
        }
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use sonic_rs::{JsonContainerTrait, JsonValueTrait, Value};

    use super::*;

    const SHAPE: Shape = Shape { seed: 7, accounts: 20 };

    fn record(index: u32, generation: u16) -> String {
        let mut out = String::new();
        render(SHAPE, index, generation, &mut Scratch::default(), &mut out);
        out
    }

    fn parse(text: &str) -> Value {
        sonic_rs::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn text<'a>(value: &'a Value, name: &str) -> &'a str {
        value.get(name).and_then(|it| it.as_str()).unwrap_or_default()
    }

    #[test]
    fn the_shares_add_up_to_a_hundred() {
        assert_eq!(KINDS.iter().map(|kind| kind.share).sum::<usize>(), 100);
    }

    #[test]
    fn ids_are_unique_and_every_place_is_covered() {
        let mut coverage = String::new();
        render_coverage(SHAPE, &mut coverage);
        let coverage = parse(&coverage);
        let extents: BTreeSet<(&str, &str)> =
            coverage.as_array().into_iter().flatten().map(|it| (text(it, "type"), text(it, "place"))).collect();
        assert_eq!(extents.len(), 11 * 20 * 6 + 20);

        let mut ids = BTreeSet::new();
        for index in 0..20_000 {
            let record = parse(&record(index, 0));
            let region = record.get("region").and_then(|it| it.as_str()).unwrap_or("global");
            let place = format!("aws/{}/{region}", text(&record, "account"));
            assert!(extents.contains(&(text(&record, "resourceType"), place.as_str())), "{place}");
            assert!(ids.insert(text(&record, "canonicalId").to_owned()));
        }
    }

    #[test]
    fn every_mutation_shows_and_moves_one_attribute_or_what_follows_from_it() {
        let mut slots_seen: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for index in 0..4000 {
            for generation in 0..4 {
                let (before, after) = (parse(&record(index, generation)), parse(&record(index, generation + 1)));
                assert_eq!(before.get("canonicalId"), after.get("canonicalId"));
                let (before, after) = (before.get("snapshot"), after.get("snapshot"));
                assert_ne!(before, after, "{index} at {generation}");
                let members = |value: Option<&Value>| -> BTreeMap<String, String> {
                    let members = value.and_then(|it| it.as_object()).into_iter().flatten();
                    members.map(|(name, value)| (name.to_owned(), value.to_string())).collect()
                };
                let (before, after) = (members(before), members(after));
                assert!(before.keys().eq(after.keys()));
                let changed = before.iter().zip(&after).filter(|(left, right)| left != right).count();
                assert!(changed <= 2, "{changed} members of {index} at {generation}");
            }
            let kind = kind_at(Random::of(SHAPE.seed, IDENTITY, u64::from(index)).below(100));
            let moved = moved(SHAPE, kind, index, 4);
            slots_seen.entry(kind.name.into()).or_default().extend((0..SLOTS).filter(|&slot| moved[slot] > 0));
        }
        for kind in &KINDS {
            assert_eq!(slots_seen[kind.name].len(), kind.slots, "{}", kind.name);
        }
    }

    #[test]
    fn a_record_is_about_600_bytes() {
        let bytes: usize = (0..20_000).map(|index| record(index, 0).len() + 1).sum();
        let average = bytes / 20_000;
        assert!((590..=610).contains(&average), "{average}");
    }
}
