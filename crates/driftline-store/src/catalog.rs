//! What the log adds up to: the streams with their versions, and the baselines.

use std::collections::BTreeMap;

use driftline_core::{BaselineName, Nature, Problem, StreamId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::baseline::Baseline;
use crate::error::{EVENT_FORMAT, PACK_FORMAT, PLAIN_FORMAT, StoreError};
use crate::log::{ChangeCounts, FileRef, Record, Step, TypeCount, VersionRecord};

/// Everything that is known without opening a data file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalog {
    /// The number the next record will have.
    pub(crate) next: u64,
    /// The check of the last record.
    pub(crate) last_check: String,
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    pub(crate) baselines: BTreeMap<BaselineName, Baseline>,
    pub(crate) seal_key: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    versions: BTreeMap<u64, Version>,
}

/// One version of a stream, as the log tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub number: u64,
    pub taken_at: Timestamp,
    pub committed_at: Timestamp,
    pub observer: Option<String>,
    pub coverage: String,
    pub complete_extents: usize,
    pub partial_extents: usize,
    pub rows: u64,
    pub unseen: u64,
    pub changes: ChangeCounts,
    types: Option<BTreeMap<String, TypeCount>>,
    pub problems: Vec<Problem>,
    pub delta: Option<FileRef>,
    pub base: Option<FileRef>,
    pub digest: String,
    #[serde(default)]
    pub basis: Option<String>,
    #[serde(default)]
    pub(crate) mixed: bool,
    #[serde(default, skip_serializing_if = "Nature::is_state")]
    pub nature: Nature,
}

impl Catalog {
    /// The streams that tell the state of things. Every question about drift is about these; events are asked for by
    /// their own name, so that nobody takes them for state by forgetting to ask.
    pub fn streams(&self) -> impl Iterator<Item = (&StreamId, &Stream)> {
        self.streams.iter().filter(|(_, stream)| !stream.is_events())
    }

    /// The streams that tell what happened.
    pub fn event_streams(&self) -> impl Iterator<Item = (&StreamId, &Stream)> {
        self.streams.iter().filter(|(_, stream)| stream.is_events())
    }

    /// Both, for what is about the store and not about the world.
    pub fn all_streams(&self) -> impl Iterator<Item = (&StreamId, &Stream)> {
        self.streams.iter()
    }

    /// Why a name stands for no stream that tells the state of things.
    pub fn no_state(&self, named: &StreamId) -> StoreError {
        let is_named = |id: &StreamId| id == named || (named.scope.is_none() && named.source == id.source);
        match self.event_streams().any(|(id, _)| is_named(id)) {
            true => StoreError::Events(named.clone()),
            false => StoreError::NoSuchStream(named.clone()),
        }
    }

    /// The least format that a program must know to understand what is in here.
    pub(crate) fn format(&self) -> u32 {
        match () {
            () if self.files().any(|file| file.part.is_some()) => PACK_FORMAT,
            () if self.event_streams().next().is_some() => EVENT_FORMAT,
            () => PLAIN_FORMAT,
        }
    }

    pub fn stream(&self, id: &StreamId) -> Result<&Stream, StoreError> {
        self.streams.get(id).ok_or_else(|| StoreError::NoSuchStream(id.clone()))
    }

    pub fn version(&self, id: &StreamId, number: u64) -> Result<&Version, StoreError> {
        self.stream(id)?.get(number).ok_or_else(|| StoreError::NoSuchVersion { stream: id.clone(), version: number })
    }

    pub fn baselines(&self) -> impl Iterator<Item = (&BaselineName, &Baseline)> {
        self.baselines.iter()
    }

    pub fn baseline(&self, name: &BaselineName) -> Result<&Baseline, StoreError> {
        self.baselines.get(name).ok_or_else(|| StoreError::NoSuchBaseline(name.clone()))
    }

    /// The fingerprint of the key that sealed what is in the store.
    pub fn seal_key(&self) -> Option<&str> {
        self.seal_key.as_deref()
    }

    /// The check of the last record: names everything that the log says up to it.
    pub fn tip(&self) -> &str {
        &self.last_check
    }

    /// How many records the log has.
    pub fn records(&self) -> u64 {
        self.next
    }

    pub(crate) fn apply(&mut self, record: Record) -> Result<(), StoreError> {
        let damaged = |reason: &str| StoreError::damaged(crate::log::record_path(record.number), reason);
        if record.number != self.next {
            return Err(damaged("a record before it is missing"));
        }
        if record.previous != self.last_check {
            return Err(damaged("it does not follow the record before it: one of the two was replaced"));
        }
        match record.step {
            Step::Version(version) => self.add_version(*version, record.at),
            Step::BaselineSet { name, pins, by } => {
                let old = self.baselines.remove(&name);
                let (mut all, mut accepted) = old.map(|old| (old.pins, old.accepted)).unwrap_or_default();
                // What was accepted on top of a pin is part of the new pin, or was refused by setting it.
                accepted.retain(|one| !pins.contains_key(&one.stream));
                all.extend(pins);
                self.baselines.insert(name, Baseline { set_at: record.at, set_by: by, pins: all, accepted });
            }
            Step::BaselineAccept { name, accepted } => {
                let Some(baseline) = self.baselines.get_mut(&name) else {
                    return Err(damaged("it accepts into a baseline that is not there"));
                };
                for new in accepted {
                    baseline.accepted.retain(|old| !new.replaces(old));
                    baseline.accepted.push(new);
                }
            }
            Step::BaselineRemove { name, .. } => {
                self.baselines.remove(&name);
            }
            Step::Thin { streams, .. } => {
                for (id, thinned) in streams {
                    let Some(stream) = self.streams.get_mut(&id) else {
                        return Err(damaged("it thins a source that is not there"));
                    };
                    stream.thin(thinned);
                }
            }
            Step::Pack { packs, .. } => {
                for packed in packs {
                    let Some(stream) = self.streams.get_mut(&packed.stream) else {
                        return Err(damaged("it packs a source that is not there"));
                    };
                    for (number, part) in packed.parts() {
                        let Some(version) = stream.versions.get_mut(&number) else {
                            return Err(damaged("it packs a version that is not there"));
                        };
                        version.delta = Some(part);
                    }
                }
            }
        }
        self.next += 1;
        self.last_check = record.check;
        Ok(())
    }

    fn add_version(&mut self, record: VersionRecord, at: Timestamp) {
        if let Some(key) = record.seal_key {
            self.seal_key.get_or_insert(key);
        }
        let version = Version {
            number: record.version,
            taken_at: record.taken_at,
            committed_at: at,
            observer: record.observer,
            coverage: record.coverage,
            complete_extents: record.complete_extents,
            partial_extents: record.partial_extents,
            rows: record.rows,
            unseen: record.unseen,
            changes: record.changes,
            types: record.types,
            problems: record.problems,
            delta: record.delta,
            base: record.base,
            digest: record.digest,
            basis: record.basis,
            mixed: record.mixed,
            nature: record.nature,
        };
        self.streams.entry(record.stream).or_default().versions.insert(version.number, version);
    }

    /// Every file that some version still needs; one that several share comes as often as that.
    pub fn files(&self) -> impl Iterator<Item = &FileRef> {
        self.streams.values().flat_map(|stream| {
            stream.versions.values().flat_map(|version| version.delta.iter().chain(version.base.iter()))
        })
    }
}

impl Stream {
    /// Whether it tells what happened, and not how things are.
    pub fn is_events(&self) -> bool {
        self.head().is_some_and(|head| !head.nature.is_state())
    }

    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &Version> {
        self.versions.values()
    }

    pub fn get(&self, number: u64) -> Option<&Version> {
        self.versions.get(&number)
    }

    pub fn head(&self) -> Option<&Version> {
        self.versions.values().next_back()
    }

    /// The version that was current at a time: the last one taken no later.
    pub fn at(&self, time: Timestamp) -> Option<&Version> {
        self.versions.values().rev().find(|version| version.taken_at <= time)
    }

    /// How many resources of each type a version has.
    pub fn types(&self, number: u64) -> BTreeMap<String, TypeCount> {
        let known = self.versions.range(..=number).rev().find_map(|(_, version)| version.types.clone());
        known.unwrap_or_default()
    }

    /// The version whose full image starts the chain that a version is part of.
    pub fn image_of(&self, number: u64) -> Option<u64> {
        self.chain(number).map(|(start, _, _)| start.number)
    }

    /// The last full image at or before a version, and the changes from it up to that version.
    pub fn chain(&self, number: u64) -> Option<(&Version, &FileRef, Vec<&Version>)> {
        let (start, base) = self
            .versions
            .range(..=number)
            .rev()
            .find_map(|(_, version)| version.base.as_ref().map(|base| (version, base)))?;
        Some((start, base, self.between(start.number, number).collect()))
    }

    /// Versions after `from`, up to and including `to`.
    pub fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &Version> {
        let range = (std::ops::Bound::Excluded(from), std::ops::Bound::Included(to.max(from)));
        self.versions.range(range).map(|(_, version)| version)
    }

    fn thin(&mut self, thinned: crate::log::Thinned) {
        // Counts by type are only written where they change; a version that is kept must not lose them.
        let firsts: BTreeMap<u64, _> = self.versions.keys().map(|number| (*number, self.types(*number))).collect();
        for number in thinned.dropped {
            self.versions.remove(&number);
        }
        for new in thinned.rewritten {
            if let Some(version) = self.versions.get_mut(&new.version) {
                version.delta = new.delta;
                version.base = new.base.or(version.base.take());
                version.changes = new.changes;
                version.types = firsts.get(&new.version).cloned();
            }
        }
    }
}
