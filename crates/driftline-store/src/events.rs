//! Streams of events: read by time, and forgotten by age.

use std::collections::BTreeMap;

use driftline_core::observation::event_time;
use driftline_core::{Nature, Properties, ResourceKey, Span, StreamId, Value};
use jiff::Timestamp;

use crate::catalog::Version;
use crate::error::StoreError;
use crate::log::{ChangeCounts, Step, VersionRecord};
use crate::record::version_record;
use crate::segment::{Image, Row};
use crate::store::Store;

const OBSERVER: &str = "driftline gc";

impl Store {
    /// The events of a stream that happened within a span, in order of key.
    pub fn events_within(&self, stream: &StreamId, span: Span) -> Result<BTreeMap<ResourceKey, Value>, StoreError> {
        let Some(head) = self.catalog.stream(stream)?.head() else { return Ok(BTreeMap::new()) };
        let within = |time: Timestamp| span.from <= time && time < span.to;
        self.resources(stream, head.number, |key| event_time(&key.id).is_some_and(within))
    }

    /// How many events of each stream happened before a time.
    pub(crate) fn forgettable(&self, before: Timestamp) -> Result<BTreeMap<StreamId, u64>, StoreError> {
        let mut counts = BTreeMap::new();
        for (id, stream) in self.catalog.event_streams() {
            let Some(head) = stream.head() else { continue };
            let keys = self.keys(id, head.number)?;
            let old = keys.iter().filter(|key| is_before(key, before)).count() as u64;
            if old > 0 {
                counts.insert(id.clone(), old);
            }
        }
        Ok(counts)
    }

    /// Makes a version of every stream of events that has none from before a time, and returns how many there were.
    pub(crate) fn forget(&mut self, before: Timestamp, now: Timestamp) -> Result<BTreeMap<StreamId, u64>, StoreError> {
        let forgettable = self.forgettable(before)?;
        for stream in forgettable.keys() {
            let mut made: Option<VersionRecord> = None;
            let outcome = self.append(now, |store| {
                if let Some(record) = made.take() {
                    store.discard(record.delta.iter().chain(&record.base));
                }
                let record = store.without(stream, before)?;
                made = Some(record.clone());
                Ok(Step::Version(Box::new(record)))
            });
            if let (Err(_), Some(record)) = (&outcome, &made) {
                self.take_back(record.delta.iter().chain(&record.base));
            }
            outcome?;
        }
        Ok(forgettable)
    }

    /// The record of a version that is the newest one without what happened before a time.
    fn without(&self, stream: &StreamId, before: Timestamp) -> Result<VersionRecord, StoreError> {
        let head = self.catalog.stream(stream)?.head().cloned();
        let head = head.ok_or_else(|| StoreError::NoSuchStream(stream.clone()))?;
        let old = self.resources(stream, head.number, |key| is_before(key, before))?;
        let rows: BTreeMap<ResourceKey, Row> =
            old.into_iter().map(|(key, value)| (key.clone(), gone(key, &value))).collect();
        let mut record = version_record(self, &blank(stream, &head), &head, &rows)?;
        let spans = head.nature.spans().unwrap_or_default().iter();
        record.nature = Nature::Events(Span::union(spans.map(|span| Span { from: span.from.max(before), ..*span })));
        Ok(record)
    }
}

fn is_before(key: &ResourceKey, before: Timestamp) -> bool {
    event_time(&key.id).is_some_and(|time| time < before)
}

fn gone(key: ResourceKey, value: &Value) -> Row {
    let properties = Properties::new(value);
    let image = Image { content: properties.id(), json: Some(properties.as_ref().to_json().into()) };
    Row { key, before: Some(image), after: None, was_seen: true, is_seen: false, told: None }
}

/// What a record of ours has in common with the version before it.
fn blank(stream: &StreamId, head: &Version) -> VersionRecord {
    VersionRecord {
        stream: stream.clone(),
        version: 0,
        taken_at: head.taken_at,
        observer: Some(OBSERVER.to_owned()),
        coverage: head.coverage.clone(),
        complete_extents: head.complete_extents,
        partial_extents: head.partial_extents,
        rows: 0,
        unseen: 0,
        changes: ChangeCounts::default(),
        types: None,
        problems: Vec::new(),
        delta: None,
        base: None,
        digest: String::new(),
        basis: head.basis.clone(),
        mixed: false,
        seal_key: None,
        nature: head.nature.clone(),
    }
}
