//! The life of one resource, as the change files tell it.

use std::collections::BTreeMap;

use driftline_core::compare::{Change, Comparison, Excused, compare};
use driftline_core::pointer::Pointer;
use driftline_core::rule::RuleBook;
use driftline_core::{ContentId, ResourceKey, StreamId, Value};
use jiff::Timestamp;

use crate::catalog::Version;
use crate::error::StoreError;
use crate::log::FileRef;
use crate::segment::{Image, Op, Row};
use crate::store::Store;

/// Something that happened to a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub stream: StreamId,
    pub key: ResourceKey,
    pub version: u64,
    pub at: Timestamp,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    FirstSeen,
    Changed(Comparison),
    Deleted,
    Reappeared(Comparison),
    /// Not looked at in this version.
    Unseen,
    /// Looked at again, unchanged.
    SeenAgain,
}

/// A change of one resource in one version, for counting.
#[derive(Clone, Debug)]
pub struct Happened {
    pub key: ResourceKey,
    pub version: u64,
    pub at: Timestamp,
    pub op: Op,
    pub comparison: Comparison,
    /// What it was and what it is, where it was or is there.
    pub before: Option<ContentId>,
    pub after: Option<ContentId>,
}

/// One step of a stream's life.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A resource is new or changed in a version; its properties, as JSON that was not read yet.
    Is(&'a Version, &'a ResourceKey, &'a str),
    Gone(&'a ResourceKey),
    /// That was all that changed in this version.
    Version(&'a Version),
}

impl Store {
    /// Every event in the life of the resources with this id, oldest first.
    pub fn history(&self, id: &str, book: &RuleBook) -> Result<Vec<Event>, StoreError> {
        let mut events = Vec::new();
        for (stream, versions) in self.catalog.streams() {
            let mut last_known: BTreeMap<ResourceKey, Value> = BTreeMap::new();
            let mut first = true;
            for version in versions.versions() {
                // Of full images only the first tells something new.
                let file = if first { version.base.as_ref() } else { version.delta.as_ref() };
                let is_base = first;
                first = false;
                let Some(file) = file else { continue };
                for row in self.rows_of(file, id)? {
                    let applicable = book.applicable(row.key.as_ref(), stream.source.as_str());
                    let op = if is_base { Some(Op::Add) } else { row.op() };
                    let value = |image: &Option<Image>| parse(image.as_ref());
                    let what = match op {
                        Some(Op::Add) => {
                            let now = value(&row.after).unwrap_or_default();
                            let what = match last_known.get(&row.key) {
                                Some(before) => What::Reappeared(compare(before, &now, &applicable)),
                                None => What::FirstSeen,
                            };
                            last_known.insert(row.key.clone(), now);
                            what
                        }
                        Some(Op::Change) => {
                            let (before, now) =
                                (value(&row.before).unwrap_or_default(), value(&row.after).unwrap_or_default());
                            let what = What::Changed(compare(&before, &now, &applicable));
                            last_known.insert(row.key.clone(), now);
                            what
                        }
                        Some(Op::Remove) => What::Deleted,
                        Some(Op::Unseen) => What::Unseen,
                        Some(Op::Seen) => What::SeenAgain,
                        Some(Op::Base) | None => continue,
                    };
                    let event = |what| Event {
                        stream: stream.clone(),
                        key: row.key.clone(),
                        version: version.number,
                        at: version.taken_at,
                        what,
                    };
                    events.push(event(what));
                    // Where history begins now that older versions are dropped, nobody may have looked.
                    if is_base && !row.is_seen {
                        events.push(event(What::Unseen));
                    }
                }
            }
        }
        events.sort_by(|a, b| (a.at, &a.stream, a.version).cmp(&(b.at, &b.stream, b.version)));
        Ok(events)
    }

    fn rows_of(&self, file: &FileRef, id: &str) -> Result<Vec<Row>, StoreError> {
        let segment = self.read_parts(file)?;
        let rows = segment.find_id(id)?;
        Ok(segment.rows_at(&rows)?.into_iter().map(|(row, _)| row).collect())
    }

    /// What changed in versions taken after `since` and no later than `until`, and counts or is excused.
    pub fn happened(
        &self,
        stream: &StreamId,
        since: Timestamp,
        until: Timestamp,
        book: &RuleBook,
    ) -> Result<Vec<Happened>, StoreError> {
        let mut happened = Vec::new();
        let mut versions = self.catalog.stream(stream)?.versions();
        // What the first version holds did not happen; it was there.
        versions.next();
        for version in versions.filter(|version| version.taken_at > since && version.taken_at <= until) {
            let Some(delta) = &version.delta else { continue };
            for row in self.read_whole(delta)?.rows()? {
                let Some(op @ (Op::Add | Op::Change | Op::Remove)) = row.op() else { continue };
                let rules = || book.applicable(row.key.as_ref(), stream.source.as_str());
                let before = || parse(row.before.as_ref()).unwrap_or_default();
                let comparison = match op {
                    Op::Change => compare(&before(), &parse(row.after.as_ref()).unwrap_or_default(), &rules()),
                    // A finding that is gone was seen to.
                    Op::Remove => {
                        let change = || Change { path: Pointer::root(), expected: None, actual: None };
                        let excused = rules().resolving(&before()).map(|rule| Excused { change: change(), rule });
                        Comparison { excused: excused.into_iter().collect(), ..Comparison::default() }
                    }
                    _ => Comparison::default(),
                };
                let content = |image: &Option<Image>| image.as_ref().map(|image| image.content);
                happened.push(Happened {
                    version: version.number,
                    at: version.taken_at,
                    op,
                    comparison,
                    before: content(&row.before),
                    after: content(&row.after),
                    key: row.key,
                });
            }
        }
        Ok(happened)
    }

    /// The resources of a version whose key is wanted, each with its whole properties.
    pub fn resources(
        &self,
        stream: &StreamId,
        version: u64,
        wanted: impl Fn(&ResourceKey) -> bool,
    ) -> Result<BTreeMap<ResourceKey, Value>, StoreError> {
        let mut found = BTreeMap::new();
        let Some((_, base, changes)) = self.catalog.stream(stream)?.chain(version) else { return Ok(found) };
        let files = changes.into_iter().filter_map(|version| version.delta.as_ref());
        for file in std::iter::once(base).chain(files) {
            self.read_whole(file)?.each_row(|row, _| {
                if !wanted(&row.key) {
                    return Ok(());
                }
                match &row.after {
                    None => {
                        found.remove(&row.key);
                    }
                    // A row that was only looked at again, or no longer, has no image of its own.
                    Some(Image { json: None, .. }) => {}
                    Some(image) => {
                        let value = parse(Some(image)).ok_or_else(|| {
                            StoreError::damaged(file.path.as_str(), format!("the image of {} is not JSON", row.key))
                        })?;
                        found.insert(row.key, value);
                    }
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// Goes through the versions of a stream, oldest first, up to and including one: each resource that is other
    /// than before, and then the version. All resources of the first version are other than before.
    pub fn replay(&self, stream: &StreamId, until: u64, mut each: impl FnMut(Step<'_>)) -> Result<(), StoreError> {
        let versions = self.catalog.stream(stream)?.versions().filter(|version| version.number <= until);
        for (at, version) in versions.enumerate() {
            let file = if at == 0 { version.base.as_ref() } else { version.delta.as_ref() };
            if let Some(file) = file {
                self.read_whole(file)?.each_row(|row, _| {
                    match &row.after {
                        None => each(Step::Gone(&row.key)),
                        // Only looked at again, or no longer.
                        Some(Image { json: None, .. }) => {}
                        Some(Image { json: Some(json), .. }) => each(Step::Is(version, &row.key, json)),
                    }
                    Ok(())
                })?;
            }
            each(Step::Version(version));
        }
        Ok(())
    }

    /// The resources of a version with one of these ids, each with its whole properties.
    pub fn lookup(&self, stream: &StreamId, version: u64, id: &str) -> Result<Vec<(ResourceKey, Value)>, StoreError> {
        let Some((_, base, changes)) = self.catalog.stream(stream)?.chain(version) else { return Ok(Vec::new()) };
        let mut found: BTreeMap<ResourceKey, Value> = BTreeMap::new();
        let files = changes.into_iter().filter_map(|version| version.delta.as_ref());
        for file in std::iter::once(base).chain(files) {
            for row in self.rows_of(file, id)? {
                match (&row.after, parse(row.after.as_ref())) {
                    (None, _) => {
                        found.remove(&row.key);
                    }
                    (Some(_), Some(value)) => {
                        found.insert(row.key, value);
                    }
                    (Some(_), None) => {}
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Ids that contain `part`, at most `most` of them, for "did you mean".
    pub fn ids_containing(&self, part: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let mut ids = std::collections::BTreeSet::new();
        for (_, stream) in self.catalog.streams() {
            let Some(head) = stream.head() else { continue };
            let Some((_, base, changes)) = stream.chain(head.number) else { continue };
            let files = changes.into_iter().filter_map(|version| version.delta.as_ref());
            for file in std::iter::once(base).chain(files) {
                self.read_parts(file)?.keys(|_, key, _, _| {
                    if ids.len() < most
                        && let Ok(id) = std::str::from_utf8(key.id.data())
                        && id.contains(part)
                    {
                        ids.insert(id.to_owned());
                    }
                    Ok(())
                })?;
            }
        }
        Ok(ids.into_iter().collect())
    }
}

fn parse(image: Option<&Image>) -> Option<Value> {
    serde_json::from_str(image?.json.as_deref()?).ok()
}
