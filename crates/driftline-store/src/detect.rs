//! Drift: what is expected, against what is live, under a rule book. Pure computation over stored data.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use driftline_core::coverage::Coverage;
use driftline_core::difference::{redo, sides};
use driftline_core::judge::{Judgement, Side, judge, not_checked};
use driftline_core::rule::RuleBook;
use driftline_core::verdict::{DriftKind, Status};
use driftline_core::{Change, ResourceKey, StreamId, Value};
use jiff::Timestamp;

use crate::baseline::Accepted;
use crate::catalog::Version;
use crate::error::StoreError;
use crate::log::FileRef;
use crate::net::{Fold, Known, NetRow};
use crate::store::Store;

/// Which two versions of which streams are compared, and what was accepted on top of the first.
#[derive(Clone, Debug, Default)]
pub struct Question {
    pub pairs: Vec<Pair>,
    pub accepted: Vec<Accepted>,
}

/// One stream: the version that is expected, if there is one, and the version that is live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub stream: StreamId,
    pub expected: Option<u64>,
    pub live: u64,
}

/// What is said of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub stream: Arc<StreamId>,
    pub key: ResourceKey,
    pub judgement: Judgement,
    /// When the version was taken in which it first differed.
    pub since: Option<Timestamp>,
    /// The changes as text, where nothing had to be read to know that they all count. `judgement.changes` is
    /// empty then.
    pub unread: Option<Box<str>>,
}

impl Finding {
    /// Every change that counts.
    pub fn changes(&self) -> Vec<Change> {
        match &self.unread {
            None => self.judgement.changes.clone(),
            Some(text) => serde_json::from_str::<Value>(text)
                .ok()
                .and_then(|value| driftline_core::difference::from_value(&value))
                .expect("a list of differences that the store wrote, and checked as it was read"),
        }
    }
}

/// One stream's part in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    pub stream: StreamId,
    pub expected: Option<u64>,
    pub version: u64,
    pub taken_at: Timestamp,
    pub complete_extents: usize,
    pub partial_extents: usize,
}

/// How many resources of one type ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub in_sync: u64,
    pub drifted: u64,
    pub unknown: u64,
    pub not_checked: u64,
}

impl Tally {
    pub fn total(self) -> u64 {
        self.in_sync + self.drifted + self.unknown + self.not_checked
    }

    /// How many were compared at all.
    pub fn checked(self) -> u64 {
        self.in_sync + self.drifted
    }

    pub fn add(&mut self, status: Status) {
        match status {
            Status::InSync => self.in_sync += 1,
            Status::Drifted => self.drifted += 1,
            Status::Unknown => self.unknown += 1,
            Status::NotChecked => self.not_checked += 1,
        }
    }
}

/// The whole answer, in order of key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// Everything that was looked at more closely: what is not in sync, and what is only by a rule.
    pub findings: Vec<Finding>,
    pub by_type: BTreeMap<String, Tally>,
    pub sources: Vec<SourceReport>,
    /// How often each rule of the book excused something.
    pub rule_uses: BTreeMap<usize, u64>,
}

impl Drift {
    pub fn tally(&self) -> Tally {
        self.by_type.values().fold(Tally::default(), |sum, tally| Tally {
            in_sync: sum.in_sync + tally.in_sync,
            drifted: sum.drifted + tally.drifted,
            unknown: sum.unknown + tally.unknown,
            not_checked: sum.not_checked + tally.not_checked,
        })
    }

    /// How many differences rules excused.
    pub fn excused(&self) -> usize {
        self.findings.iter().map(|finding| finding.judgement.excused.len()).sum()
    }
}

impl Store {
    /// The pairs and acceptances of a baseline against the newest versions, or those at a time.
    pub fn question(
        &self,
        baseline: &driftline_core::BaselineName,
        at: Option<Timestamp>,
    ) -> Result<Question, StoreError> {
        let baseline = self.catalog.baseline(baseline)?;
        let live = |stream: &crate::catalog::Stream| match at {
            Some(time) => stream.at(time).map(|version| version.number),
            None => stream.head().map(|version| version.number),
        };
        let pairs = self
            .catalog
            .streams()
            .filter_map(|(id, stream)| {
                let expected = baseline.pins.get(id).copied();
                Some(Pair { stream: id.clone(), expected, live: live(stream)? })
            })
            .collect();
        // Seen from an earlier time, what was accepted later had not been.
        let accepted = baseline.accepted.iter().filter(|one| at.is_none_or(|time| one.at <= time)).cloned().collect();
        Ok(Question { pairs, accepted })
    }

    pub fn drift(&self, question: &Question, book: &RuleBook) -> Result<Drift, StoreError> {
        self.drift_from(question, book, &|stream, from, to| self.net(stream, from, to))
    }

    /// The same answer, where somebody else puts change files together: only that is asked of them, and everything is
    /// judged here.
    pub fn drift_by(&self, question: &Question, book: &RuleBook, fold: Fold<'_>) -> Result<Drift, StoreError> {
        self.drift_from(question, book, &|stream, from, to| self.net_by(stream, from, to, fold))
    }

    fn drift_from(&self, question: &Question, book: &RuleBook, net: Fold<'_>) -> Result<Drift, StoreError> {
        let mut drift = Drift::default();
        for pair in &question.pairs {
            self.drift_of(pair, &question.accepted, book, net, &mut drift)?;
        }
        drift.findings.sort_by(|a, b| (&a.key, &a.stream).cmp(&(&b.key, &b.stream)));
        for finding in &drift.findings {
            for excused in &finding.judgement.excused {
                *drift.rule_uses.entry(excused.rule).or_default() += 1;
            }
        }
        Ok(drift)
    }

    fn drift_of(
        &self,
        pair: &Pair,
        accepted: &[Accepted],
        book: &RuleBook,
        net: Fold<'_>,
        drift: &mut Drift,
    ) -> Result<(), StoreError> {
        let stream = self.catalog.stream(&pair.stream)?;
        let live = self.catalog.version(&pair.stream, pair.live)?;
        drift.sources.push(SourceReport {
            stream: pair.stream.clone(),
            expected: pair.expected,
            version: live.number,
            taken_at: live.taken_at,
            complete_extents: live.complete_extents,
            partial_extents: live.partial_extents,
        });
        let Some(expected) = pair.expected else {
            return self.nothing_expected(&pair.stream, live, drift);
        };
        let expected = self.catalog.version(&pair.stream, expected)?;
        let mut net = net(&pair.stream, expected.number, live.number)?;
        self.recall(&pair.stream, expected.number, live.number, book, &mut net)?;
        let live_coverage = self.coverage(&live.coverage)?;
        let expected_coverage =
            if expected.coverage == live.coverage { None } else { Some(self.coverage(&expected.coverage)?) };
        let judge = Judge {
            expected: expected.number,
            store: self,
            stream: Arc::new(pair.stream.clone()),
            taken: stream.versions().map(|version| (version.number, version.taken_at)).collect(),
            live: live.number,
            book,
            expected_coverage: expected_coverage.as_ref().unwrap_or(&live_coverage),
            live_coverage: &live_coverage,
        };

        let mut accepted_by_key: BTreeMap<&ResourceKey, Vec<&Accepted>> = BTreeMap::new();
        for one in accepted.iter().filter(|one| one.stream == pair.stream) {
            accepted_by_key.entry(&one.key).or_default().push(one);
        }
        // Of what is live, everything not judged one by one below is as expected.
        let mut rest: HashMap<String, u64> =
            stream.types(live.number).into_iter().map(|(kind, count)| (kind, count.rows)).collect();
        let mut take = |key: &ResourceKey| {
            if let Some(count) = rest.get_mut(&key.kind) {
                *count = count.saturating_sub(1);
            }
        };
        let mut findings = Vec::with_capacity(net.len());
        // Carried over from before the expected version, and still not looked at.
        if expected.unseen > 0 && live.unseen > 0 {
            let told: BTreeSet<&ResourceKey> = net.iter().map(|row| &row.key).collect();
            for key in self.unseen_keys(&pair.stream, live.number)? {
                if !told.contains(&key) {
                    take(&key);
                    accepted_by_key.remove(&key);
                    findings.push(judge.not_checked(key));
                }
            }
        }
        for row in net {
            if row.is != Known::Absent {
                take(&row.key);
            }
            let accepted = accepted_by_key.remove(&row.key).unwrap_or_default();
            findings.extend(judge.row(row, &accepted)?);
        }
        // Accepted once, and now again as the baseline has it.
        for (key, accepted) in accepted_by_key {
            let pinned = accepted.iter().find_map(|one| one.pinned.clone());
            if pinned.is_some() {
                take(key);
            }
            let expected = expect(pinned.clone(), &accepted);
            findings.extend(judge.sides(key.clone(), expected.as_ref(), pinned.as_ref(), live.number));
        }
        for (kind, count) in rest.into_iter().collect::<BTreeMap<_, _>>() {
            if count > 0 {
                drift.by_type.entry(kind).or_default().in_sync += count;
            }
        }
        for run in findings.chunk_by(|a, b| a.key.kind == b.key.kind) {
            let tally = drift.by_type.entry(run[0].key.kind.clone()).or_default();
            for finding in run {
                tally.add(finding.judgement.status);
            }
        }
        // In sync without even an excuse is what everything else is, too.
        findings.retain(|finding| finding.judgement.status != Status::InSync || !finding.judgement.excused.is_empty());
        drift.findings.append(&mut findings);
        Ok(())
    }

    /// Gives what is gone the image it had, where a rule wants to know what it was.
    fn recall(
        &self,
        stream: &StreamId,
        expected: u64,
        live: u64,
        book: &RuleBook,
        net: &mut [NetRow],
    ) -> Result<(), StoreError> {
        let source = stream.source.as_str();
        let lacks = |row: &NetRow| {
            let gone = row.was != Known::Absent && row.is == Known::Absent;
            gone && row.image.is_none() && book.may_resolve(row.key.as_ref(), source)
        };
        if !net.iter().any(lacks) {
            return Ok(());
        }
        let wanted: BTreeSet<ResourceKey> = net.iter().filter(|row| lacks(row)).map(|row| row.key.clone()).collect();
        let mut images = self.images_of(stream, expected, live, &wanted)?;
        for row in net.iter_mut().filter(|row| lacks(row)) {
            row.image = match images.remove(&row.key) {
                Some(image) => Some(image),
                None => {
                    let mut found = self.lookup(stream, expected, &row.key.id)?.into_iter();
                    found.find(|(key, _)| *key == row.key).map(|(_, value)| value.to_json().into())
                }
            };
        }
        Ok(())
    }

    /// What some resources were at one version, as the change files between it and another tell: the first of them
    /// says what was before it, and seen backwards the last says what came of it.
    fn images_of(
        &self,
        stream: &StreamId,
        version: u64,
        other: u64,
        wanted: &BTreeSet<ResourceKey>,
    ) -> Result<HashMap<ResourceKey, Box<str>>, StoreError> {
        let forward = version <= other;
        let between = self.catalog.stream(stream)?.between(version.min(other), version.max(other));
        let mut files: Vec<&FileRef> = between.filter_map(|version| version.delta.as_ref()).collect();
        if !forward {
            files.reverse();
        }
        let mut images: HashMap<ResourceKey, Box<str>> = HashMap::new();
        for file in files {
            let segment = self.read_parts(file)?;
            let (mut keys, mut rows) = (Vec::new(), Vec::new());
            segment.keys(|row, columns, _, _| {
                let key = columns.to_key(&file.path)?;
                if wanted.contains(&key) && !images.contains_key(&key) {
                    keys.push(key);
                    rows.push(row);
                }
                Ok(())
            })?;
            let found = segment.pick_sides(&rows, forward)?;
            images.extend(keys.into_iter().zip(found).filter_map(|(key, image)| Some((key, image?))));
            if images.len() == wanted.len() {
                break;
            }
        }
        Ok(images)
    }

    /// A stream that the baseline does not speak of: nothing in it can be judged.
    fn nothing_expected(&self, stream: &StreamId, live: &Version, drift: &mut Drift) -> Result<(), StoreError> {
        let shared = Arc::new(stream.clone());
        for key in self.keys(stream, live.number)? {
            drift.by_type.entry(key.kind.clone()).or_default().not_checked += 1;
            drift.findings.push(Finding {
                stream: shared.clone(),
                key,
                judgement: Judgement {
                    status: Status::NotChecked,
                    kind: None,
                    changes: Vec::new(),
                    excused: Vec::new(),
                    reason: Some("the baseline has no version of this source".into()),
                },
                since: None,
                unread: None,
            });
        }
        Ok(())
    }

    /// Every resource that a version has.
    pub fn keys(&self, stream: &StreamId, version: u64) -> Result<BTreeSet<ResourceKey>, StoreError> {
        self.keys_where(stream, version, |_| true)
    }

    /// The resources of a version that its own pass saw.
    pub(crate) fn seen_keys(&self, stream: &StreamId, version: u64) -> Result<BTreeSet<ResourceKey>, StoreError> {
        self.keys_where(stream, version, |seen| seen)
    }

    /// The resources of a version that are carried over from earlier ones.
    pub fn unseen_keys(&self, stream: &StreamId, version: u64) -> Result<BTreeSet<ResourceKey>, StoreError> {
        self.keys_where(stream, version, |seen| !seen)
    }

    fn keys_where(
        &self,
        stream: &StreamId,
        version: u64,
        wanted: impl Fn(bool) -> bool,
    ) -> Result<BTreeSet<ResourceKey>, StoreError> {
        let (_, base, changes) = self
            .catalog
            .stream(stream)?
            .chain(version)
            .ok_or_else(|| StoreError::damaged(stream.to_string(), "no full image starts its versions"))?;
        let mut keys = BTreeSet::new();
        let files = changes.into_iter().filter_map(|version| version.delta.as_ref());
        for (at, file) in std::iter::once(base).chain(files).enumerate() {
            self.read_parts(file)?.keys(|_, columns, content, seen| {
                if content.is_some() && wanted(seen) {
                    keys.insert(columns.to_key(&file.path)?);
                } else if at > 0 {
                    keys.remove(&columns.to_key(&file.path)?);
                }
                Ok(())
            })?;
        }
        Ok(keys)
    }
}

/// The expected side after what was accepted.
pub fn expect(pinned: Option<Value>, accepted: &[&Accepted]) -> Option<Value> {
    accepted.iter().fold(pinned, |expected, one| match (&one.path, expected) {
        (None, _) => one.value.clone(),
        (Some(path), Some(mut expected)) => {
            path.set(&mut expected, one.value.clone());
            Some(expected)
        }
        (Some(_), None) => None,
    })
}

struct Judge<'a> {
    store: &'a Store,
    stream: Arc<StreamId>,
    taken: HashMap<u64, Timestamp>,
    live: u64,
    expected: u64,
    book: &'a RuleBook,
    expected_coverage: &'a Coverage,
    live_coverage: &'a Coverage,
}

impl Judge<'_> {
    fn row(&self, row: NetRow, accepted: &[&Accepted]) -> Result<Option<Finding>, StoreError> {
        let source = self.stream.source.as_str();
        if row.is == Known::Unseen || (row.was == Known::Unseen && accepted.is_empty()) {
            return Ok(Some(self.not_checked(row.key)));
        }
        if !accepted.is_empty() {
            let pinned = accepted.iter().find_map(|one| one.pinned.clone());
            let live = match (row.is, &pinned) {
                (Known::Absent, _) => None,
                (_, Some(pinned)) => Some(redo(pinned, &row.differences()?)),
                // New since the pin: what it looks like is only in its version.
                (_, None) => self.value(self.live, &row.key)?,
            };
            return Ok(self.sides(row.key, expect(pinned, accepted).as_ref(), live.as_ref(), row.since));
        }
        let present = (row.was != Known::Absent, row.is != Known::Absent);
        match (present, row.told) {
            // No rule has a say: the list is the answer, unread.
            ((true, true), Some(told)) if self.same_way() && !self.book.may_touch(row.key.as_ref(), source, &told) => {
                let judgement = Judgement {
                    status: Status::Drifted,
                    kind: Some(DriftKind::Modified),
                    changes: Vec::new(),
                    excused: Vec::new(),
                    reason: None,
                };
                let since = self.taken_at(row.since);
                Ok(Some(Finding {
                    stream: self.stream.clone(),
                    key: row.key,
                    judgement,
                    since,
                    unread: Some(told.changes),
                }))
            }
            // What differs is not enough for a rule that reads the rest.
            ((true, true), _) if self.book.reads_all_of(row.key.as_ref(), source) => {
                let before = self.value(self.expected, &row.key)?;
                let after = self.value(self.live, &row.key)?;
                Ok(self.sides(row.key, before.as_ref(), after.as_ref(), row.since))
            }
            ((true, false), _) if row.image.is_some() => {
                let before = row.image.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
                let unread = || StoreError::damaged(format!("the image of {}", row.key), "it cannot be read");
                let before = before.ok_or_else(unread)?;
                Ok(self.sides(row.key, Some(&before), None, row.since))
            }
            (present, told) => {
                let row = NetRow { told, ..row };
                let (before, after) = sides(&row.differences()?);
                let side = |present: bool, value: Value| present.then_some(value);
                let (before, after) = (side(present.0, before), side(present.1, after));
                Ok(self.sides(row.key, before.as_ref(), after.as_ref(), row.since))
            }
        }
    }

    /// Whether the two listings were made in the same way, and can be held against each other.
    fn same_way(&self) -> bool {
        self.live_coverage.basis() == self.expected_coverage.basis()
    }

    fn value(&self, version: u64, key: &ResourceKey) -> Result<Option<Value>, StoreError> {
        let found = self.store.lookup(&self.stream, version, &key.id)?;
        Ok(found.into_iter().find(|(found, _)| found == key).map(|(_, value)| value))
    }

    fn sides(&self, key: ResourceKey, expected: Option<&Value>, live: Option<&Value>, since: u64) -> Option<Finding> {
        let expected = Side { value: expected, coverage: self.expected_coverage };
        let live = Side { value: live, coverage: self.live_coverage };
        let judgement = judge(key.as_ref(), self.stream.source.as_str(), &expected, &live, self.book)?;
        let differs = matches!(judgement.status, Status::Drifted | Status::Unknown);
        let since = differs.then(|| self.taken_at(since)).flatten();
        Some(self.finding(key, judgement, since))
    }

    fn not_checked(&self, key: ResourceKey) -> Finding {
        let judgement = not_checked(key.as_ref(), self.expected_coverage, self.live_coverage);
        self.finding(key, judgement, None)
    }

    fn finding(&self, key: ResourceKey, judgement: Judgement, since: Option<Timestamp>) -> Finding {
        Finding { stream: self.stream.clone(), key, judgement, since, unread: None }
    }

    fn taken_at(&self, version: u64) -> Option<Timestamp> {
        self.taken.get(&version).copied()
    }
}
