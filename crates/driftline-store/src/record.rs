//! The record of a version that changes the one before it, and the full image that starts a chain.

use std::collections::BTreeMap;

use driftline_core::{ResourceKey, StreamId};
use jiff::Timestamp;

use crate::catalog::{Stream, Version};
use crate::error::StoreError;
use crate::log::{ChangeCounts, FileRef, VersionRecord};
use crate::segment::{GROUP, Image, Op, Row, Times, Writer, Written};
use crate::store::{StateDigest, Store, Tuning};

pub(crate) fn count_changes<'a>(rows: impl Iterator<Item = &'a Row>) -> ChangeCounts {
    let mut counts = ChangeCounts::default();
    for row in rows {
        match row.op() {
            Some(Op::Add) => counts.add += 1,
            Some(Op::Change) => counts.change += 1,
            Some(Op::Remove) => counts.remove += 1,
            Some(Op::Unseen) => counts.unseen += 1,
            Some(Op::Seen) => counts.seen += 1,
            Some(Op::Base) | None => {}
        }
    }
    counts
}

/// The record of a version that changes `parent` by `rows`; writes its change file, and a full image when due.
pub(crate) fn version_record(
    store: &Store,
    blank: &VersionRecord,
    parent: &Version,
    rows: &BTreeMap<ResourceKey, Row>,
) -> Result<VersionRecord, StoreError> {
    let stream = store.catalog.stream(&blank.stream)?;
    let number = parent.number + 1;
    let old_types = stream.types(parent.number);
    let mut types = old_types.clone();
    let mut digest = StateDigest::parse(&parent.digest).ok_or_else(|| {
        StoreError::damaged(blank.stream.to_string(), "the digest of its newest version is unreadable")
    })?;
    for row in rows.values() {
        let count = types.entry(row.key.kind.clone()).or_default();
        if let Some(before) = &row.before {
            digest.remove(&row.key, before.content);
            count.rows -= 1;
            count.unseen -= u64::from(!row.was_seen);
        }
        if let Some(after) = &row.after {
            digest.add(&row.key, after.content);
            count.rows += 1;
            count.unseen += u64::from(!row.is_seen);
        }
    }
    types.retain(|_, count| count.rows > 0);
    let (known, unseen) =
        types.values().fold((0, 0), |(rows, unseen), count| (rows + count.rows, unseen + count.unseen));
    let delta = if rows.is_empty() {
        None
    } else {
        let written = rows.values().filter_map(|row| Written::row(row, number));
        Some(store.write_segment(&blank.stream, number, blank.taken_at, written, rows.len() as u64)?)
    };
    let base = match &delta {
        Some(delta) if rebase_due(&store.tuning, stream, parent.number, delta) => {
            Some(store.write_full(&blank.stream, parent.number, rows, number, blank.taken_at)?)
        }
        _ => None,
    };
    Ok(VersionRecord {
        version: number,
        rows: known,
        unseen,
        changes: count_changes(rows.values()),
        types: (types != old_types).then_some(types),
        delta,
        base,
        digest: digest.to_string(),
        mixed: unseen > 0 && (parent.mixed || parent.basis != blank.basis),
        nature: blank.nature.on_top_of(&parent.nature),
        ..blank.clone()
    })
}

fn rebase_due(tuning: &Tuning, stream: &Stream, parent: u64, delta: &FileRef) -> bool {
    let Some((_, base, changes)) = stream.chain(parent) else { return true };
    let bytes: u64 = changes.iter().filter_map(|version| version.delta.as_ref()).map(FileRef::weight).sum();
    let bytes = bytes + delta.size;
    (bytes >= base.size && bytes >= tuning.rebase_bytes) || changes.len() >= tuning.rebase_versions
}

impl Store {
    /// Calls `each` with every resource of a version, as `on_top` leaves it, in order of key.
    ///
    /// The full image is read one row group at a time; only the changes since it are held in memory.
    fn each_resource(
        &self,
        stream: &StreamId,
        version: u64,
        on_top: &BTreeMap<ResourceKey, Row>,
        mut each: impl FnMut(Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (_, base, changes) = self
            .catalog
            .stream(stream)?
            .chain(version)
            .ok_or_else(|| StoreError::damaged(stream.to_string(), "no full image starts its versions"))?;
        let mut changed: BTreeMap<ResourceKey, Option<(Image, bool)>> = BTreeMap::new();
        let mut change = |row: Row| {
            let known = changed.get(&row.key).and_then(|known| known.as_ref()?.0.json.clone());
            let after = row.after.map(|image| (Image { json: image.json.or(known), ..image }, row.is_seen));
            changed.insert(row.key, after);
        };
        for delta in changes.into_iter().filter_map(|version| version.delta.as_ref()) {
            self.read_whole(delta)?.each_row(|row, _| {
                change(row);
                Ok(())
            })?;
        }
        on_top.values().cloned().for_each(&mut change);
        let full = |key: ResourceKey, image: Image, is_seen: bool| Row {
            key,
            before: None,
            after: Some(image),
            was_seen: false,
            is_seen,
            told: None,
        };
        let mut changed = changed.into_iter().peekable();
        self.read_whole(base)?.each_row(|row, _| {
            while let Some((key, after)) = changed.next_if(|(key, _)| *key < row.key) {
                if let Some((image, is_seen)) = after {
                    each(full(key, image, is_seen))?;
                }
            }
            match changed.next_if(|(key, _)| *key == row.key) {
                Some((_, None)) => Ok(()),
                Some((key, Some((image, is_seen)))) => {
                    let old = row.after.and_then(|image| image.json);
                    each(full(key, Image { json: image.json.or(old), ..image }, is_seen))
                }
                None => each(row),
            }
        })?;
        for (key, after) in changed {
            if let Some((image, is_seen)) = after {
                each(full(key, image, is_seen))?;
            }
        }
        Ok(())
    }

    /// Writes a full image of a version as `on_top` leaves it.
    pub(crate) fn write_full(
        &self,
        stream: &StreamId,
        version: u64,
        on_top: &BTreeMap<ResourceKey, Row>,
        number: u64,
        taken_at: Timestamp,
    ) -> Result<FileRef, StoreError> {
        let mut writer = Writer::new(stream, Times::Once(taken_at))?;
        let mut group: Vec<Row> = Vec::with_capacity(GROUP);
        let mut count = 0;
        self.each_resource(stream, version, on_top, |row| {
            count += 1;
            group.push(row);
            if group.len() == GROUP {
                write_base_group(&mut writer, &group, number)?;
                group.clear();
            }
            Ok(())
        })?;
        write_base_group(&mut writer, &group, number)?;
        self.put_segment(stream, number, writer.finish()?, count)
    }
}

fn write_base_group(writer: &mut Writer, group: &[Row], number: u64) -> Result<(), StoreError> {
    let rows: Vec<Written<'_>> = group
        .iter()
        .map(|row| Written {
            op: Op::Base,
            version: number,
            kind: &row.key.kind,
            place: row.key.place.as_str(),
            id: &row.key.id,
            hash: row.after.as_ref().map(|image| image.content),
            prev_hash: None,
            seen: row.is_seen,
            prev_seen: false,
            before: None,
            after: row.after.as_ref().and_then(|image| image.json.as_deref()),
            told: None,
        })
        .collect();
    writer.group(&rows)
}
