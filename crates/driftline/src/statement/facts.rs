//! What the log knows and a statement needs: small, and written into it.

use std::collections::BTreeMap;

use driftline_core::coverage::EVERY;
use driftline_core::difference::{differences, tell};
use driftline_core::rule::RuleBook;
use driftline_core::{Coverage, Outcome, Properties, ResourceKey, Value};
use driftline_store::detect::{Question, expect};
use driftline_store::{Accepted, Store, StoreError};
use jiff::Timestamp;

use super::dialect::Dialect;

/// One source, and which versions of it are compared.
pub(crate) struct Compared {
    stream: String,
    source: String,
    /// Changes after this version, up to and with `high`, lie between the two.
    low: u64,
    high: u64,
    /// What is expected is the later version.
    reversed: bool,
    other_basis: bool,
    live: u64,
    live_at: Timestamp,
    /// The version of the full image that the live one builds upon.
    image: u64,
    wants: Wants,
}

/// What of the live version must be known beyond what changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    Nothing,
    /// What it did not look at.
    Unseen,
    All,
}

impl Wants {
    fn name(self) -> &'static str {
        match self {
            Wants::Nothing => "nothing",
            Wants::Unseen => "unseen",
            Wants::All => "all",
        }
    }
}

/// How an extent was listed in the expected and in the live version: whole, not whole, or not spoken of.
type Listed = [Option<bool>; 2];

/// Everything that is written into a statement but the rules.
#[derive(Default)]
pub(crate) struct Facts {
    pub pairs: Vec<Compared>,
    /// Places with how they were listed, each list once: most types are listed in the same places.
    listings: BTreeMap<Vec<(String, Listed)>, usize>,
    /// Which types of which stream were listed so.
    listed: Vec<String>,
    accepted: Vec<String>,
}

pub(crate) fn collect(
    store: &Store,
    question: &Question,
    book: &RuleBook,
    dialect: Dialect,
) -> Result<Facts, StoreError> {
    let mut facts = Facts::default();
    for pair in &question.pairs {
        let stream = store.catalog().stream(&pair.stream)?;
        let live = store.catalog().version(&pair.stream, pair.live)?;
        let image = stream.image_of(live.number).ok_or_else(|| StoreError::Damaged {
            path: pair.stream.to_string(),
            reason: "no full image starts its versions".to_owned(),
        })?;
        let mut compared = Compared {
            stream: pair.stream.to_string(),
            source: pair.stream.source.to_string(),
            low: live.number,
            high: live.number,
            reversed: false,
            other_basis: false,
            live: live.number,
            live_at: live.taken_at,
            image,
            wants: Wants::All,
        };
        if let Some(expected) = pair.expected {
            let expected = store.catalog().version(&pair.stream, expected)?;
            let (seen_before, seen_now) = (store.coverage(&expected.coverage)?, store.coverage(&live.coverage)?);
            compared.low = expected.number.min(live.number);
            compared.high = expected.number.max(live.number);
            compared.reversed = expected.number > live.number;
            compared.other_basis = seen_now.is_another_than(&seen_before).is_some();
            compared.wants = if expected.unseen > 0 && live.unseen > 0 { Wants::Unseen } else { Wants::Nothing };
            facts.cover(&compared.stream, &seen_before, &seen_now, dialect);
            let own = question.accepted.iter().filter(|one| one.stream == pair.stream);
            let mut by_key: BTreeMap<&ResourceKey, Vec<&Accepted>> = BTreeMap::new();
            for one in own {
                by_key.entry(&one.key).or_default().push(one);
            }
            for (key, accepted) in by_key {
                facts.accept(&compared, key, &accepted, book, dialect);
            }
        }
        facts.pairs.push(compared);
    }
    Ok(facts)
}

impl Facts {
    /// What both versions looked at.
    fn cover(&mut self, stream: &str, expected: &Coverage, live: &Coverage, dialect: Dialect) {
        let mut extents: BTreeMap<&str, BTreeMap<String, Listed>> = BTreeMap::new();
        for (side, coverage) in [expected, live].into_iter().enumerate() {
            // Where no word stands for many, an extent that was not listed whole is as good as one nobody spoke of.
            let wide = coverage.iter().any(|(kind, place, _)| kind == EVERY || place == EVERY);
            for (kind, place, outcome) in coverage.iter() {
                let complete = *outcome == Outcome::Complete;
                if complete || wide {
                    extents.entry(kind).or_default().entry(place.to_owned()).or_default()[side] = Some(complete);
                }
            }
        }
        for (kind, places) in extents {
            let next = self.listings.len();
            let listing = *self.listings.entry(places.into_iter().collect()).or_insert(next);
            self.listed.push(format!("({}, {}, {listing})", dialect.text(stream), dialect.text(kind)));
        }
    }

    /// What is expected in place of what the baseline has, and how that leads to what the baseline has.
    fn accept(
        &mut self,
        pair: &Compared,
        key: &ResourceKey,
        accepted: &[&Accepted],
        book: &RuleBook,
        dialect: Dialect,
    ) {
        let pinned = accepted.iter().find_map(|one| one.pinned.clone());
        let expected = expect(pinned.clone(), accepted);
        let text = |text: Option<&str>| match text {
            Some(text) => dialect.text(text),
            None => format!("CAST(NULL AS {})", dialect.text_type()),
        };
        let id = |value: Option<&Value>| text(value.map(|value| Properties::new(value).id().to_string()).as_deref());
        let told = match (&expected, &pinned) {
            (Some(expected), Some(pinned)) => Some(tell(&differences(expected, pinned))),
            _ => None,
        };
        let resolves = expected
            .as_ref()
            .is_some_and(|expected| book.applicable(key.as_ref(), &pair.source).resolving(expected).is_some());
        self.accepted.push(format!(
            "({}, {}, {}, '{}', {}, {}, {}, {}, {}, {}, {}, {}, {})",
            dialect.text(&pair.stream),
            dialect.text(&pair.source),
            u8::from(pair.other_basis),
            pair.wants.name(),
            dialect.moment(pair.live_at),
            dialect.text(&key.kind),
            dialect.text(key.place.as_str()),
            dialect.text(&key.id),
            id(expected.as_ref()),
            id(pinned.as_ref()),
            u8::from(resolves),
            text(told.as_ref().map(|told| &*told.changes)),
            text(told.as_ref().and_then(|told| told.arrays.as_deref())),
        ));
    }

    pub(crate) fn wants_state(&self) -> bool {
        self.pairs.iter().any(|pair| pair.wants != Wants::Nothing)
    }

    /// All versions that are looked at lie after the first and not after the second.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        let compared = || self.pairs.iter().filter(|pair| pair.low < pair.high);
        let low = compared().map(|pair| pair.low).min().unwrap_or(0);
        let high = compared().map(|pair| pair.high).max().unwrap_or(0);
        (low, high)
    }

    /// As tables that stand in the statement.
    pub(crate) fn tables(&self, dialect: Dialect) -> String {
        let pair = |pair: &Compared| {
            format!(
                "({}, {}, {}, {}, {}, {}, {}, {}, {}, '{}')",
                dialect.text(&pair.stream),
                dialect.text(&pair.source),
                pair.low,
                pair.high,
                u8::from(pair.reversed),
                u8::from(pair.other_basis),
                pair.live,
                dialect.moment(pair.live_at),
                pair.image,
                pair.wants.name()
            )
        };
        let pairs: Vec<String> = self.pairs.iter().map(pair).collect();
        let (text, moment) = (dialect.text_type(), dialect.moment_type());
        let mut out = String::from("-- The versions that are compared.\n");
        out += &table(
            "pairs",
            &[
                ("stream", text),
                ("source", text),
                ("low", "BIGINT"),
                ("high", "BIGINT"),
                ("reversed", "INT"),
                ("other_basis", "INT"),
                ("live", "BIGINT"),
                ("live_at", moment),
                ("image", "BIGINT"),
                ("wants", text),
            ],
            &pairs,
        );
        out += "-- What the two versions looked at.\n";
        let columns = [("in_stream", text), ("of_type", text), ("listing", "INT")];
        out += &table("listed", &columns, &self.listed);
        let word = |complete: Option<bool>| match complete {
            Some(complete) => u8::from(complete).to_string(),
            None => "CAST(NULL AS INT)".to_owned(),
        };
        let mut listings: Vec<(usize, &Vec<(String, Listed)>)> =
            self.listings.iter().map(|(places, number)| (*number, places)).collect();
        listings.sort_unstable();
        let places = listings.iter().flat_map(|(number, places)| places.iter().map(move |place| (number, place)));
        let places: Vec<String> = places
            .map(|(number, (place, [expected, live]))| {
                format!("({number}, {}, {}, {})", dialect.text(place), word(*expected), word(*live))
            })
            .collect();
        let columns = [("listing", "INT"), ("in_place", text), ("expected_complete", "INT"), ("live_complete", "INT")];
        out += &table("listings", &columns, &places);
        out += "coverage AS (
  SELECT t.in_stream, t.of_type, p.in_place, p.expected_complete, p.live_complete
  FROM listed t JOIN listings p ON t.listing = p.listing
),
";
        out += "-- What was accepted since the baseline was set: what is expected, and how the baseline differs from it.\n";
        out += &table(
            "accepted",
            &[
                ("stream", text),
                ("source", text),
                ("other_basis", "INT"),
                ("wants", text),
                ("live_at", moment),
                ("type", text),
                ("place", text),
                ("id", text),
                ("was_hash", text),
                ("is_hash", text),
                ("resolves", "INT"),
                ("changes", text),
                ("arrays", text),
            ],
            &self.accepted,
        );
        out
    }
}

/// A table that is written out; one without rows still has its columns.
fn table(name: &str, columns: &[(&str, &str)], rows: &[String]) -> String {
    let names = columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if rows.is_empty() {
        let nulls: Vec<String> = columns.iter().map(|(name, kind)| format!("CAST(NULL AS {kind}) AS {name}")).collect();
        return format!("{name} AS (\n  SELECT {} WHERE false\n),\n", nulls.join(", "));
    }
    format!("{name} ({names}) AS (VALUES\n  {}\n),\n", rows.join(",\n  "))
}
