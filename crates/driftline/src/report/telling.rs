//! What a report tells, whichever command asks and whatever it is written as.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use driftline_core::compare::Change;
use driftline_core::rule::RuleBook;
use driftline_core::seal::is_sealed;
use driftline_core::severity::Severity;
use driftline_core::verdict::{DriftKind, Status};
use driftline_core::{StreamId, Value};
use driftline_store::detect::{Drift, Finding, Tally};
use jiff::Timestamp;

use super::{Entry, Report, github, html, junit, sarif};
use crate::args::FailOn;
use crate::output::{Format, short};
use crate::severity::{Counts, Grade};

/// How long a value gets in a report.
const VALUE: usize = 160;
/// How many excused differences a report lists one by one.
pub(crate) const EXCUSED: usize = 1_000;

/// A whole report.
pub(crate) struct Telling<'a> {
    /// `Drift`, `Comparison`.
    pub title: &'static str,
    /// What it is held against.
    pub heading: String,
    /// The same in words that do not age.
    pub exact: String,
    pub result: String,
    pub now: Timestamp,
    pub tally: Tally,
    pub severities: Counts,
    pub excused: usize,
    pub sources: Vec<Source>,
    pub by_type: BTreeMap<&'a str, Tally>,
    /// The worst first.
    pub findings: Vec<Told<'a>>,
    /// Differences that rules excused, as many as there is room for; `excused` is how many there are.
    pub excuses: Vec<(usize, Excuse)>,
    /// The resources that `excuses` speaks of.
    pub excused_of: Vec<Told<'a>>,
    /// How many resources of each status a person wants listed.
    pub limit: usize,
}

/// One source, and how fresh it is.
pub(crate) struct Source {
    pub name: String,
    pub expected: Option<u64>,
    pub version: Option<u64>,
    pub taken_at: Option<Timestamp>,
    pub stale: bool,
    /// Extents that were listed whole, and in part.
    pub extents: (usize, usize),
}

/// One resource.
pub(crate) struct Told<'a> {
    pub id: &'a str,
    pub kind: &'a str,
    pub place: &'a str,
    pub source: &'a str,
    pub status: Status,
    pub drift: Option<DriftKind>,
    pub severity: Option<Severity>,
    pub why: &'a str,
    pub since: Option<Timestamp>,
    pub changes: Vec<Line<'a>>,
    pub excuses: Vec<Excuse>,
    /// Why it was not checked.
    pub reason: Option<&'a str>,
    /// Whether it counts for the exit code.
    pub gates: bool,
    /// What became of a finding without changes since the version before.
    pub state: Option<State>,
}

impl Told<'_> {
    /// `modified`, `deleted`, `unknown`, `resolved`, `not_checked`, `in_sync`.
    pub(crate) fn word(&self) -> &'static str {
        self.drift.map_or(self.status.name(), DriftKind::name)
    }

    pub(crate) fn is_finding(&self) -> bool {
        matches!(self.status, Status::Drifted | Status::Unknown)
    }

    /// Why it matters and what changed, a line each, with no more changes than so many.
    pub(crate) fn lines(&self, most: usize) -> Vec<String> {
        let why = (!self.why.is_empty()).then(|| self.why.to_owned());
        let changes = self.changes.iter().take(most);
        let changes = changes.map(|line| format!("{}: {} -> {}", line.path, line.before, line.after));
        let more = self.changes.len().saturating_sub(most);
        let more = (more > 0).then(|| format!("… and {more} more changes"));
        why.into_iter().chain(changes).chain(more).collect()
    }
}

/// One change.
pub(crate) struct Line<'a> {
    /// A JSON pointer; empty for the whole resource.
    pub path: String,
    pub before: String,
    pub after: String,
    pub severity: Option<Severity>,
    pub why: &'a str,
    pub state: Option<State>,
}

/// A difference that does not count.
pub(crate) struct Excuse {
    pub path: String,
    pub before: String,
    pub after: String,
    pub rule: String,
    pub origin: String,
    pub reason: String,
}

/// What became of a change since the version before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    New,
    Unchanged,
    Updated,
}

/// A place, and what was not checked there.
pub(crate) struct Gap<'a> {
    pub source: &'a str,
    pub place: &'a str,
    pub reason: &'a str,
    pub types: BTreeMap<&'a str, usize>,
}

impl Gap<'_> {
    pub(crate) fn count(&self) -> usize {
        self.types.values().sum()
    }
}

impl<'a> Telling<'a> {
    /// Findings with this severity.
    pub(crate) fn of(&self, level: Severity) -> impl Iterator<Item = &Told<'a>> {
        self.findings.iter().filter(move |told| told.severity == Some(level))
    }

    pub(crate) fn resolved(&self) -> impl Iterator<Item = &Told<'a>> {
        self.findings.iter().filter(|told| told.drift == Some(DriftKind::Resolved))
    }

    /// What was not checked, by source, place and reason.
    pub(crate) fn gaps(&self) -> Vec<Gap<'a>> {
        let mut groups: BTreeMap<(&str, &str, &str), BTreeMap<&str, usize>> = BTreeMap::new();
        for told in self.findings.iter().filter(|told| told.status == Status::NotChecked) {
            let group = groups.entry((told.source, told.place, told.reason.unwrap_or_default())).or_default();
            *group.entry(told.kind).or_default() += 1;
        }
        let gap = |((source, place, reason), types)| Gap { source, place, reason, types };
        groups.into_iter().map(gap).collect()
    }

    /// How many of those that were to be looked at were.
    pub(crate) fn checked(&self) -> (u64, u64) {
        (self.tally.total() - self.tally.not_checked, self.tally.total())
    }
}

/// In one of the forms that only reports have.
pub(crate) fn draw(telling: &Telling<'_>, format: Format) -> Option<String> {
    match format {
        Format::Html => Some(html::page(telling)),
        Format::Sarif => Some(sarif::log(telling)),
        Format::Junit => Some(junit::suites(telling)),
        Format::Github => Some(github::annotations(telling)),
        _ => None,
    }
}

/// Both sides of a change, for people: short, and never a secret's digest.
pub(crate) fn sides(expected: Option<&Value>, actual: Option<&Value>) -> (String, String) {
    let side = |value: Option<&Value>| match value {
        None => "absent".to_owned(),
        Some(value) if is_sealed(value) => "(sealed)".to_owned(),
        Some(value) => short(&super::without_digests(value).to_json(), VALUE),
    };
    match (expected, actual) {
        (Some(before), Some(after)) if is_sealed(before) && is_sealed(after) => {
            ("(sealed)".into(), "(sealed, another value)".into())
        }
        _ => (side(expected), side(actual)),
    }
}

pub(crate) fn line<'a>(change: &Change, grade: Option<Grade<'a>>, state: Option<State>) -> Line<'a> {
    let (before, after) = sides(change.expected.as_ref(), change.actual.as_ref());
    Line {
        path: change.path.to_string(),
        before,
        after,
        severity: grade.map(|grade| grade.level),
        why: grade.map_or("", |grade| grade.reason),
        state,
    }
}

/// Whether a finding makes the exit code 2.
fn gates(fail_on: FailOn, status: Status, severity: Option<Severity>) -> bool {
    match (fail_on, fail_on.severity()) {
        (_, Some(level)) => severity.is_some_and(|severity| severity >= level),
        (FailOn::Drifted, _) => status == Status::Drifted,
        (FailOn::Unknown, _) => matches!(status, Status::Drifted | Status::Unknown),
        _ => false,
    }
}

/// What the version before said.
struct Before<'a> {
    streams: Vec<String>,
    findings: HashMap<(String, &'a driftline_core::ResourceKey), &'a Finding>,
}

impl<'a> Before<'a> {
    fn new(drift: &'a Drift) -> Self {
        let name = |stream: &StreamId| stream.to_string();
        Self {
            streams: drift.sources.iter().map(|source| name(&source.stream)).collect(),
            findings: drift.findings.iter().map(|one| ((name(&one.stream), &one.key), one)).collect(),
        }
    }

    /// What became of each change, and of the finding as a whole; nothing where there is nothing to go by.
    fn states(&self, entry: &Entry<'_>, changes: &[Change]) -> Option<(Vec<State>, State)> {
        if !self.streams.iter().any(|name| name == entry.source) {
            return None;
        }
        let Some(before) = self.findings.get(&(entry.source.to_owned(), entry.key)) else {
            return Some((vec![State::New; changes.len()], State::New));
        };
        if before.judgement.status == Status::NotChecked {
            return None;
        }
        let known = before.changes();
        let state = |change: &Change| match known.iter().find(|known| known.path == change.path) {
            None => State::New,
            Some(known) if known == change => State::Unchanged,
            Some(_) => State::Updated,
        };
        let same = (before.judgement.status, before.judgement.kind) == (entry.status, entry.kind);
        Some((changes.iter().map(state).collect(), if same { State::Unchanged } else { State::New }))
    }
}

fn excuses(entry: &Entry<'_>, book: &RuleBook, most: usize) -> Vec<Excuse> {
    let excuse = |one: &driftline_core::Excused| {
        let rule = &book.rules()[one.rule];
        let (before, after) = match one.change.path.is_root() {
            // Being there, or being gone, is what was excused.
            true => (String::new(), String::new()),
            false => sides(one.change.expected.as_ref(), one.change.actual.as_ref()),
        };
        Excuse {
            path: one.change.path.to_string(),
            before,
            after,
            rule: rule.kind.name().to_owned(),
            origin: rule.origin.to_string(),
            reason: rule.reason.clone(),
        }
    };
    entry.excused.iter().take(most).map(excuse).collect()
}

impl Report<'_> {
    pub(super) fn telling(&self) -> Telling<'_> {
        let before = self.previous.map(Before::new);
        let mut findings: Vec<Told<'_>> = self.entries.iter().map(|entry| self.told(entry, before.as_ref())).collect();
        findings.sort_by_key(|told| Reverse(told.severity));
        let mut excused_of = Vec::new();
        let mut list = Vec::new();
        for entry in self.entries.iter().chain(&self.only_excused).filter(|entry| !entry.excused.is_empty()) {
            if list.len() >= EXCUSED {
                break;
            }
            let at = excused_of.len();
            list.extend(excuses(entry, self.book, EXCUSED - list.len()).into_iter().map(|excuse| (at, excuse)));
            excused_of.push(self.told(entry, None));
        }
        let source = |source: &driftline_store::detect::SourceReport| Source {
            name: source.stream.to_string(),
            expected: source.expected,
            version: Some(source.version),
            taken_at: Some(source.taken_at),
            stale: self.now.duration_since(source.taken_at) > self.stale_after,
            extents: (source.complete_extents, source.partial_extents),
        };
        Telling {
            title: "Drift",
            heading: self.heading(),
            exact: self.expected.exact_heading(),
            result: self.result_line(),
            now: self.now,
            tally: self.tally,
            severities: self.severities,
            excused: self.excused,
            sources: self.sources.iter().map(source).collect(),
            by_type: self.by_type.iter().map(|(kind, tally)| (kind.as_str(), *tally)).collect(),
            findings,
            excuses: list,
            excused_of,
            limit: self.limit(),
        }
    }

    fn told<'e>(&'e self, entry: &'e Entry<'e>, before: Option<&Before<'_>>) -> Told<'e> {
        let changes = entry.changes.list();
        let states = before.and_then(|before| before.states(entry, &changes));
        let grade = |at: usize| entry.rating.as_ref().and_then(|rating| rating.changes.get(at)).copied();
        let state = |at: usize| states.as_ref().and_then(|(each, _)| each.get(at)).copied();
        let lines = changes.iter().enumerate().map(|(at, change)| line(change, grade(at), state(at)));
        Told {
            id: &entry.key.id,
            kind: &entry.key.kind,
            place: entry.key.place.as_str(),
            source: entry.source,
            status: entry.status,
            drift: entry.kind,
            severity: entry.severity(),
            why: entry.rating.as_ref().map_or("", |rating| rating.worst.reason),
            since: entry.since,
            changes: lines.collect(),
            excuses: excuses(entry, self.book, usize::MAX),
            reason: entry.reason,
            gates: gates(self.fail_on, entry.status, entry.severity()),
            state: states.as_ref().map(|(_, whole)| *whole),
        }
    }
}
