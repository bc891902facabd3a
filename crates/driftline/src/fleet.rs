//! `fleet`: how every account is looked after. Pure computation over the store: nobody is asked.

mod expected;
mod show;

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::coverage::EVERY;
use driftline_core::key::{GLOBAL, NOWHERE};
use driftline_core::verdict::Status;
use driftline_core::{BaselineName, Coverage, Outcome, Severity, StreamId};
use driftline_sources::organization;
use driftline_store::baseline::Accepted;
use driftline_store::detect::{Drift, Pair, Question, Tally};
use driftline_store::{Store, Stream, Version};
use jiff::{SignedDuration, Timestamp};

use crate::accounts::chosen;
use crate::drift::{entry_of, is_named, parse_sources};
use crate::error::CommandResult;
use crate::exit;
use crate::fleet_args::{By, FleetArgs, FleetFailOn};
use crate::report::Entry;
use crate::settings::{DEFAULT_STALE_AFTER, Settings};
use crate::severity::Rater;
use crate::time::parse_duration;

pub(crate) fn run(settings: &Settings, args: &FleetArgs) -> CommandResult<u8> {
    let store = settings.open_store()?;
    let fleet = look(settings, &store, args)?;
    settings.printer.print(&fleet)?;
    let failed = |what: &FleetFailOn| {
        let need = match what {
            FleetFailOn::Stale => Need::Stale,
            FleetFailOn::Partial => Need::Partial,
            FleetFailOn::Missing => Need::Missing,
            FleetFailOn::Drifted => Need::Drifted,
        };
        fleet.rows.iter().any(|row| row.has(need))
    };
    Ok(if args.fail_on.iter().any(failed) { exit::DRIFT } else { exit::IN_SYNC })
}

/// Whose row: an account (or a cluster, or nobody), and a region or a source of it.
type Whose = (String, Option<String>);

/// Why somebody should look at a row; the worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Something critical or high is not as expected.
    Urgent,
    /// It should be there, and was never looked at.
    Missing,
    Stale,
    Partial,
    Drifted,
    /// There is nothing to compare with.
    NotChecked,
    Unknown,
    InSync,
}

impl Need {
    /// How it is called. What is urgent is drifted or unknown, and says so beside it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Need::Urgent => "urgent",
            Need::Missing => "missing",
            Need::Stale => "stale",
            Need::Partial => "partial",
            Need::Drifted => "drifted",
            Need::NotChecked => "not_checked",
            Need::Unknown => "unknown",
            Need::InSync => "in_sync",
        }
    }
}

/// What is known of one account, or of a region or source of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub expected: bool,
    pub streams: usize,
    /// Streams that the baseline does not speak of.
    unpinned: usize,
    pub stale: usize,
    /// Streams of which nothing was ever seen.
    never: usize,
    /// When the stream was last seen that was not seen for longest.
    oldest: Option<Timestamp>,
    pub newest: Option<Timestamp>,
    pub complete: usize,
    pub partial: usize,
    /// Why extents are partial, with how many of them are for that.
    pub reasons: BTreeMap<String, usize>,
    pub tally: Tally,
    pub worst: Option<Severity>,
}

impl Row {
    /// Everything of it has been seen since.
    pub(crate) fn last_look(&self) -> Option<Timestamp> {
        self.oldest.filter(|_| self.never == 0)
    }

    pub(crate) fn resources(&self) -> u64 {
        self.tally.total()
    }

    pub(crate) fn has(&self, need: Need) -> bool {
        match need {
            Need::Urgent => self.worst.is_some_and(|worst| worst >= Severity::High),
            Need::Missing => self.streams == 0,
            Need::Stale => self.stale > 0,
            Need::Partial => self.partial > 0,
            Need::Drifted => self.tally.drifted > 0,
            // What was seen only in part is said to be that.
            Need::NotChecked => self.partial == 0 && (self.unpinned > 0 || self.tally.not_checked > 0),
            Need::Unknown => self.tally.unknown > 0,
            Need::InSync => !Self::WORSE.into_iter().any(|worse| self.has(worse)),
        }
    }

    const WORSE: [Need; 7] =
        [Need::Urgent, Need::Missing, Need::Stale, Need::Partial, Need::Drifted, Need::NotChecked, Need::Unknown];

    /// Everything that is the matter, the worst first; or that nothing is.
    pub(crate) fn needs(&self) -> Vec<Need> {
        let found: Vec<Need> = Self::WORSE.into_iter().filter(|need| self.has(*need)).collect();
        if found.is_empty() { vec![Need::InSync] } else { found }
    }
}

/// The answer.
pub(crate) struct Fleet {
    pub now: Timestamp,
    pub baseline: Option<(BaselineName, Timestamp)>,
    pub by: By,
    pub stale_after: SignedDuration,
    pub names: BTreeMap<String, String>,
    /// Where what is expected is known from; empty if from nowhere.
    pub expected_from: Vec<String>,
    /// When the lists were made that tell who is expected, as far as they are lists of an organization: the oldest.
    pub listed_at: Option<Timestamp>,
    pub whose: Vec<Whose>,
    pub rows: Vec<Row>,
    limit: usize,
}

pub(crate) fn look(settings: &Settings, store: &Store, args: &FleetArgs) -> CommandResult<Fleet> {
    let named = parse_sources(&args.source)?;
    for one in &named {
        if !store.catalog().streams().any(|(stream, _)| is_named(stream, std::slice::from_ref(one))) {
            return Err(store.catalog().no_state(one).into());
        }
    }
    let config = &settings.config;
    let given = args.stale_after.as_deref().map(parse_duration).transpose()?;
    let stale_after = given.or(config.fleet.stale_after).or(config.stale_after).unwrap_or(DEFAULT_STALE_AFTER);
    let baseline = baseline(settings, store, args.baseline.as_deref())?;
    let mut gathering = Gathering {
        settings,
        store,
        by: args.by,
        stale_before: settings.now.checked_sub(stale_after).unwrap_or(Timestamp::MIN),
        accepted: BTreeMap::new(),
        rows: BTreeMap::new(),
    };
    let pinned = baseline.as_ref().map(|(name, _)| store.catalog().baseline(name)).transpose()?;
    for accepted in pinned.iter().flat_map(|pinned| &pinned.accepted) {
        gathering.accepted.entry(&accepted.stream).or_default().push(accepted.clone());
    }
    let streams = store.catalog().streams();
    let streams = streams.filter(|(id, _)| id.source.as_str() != organization::SOURCE && is_named(id, &named));
    for (id, stream) in streams {
        if let Some(head) = stream.head() {
            let expected = pinned.and_then(|pinned| pinned.pins.get(id).copied());
            gathering.stream(id, stream, head, expected)?;
        }
    }
    let excluded = chosen(&args.exclude_accounts)?;
    let stale_before = gathering.stale_before;
    let mut rows = gathering.rows;
    let expected = expected::expected(settings, store, args.expect.as_deref(), &excluded, stale_before)?;
    let seen: BTreeSet<String> = rows.keys().map(|(account, _)| account.clone()).collect();
    for account in expected.accounts.iter().filter(|account| !seen.contains(*account)) {
        rows.insert((account.clone(), None), Row::default());
    }
    for ((account, _), row) in &mut rows {
        row.expected = expected.accounts.contains(account);
    }
    let mut rows: Vec<(Whose, Row)> = rows.into_iter().collect();
    rows.sort_by(|(a, one), (b, other)| {
        let order = |row: &Row| (row.needs()[0], std::cmp::Reverse((row.worst, row.tally.drifted, row.partial)));
        order(one).cmp(&order(other)).then_with(|| a.cmp(b))
    });
    let (whose, rows) = rows.into_iter().unzip();
    Ok(Fleet {
        now: settings.now,
        baseline,
        by: args.by,
        stale_after,
        names: expected.names,
        expected_from: expected.from,
        listed_at: expected.listed_at,
        whose,
        rows,
        limit: args.limit,
    })
}

/// What is compared with. One that is named must be there; without any, nothing is checked, and that is said.
fn baseline(
    settings: &Settings,
    store: &Store,
    given: Option<&str>,
) -> CommandResult<Option<(BaselineName, Timestamp)>> {
    let name = settings.baseline(given)?;
    match store.catalog().baseline(&name) {
        Ok(found) => Ok(Some((name, found.set_at))),
        Err(error) if given.is_some() => Err(error.into()),
        Err(_) => {
            settings.printer.warn(&format!(
                "there is no baseline `{name}`, so nothing is checked; `driftline baseline set` pins what there is"
            ));
            Ok(None)
        }
    }
}

struct Gathering<'a> {
    settings: &'a Settings,
    store: &'a Store,
    by: By,
    stale_before: Timestamp,
    accepted: BTreeMap<&'a StreamId, Vec<Accepted>>,
    rows: BTreeMap<Whose, Row>,
}

impl<'a> Gathering<'a> {
    fn stream(
        &mut self,
        id: &'a StreamId,
        stream: &Stream,
        head: &Version,
        expected: Option<u64>,
    ) -> CommandResult<()> {
        let coverage = self.store.coverage(&head.coverage)?;
        // One stream at a time: of a thousand accounts, what drifted in all of them need not be in memory at once.
        let drift = match expected {
            Some(expected) => {
                let pair = Pair { stream: id.clone(), expected: Some(expected), live: head.number };
                let accepted = self.accepted.remove(id).unwrap_or_default();
                let question = Question { pairs: vec![pair], accepted };
                Some(self.store.drift(&question, &self.settings.rules.book)?)
            }
            None => None,
        };
        let mut parts: BTreeMap<Whose, Row> = BTreeMap::new();
        for (_, place, outcome) in coverage.iter().filter(|(_, place, _)| *place != EVERY) {
            let row = parts.entry(self.whose(place, id)).or_default();
            count_extent(row, outcome);
        }
        self.by_key(id, head, &coverage, drift.as_ref(), &mut parts)?;
        if let Some(drift) = drift.as_ref().filter(|drift| !drift.findings.is_empty()) {
            self.rate(id, drift, &mut parts)?;
        }
        let seen = last_seen(stream);
        for (whose, part) in parts {
            let row = self.rows.entry(whose).or_default();
            add(row, part);
            row.streams += 1;
            row.unpinned += usize::from(expected.is_none());
            row.stale += usize::from(seen.is_none_or(|seen| seen < self.stale_before));
            row.never += usize::from(seen.is_none());
            row.oldest = [row.oldest, seen].into_iter().flatten().min();
            row.newest = row.newest.max(seen);
        }
        Ok(())
    }

    /// Each thing is counted where it is. What a pass says it looked at does not tell: a source may name a thing in a
    /// place that it does not vouch for, and that is where somebody will look for it.
    fn by_key(
        &self,
        id: &StreamId,
        head: &Version,
        coverage: &Coverage,
        drift: Option<&Drift>,
        parts: &mut BTreeMap<Whose, Row>,
    ) -> CommandResult<()> {
        let keys = self.store.keys(id, head.number)?;
        for key in &keys {
            let tally = &mut parts.entry(self.whose(key.place.as_str(), id)).or_default().tally;
            match drift {
                Some(_) => tally.in_sync += 1,
                None => tally.not_checked += 1,
            }
        }
        for finding in drift.iter().flat_map(|drift| &drift.findings) {
            let status = finding.judgement.status;
            if status != Status::InSync {
                let tally = &mut parts.entry(self.whose(finding.key.place.as_str(), id)).or_default().tally;
                // It was taken for in sync above, if it is there.
                tally.in_sync -= u64::from(keys.contains(&finding.key));
                tally.add(status);
            }
        }
        if parts.is_empty() {
            parts.insert(self.whose(NOWHERE, id), Row::default());
        }
        // A word on every place is one on each of them.
        for (_, _, outcome) in coverage.iter().filter(|(_, place, _)| *place == EVERY) {
            for row in parts.values_mut() {
                count_extent(row, outcome);
            }
        }
        Ok(())
    }

    fn rate(&self, id: &StreamId, drift: &Drift, parts: &mut BTreeMap<Whose, Row>) -> CommandResult<()> {
        let source = id.to_string();
        let rater = Rater::new(&self.settings.config.severities);
        let mut entries: Vec<Entry<'_>> = drift.findings.iter().map(|finding| entry_of(finding, &source)).collect();
        rater.rate_all(&mut entries)?;
        for entry in &entries {
            let row = parts.entry(self.whose(entry.key.place.as_str(), id)).or_default();
            row.worst = row.worst.max(entry.severity());
        }
        Ok(())
    }

    fn whose(&self, place: &str, stream: &StreamId) -> Whose {
        let (account, region) = of_place(place);
        let part = match self.by {
            By::Account => None,
            By::Region => Some(region),
            By::Source => Some(stream.source.to_string()),
        };
        (account, part)
    }
}

fn count_extent(row: &mut Row, outcome: &Outcome) {
    match outcome {
        Outcome::Complete => row.complete += 1,
        Outcome::Partial { reason } => {
            row.partial += 1;
            *row.reasons.entry(reason.clone()).or_default() += 1;
        }
    }
}

fn add(row: &mut Row, part: Row) {
    row.complete += part.complete;
    row.partial += part.partial;
    for (reason, extents) in part.reasons {
        *row.reasons.entry(reason).or_default() += extents;
    }
    row.tally = Tally {
        in_sync: row.tally.in_sync + part.tally.in_sync,
        drifted: row.tally.drifted + part.tally.drifted,
        unknown: row.tally.unknown + part.tally.unknown,
        not_checked: row.tally.not_checked + part.tally.not_checked,
    };
    row.worst = row.worst.max(part.worst);
}

/// When something of a stream was last really seen: a version of which nothing could be listed looked, and saw nothing.
fn last_seen(stream: &Stream) -> Option<Timestamp> {
    let saw = |version: &&Version| {
        version.complete_extents > 0 || version.partial_extents == 0 || version.rows > version.unseen
    };
    stream.versions().rev().find(saw).map(|version| version.taken_at)
}

/// The account and the region of a place; of a place of another kind what stands in their stead: `k8s/prod`, `default`.
fn of_place(place: &str) -> (String, String) {
    let mut parts = place.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("aws"), Some(account), region) => (account.to_owned(), region.unwrap_or(GLOBAL).to_owned()),
        (Some(kind), Some(of), rest) => (format!("{kind}/{of}"), rest.unwrap_or(NOWHERE).to_owned()),
        _ => (place.to_owned(), NOWHERE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_in_an_account_or_in_what_stands_for_one() {
        for (place, account, region) in [
            ("aws/123456789012/eu-west-1", "123456789012", "eu-west-1"),
            ("aws/123456789012/global", "123456789012", "global"),
            ("aws/-/eu-west-1", "-", "eu-west-1"),
            ("k8s/prod/default", "k8s/prod", "default"),
            ("-", "-", "-"),
            ("dns", "dns", "-"),
        ] {
            assert_eq!(of_place(place), (account.to_owned(), region.to_owned()), "{place}");
        }
    }

    #[test]
    fn what_was_not_seen_whole_lately_and_as_expected_is_not_in_sync() {
        let good = Row { streams: 1, complete: 3, tally: Tally { in_sync: 5, ..Tally::default() }, ..Row::default() };
        assert_eq!(good.needs(), [Need::InSync]);
        let with = |change: fn(&mut Row)| {
            let mut row = good.clone();
            change(&mut row);
            row.needs()
        };
        assert_eq!(with(|row| row.streams = 0), [Need::Missing]);
        assert_eq!(with(|row| row.stale = 1), [Need::Stale]);
        assert_eq!(with(|row| row.partial = 1), [Need::Partial]);
        assert_eq!(with(|row| row.unpinned = 1), [Need::NotChecked]);
        assert_eq!(with(|row| row.tally.not_checked = 1), [Need::NotChecked]);
        assert_eq!(with(|row| row.tally.unknown = 1), [Need::Unknown]);
        assert_eq!(with(|row| (row.tally.drifted, row.worst) = (1, Some(Severity::Medium))), [Need::Drifted]);
        let worst = with(|row| {
            (row.tally.drifted, row.worst, row.stale, row.partial) = (1, Some(Severity::Critical), 1, 1);
        });
        assert_eq!(worst, [Need::Urgent, Need::Stale, Need::Partial, Need::Drifted]);
    }
}
