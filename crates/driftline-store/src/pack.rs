//! Packing: the small change files of many versions become one file, and every version stays what it was.
//!
//! Observing often makes many small files. Listing, opening and planning cost by the file, here and in every engine
//! that reads the table, so versions next to each other come to share one. What a version is made of is then some
//! rows of that file; which ones the log says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use driftline_core::StreamId;
use jiff::Timestamp;

use crate::catalog::Stream;
use crate::error::StoreError;
use crate::log::{FileRef, Packed, Step};
use crate::segment::{GROUP, Row, Times, Writer, Written};
use crate::store::Store;

/// No pack is larger than this: whoever wants one version of it may have to fetch it all.
const MOST_BYTES: u64 = 4 << 20;

/// The bytes of the pack that was read last, checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastPack(Arc<Mutex<Option<(String, Bytes)>>>);

impl LastPack {
    pub(crate) fn last(&self, path: &str) -> Option<Bytes> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(known, _)| known == path).map(|(_, bytes)| bytes.clone())
    }

    pub(crate) fn keep(&self, path: &str, bytes: &Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((path.to_owned(), bytes.clone()));
    }
}

/// Versions of one stream, next to each other, whose change files become one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    stream: StreamId,
    versions: Vec<(u64, FileRef)>,
}

impl Group {
    fn files(&self) -> BTreeSet<&str> {
        self.versions.iter().map(|(_, file)| file.path.as_str()).collect()
    }
}

impl Store {
    /// How many files would become how many.
    pub(crate) fn packable(&self) -> (usize, usize) {
        let groups = self.groups();
        (groups.iter().map(|group| group.files().len()).sum(), groups.len())
    }

    /// Packs what is worth it; gives how many files became how many.
    pub(crate) fn pack(&mut self, now: Timestamp) -> Result<(usize, usize), StoreError> {
        if self.groups().is_empty() {
            return Ok((0, 0));
        }
        let mut written: Vec<(Group, Packed)> = Vec::new();
        let mut useless: Vec<FileRef> = Vec::new();
        let mut done = (0, 0);
        self.append(now, |store| {
            // Someone else's step came in between. What it left alone stands, and is not planned again: among many
            // writers a plan that takes in the newest version is never done in time.
            let (standing, fallen): (Vec<_>, Vec<_>) =
                std::mem::take(&mut written).into_iter().partition(|(group, _)| store.stands(group));
            written = standing;
            useless.extend(fallen.into_iter().map(|(_, packed)| packed.file));
            if written.is_empty() {
                for group in store.groups() {
                    let packed = store.write_pack(&group)?;
                    written.push((group, packed));
                }
            }
            let mut removed: BTreeMap<&str, &FileRef> = BTreeMap::new();
            for (_, file) in written.iter().flat_map(|(group, _)| &group.versions) {
                removed.insert(&file.path, file);
            }
            done = (removed.len(), written.len());
            let removed = removed.into_values().map(|file| FileRef { part: None, ..file.clone() }).collect();
            Ok(Step::Pack { packs: written.iter().map(|(_, packed)| packed.clone()).collect(), removed })
        })?;
        self.discard(useless.iter());
        Ok(done)
    }

    /// Whether all versions of a group are still made of the files they were made of.
    fn stands(&self, group: &Group) -> bool {
        group.versions.iter().all(|(number, file)| {
            self.catalog.version(&group.stream, *number).is_ok_and(|version| version.delta.as_ref() == Some(file))
        })
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::new();
        for (id, stream) in self.catalog.all_streams() {
            let enough = self.tuning.pack_files.max(2);
            groups.extend(group(id, stream, enough).into_iter().filter(|group| group.files().len() >= enough));
        }
        groups
    }

    fn write_pack(&self, group: &Group) -> Result<Packed, StoreError> {
        let mut rows: Vec<(u64, Row)> = Vec::new();
        let mut versions = Vec::with_capacity(group.versions.len());
        let mut times = BTreeMap::new();
        for (number, file) in &group.versions {
            let before = rows.len();
            self.read_whole(file)?.each_row(|row, _| {
                rows.push((*number, row));
                Ok(())
            })?;
            times.insert(*number, self.catalog.version(&group.stream, *number)?.taken_at);
            versions.push((*number, (rows.len() - before) as u64));
        }
        let mut writer = Writer::new(&group.stream, Times::Each(times))?;
        let written: Vec<Written<'_>> = rows.iter().filter_map(|(number, row)| Written::row(row, *number)).collect();
        if written.len() != rows.len() {
            let first = group.versions.first().map_or("", |(_, file)| file.path.as_str());
            return Err(StoreError::damaged(first, "a row of it, or of a file after it, changes nothing"));
        }
        writer.group(&written)?;
        let last = versions.last().map_or(0, |(number, _)| *number);
        let file = self.put_segment(&group.stream, last, writer.finish()?, written.len() as u64)?;
        Ok(Packed { stream: group.stream.clone(), file, versions })
    }
}

/// Neighbours that fit into one pack together. A file that several versions share goes with all of them, and only
/// with others that so many share: a pack is written again when there are enough of its like, so that nothing is
/// written more often than the logarithm of the history.
fn group(id: &StreamId, stream: &Stream, enough: usize) -> Vec<Group> {
    let changed: Vec<(u64, &FileRef)> =
        stream.versions().filter_map(|version| Some((version.number, version.delta.as_ref()?))).collect();
    let mut groups: Vec<Group> = Vec::new();
    let (mut bytes, mut rows, mut level) = (0, 0, None);
    for shared in changed.chunk_by(|(_, a), (_, b)| a.path == b.path) {
        let size = shared[0].1.size;
        let count: u64 = shared.iter().map(|(_, file)| file.rows).sum();
        // One that is too large alone stays alone.
        let fits = size <= MOST_BYTES && count <= GROUP as u64;
        let like = fits.then(|| shared.len().ilog(enough));
        if like != level || bytes + size > MOST_BYTES || rows + count > GROUP as u64 {
            groups.push(Group { stream: id.clone(), versions: Vec::new() });
            (bytes, rows, level) = (0, 0, like);
        }
        if let (true, Some(last)) = (fits, groups.last_mut()) {
            (bytes, rows) = (bytes + size, rows + count);
            last.versions.extend(shared.iter().map(|(number, file)| (*number, (*file).clone())));
        }
    }
    groups
}
