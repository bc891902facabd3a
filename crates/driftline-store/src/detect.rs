//! Drift: what is expected, against what is live, under a rule book. Pure computation over stored data.

use std::collections::{BTreeMap, BTreeSet};

use driftline_core::coverage::Coverage;
use driftline_core::judge::{Judgement, Side, judge, not_checked};
use driftline_core::prune::restore_before;
use driftline_core::rule::RuleBook;
use driftline_core::verdict::Status;
use driftline_core::{ResourceKey, StreamId, Value};
use jiff::Timestamp;

use crate::baseline::Accepted;
use crate::catalog::Version;
use crate::error::StoreError;
use crate::segment::{Image, Row};
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
    pub stream: StreamId,
    pub key: ResourceKey,
    pub judgement: Judgement,
    /// When the version was taken in which it first differed.
    pub since: Option<Timestamp>,
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
            .streams
            .iter()
            .filter_map(|(id, stream)| {
                let expected = baseline.pins.get(id).copied();
                Some(Pair { stream: id.clone(), expected, live: live(stream)? })
            })
            .collect();
        Ok(Question { pairs, accepted: baseline.accepted.clone() })
    }

    pub fn drift(&self, question: &Question, book: &RuleBook) -> Result<Drift, StoreError> {
        let mut drift = Drift::default();
        for pair in &question.pairs {
            self.drift_of(pair, &question.accepted, book, &mut drift)?;
        }
        drift.findings.sort_by(|a, b| (&a.key, &a.stream).cmp(&(&b.key, &b.stream)));
        for finding in &drift.findings {
            for excused in &finding.judgement.excused {
                *drift.rule_uses.entry(excused.rule).or_default() += 1;
            }
        }
        Ok(drift)
    }

    fn drift_of(&self, pair: &Pair, accepted: &[Accepted], book: &RuleBook, drift: &mut Drift) -> Result<(), StoreError> {
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
        let net = self.net(&pair.stream, expected.number, live.number)?;
        let live_coverage = self.coverage(&live.coverage)?;
        let expected_coverage = match expected.coverage == live.coverage {
            true => None,
            false => Some(self.coverage(&expected.coverage)?),
        };
        let judge = Judge {
            store: self,
            stream: &pair.stream,
            book,
            expected_coverage: expected_coverage.as_ref().unwrap_or(&live_coverage),
            live_coverage: &live_coverage,
        };

        let mut accepted_by_key: BTreeMap<&ResourceKey, Vec<&Accepted>> = BTreeMap::new();
        for one in accepted.iter().filter(|one| one.stream == pair.stream) {
            accepted_by_key.entry(&one.key).or_default().push(one);
        }
        // Of what is live, everything not judged one by one below is as expected.
        let mut rest: BTreeMap<String, u64> =
            stream.types(live.number).into_iter().map(|(kind, count)| (kind, count.rows)).collect();
        let mut take = |key: &ResourceKey| {
            if let Some(count) = rest.get_mut(&key.kind) {
                *count = count.saturating_sub(1);
            }
        };
        let mut findings = Vec::new();
        for (key, row) in &net.rows {
            if row.after.is_some() {
                take(key);
            }
            let accepted = accepted_by_key.remove(key).unwrap_or_default();
            findings.extend(judge.row(row, net.pruned, &accepted)?);
        }
        // Carried over from before the expected version, and still not looked at.
        if expected.unseen > 0 && live.unseen > 0 {
            for key in self.unseen_keys(&pair.stream, live.number)? {
                if !net.rows.contains_key(&key) {
                    take(&key);
                    accepted_by_key.remove(&key);
                    findings.push(judge.not_checked(&key));
                }
            }
        }
        // Accepted once, and now again as the baseline has it.
        for (key, accepted) in accepted_by_key {
            let pinned = accepted.iter().find_map(|one| one.pinned.clone());
            if pinned.is_some() {
                take(key);
            }
            let expected = expect(pinned.clone(), &accepted);
            findings.extend(judge.sides(key, expected.as_ref(), pinned.as_ref(), live.number));
        }
        for (kind, count) in rest {
            if count > 0 {
                drift.by_type.entry(kind).or_default().in_sync += count;
            }
        }
        for finding in findings {
            drift.by_type.entry(finding.key.kind.clone()).or_default().add(finding.judgement.status);
            // In sync without even an excuse is what everything else is, too.
            if finding.judgement.status != Status::InSync || !finding.judgement.excused.is_empty() {
                drift.findings.push(finding);
            }
        }
        Ok(())
    }

    /// A stream that the baseline does not speak of: nothing in it can be judged.
    fn nothing_expected(&self, stream: &StreamId, live: &Version, drift: &mut Drift) -> Result<(), StoreError> {
        for key in self.keys(stream, live.number)? {
            drift.by_type.entry(key.kind.clone()).or_default().not_checked += 1;
            drift.findings.push(Finding {
                stream: stream.clone(),
                key,
                judgement: Judgement {
                    status: Status::NotChecked,
                    kind: None,
                    changes: Vec::new(),
                    excused: Vec::new(),
                    reason: Some("the baseline has no version of this source".into()),
                },
                since: None,
            });
        }
        Ok(())
    }

    /// Every resource that a version has.
    pub fn keys(&self, stream: &StreamId, version: u64) -> Result<BTreeSet<ResourceKey>, StoreError> {
        self.keys_where(stream, version, |_| true)
    }

    /// The resources of a version that are carried over from earlier ones.
    fn unseen_keys(&self, stream: &StreamId, version: u64) -> Result<BTreeSet<ResourceKey>, StoreError> {
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
fn expect(pinned: Option<Value>, accepted: &[&Accepted]) -> Option<Value> {
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
    stream: &'a StreamId,
    book: &'a RuleBook,
    expected_coverage: &'a Coverage,
    live_coverage: &'a Coverage,
}

impl Judge<'_> {
    fn row(&self, row: &Row, pruned: bool, accepted: &[&Accepted]) -> Result<Option<Finding>, StoreError> {
        let expected_seen = row.before.is_none() || row.was_seen || !accepted.is_empty();
        let live_seen = row.after.is_none() || row.is_seen;
        if !(expected_seen && live_seen) {
            return Ok(Some(self.not_checked(&row.key)));
        }
        let mut before = value(&row.key, row.before.as_ref())?;
        let mut after = value(&row.key, row.after.as_ref())?;
        if let Some(whole) = accepted.iter().find_map(|one| one.pinned.as_ref())
            && let (Some(left), Some(right)) = (&before, &after)
        {
            // What was accepted may lie outside of what a view keeps; the acceptance has the whole image.
            if row.after.as_ref().is_some_and(|image| image.json.is_none()) {
                after = Some(whole.clone());
            } else if pruned {
                after = Some(restore_before(whole, right, left));
            }
            before = Some(whole.clone());
        }
        Ok(self.sides(&row.key, expect(before, accepted).as_ref(), after.as_ref(), row.since))
    }

    fn sides(&self, key: &ResourceKey, expected: Option<&Value>, live: Option<&Value>, since: u64) -> Option<Finding> {
        let expected = Side { value: expected, coverage: self.expected_coverage };
        let live = Side { value: live, coverage: self.live_coverage };
        let judgement = judge(key.as_ref(), self.stream.source.as_str(), &expected, &live, self.book)?;
        let since = (judgement.status != Status::NotChecked).then(|| self.taken_at(since)).flatten();
        Some(self.finding(key, judgement, since))
    }

    fn not_checked(&self, key: &ResourceKey) -> Finding {
        self.finding(key, not_checked(key.as_ref(), self.expected_coverage, self.live_coverage), None)
    }

    fn finding(&self, key: &ResourceKey, judgement: Judgement, since: Option<Timestamp>) -> Finding {
        Finding { stream: self.stream.clone(), key: key.clone(), judgement, since }
    }

    fn taken_at(&self, version: u64) -> Option<Timestamp> {
        Some(self.store.catalog.version(self.stream, version).ok()?.taken_at)
    }
}

fn value(key: &ResourceKey, image: Option<&Image>) -> Result<Option<Value>, StoreError> {
    let Some(image) = image else { return Ok(None) };
    // A row of which only the sighting changed has no text, and nothing in it to compare.
    let Some(json) = &image.json else { return Ok(Some(Value::Null)) };
    serde_json::from_str(json).map(Some).map_err(|error| StoreError::damaged(format!("the image of {key}"), error))
}
