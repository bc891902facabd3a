//! The index of a stream's newest versions: derived, so that a commit need not read what it compares with.
//!
//! It may be of an earlier version of the same chain: what changed since is in small files. In a bucket it lags on
//! purpose, because it weighs far more than most commits; the copy on this machine does not.

use std::collections::BTreeMap;

use driftline_core::StreamId;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::StoreError;
use crate::log::FileRef;
use crate::slots::Slots;
use crate::state::{ChainFile, chain_files, half};
use crate::store::{Store, VIEWS};

/// A bucket's index is replaced when this part of it has changed.
const LAG: u64 = 16;

/// An index that is of the first files of a chain.
struct Candidate {
    path: String,
    size: u64,
    /// How many files of the chain it is of.
    covered: usize,
    /// On this machine, though the store is in a bucket.
    local: bool,
}

impl Store {
    fn index_folder(stream: &StreamId) -> String {
        format!("{VIEWS}/index/{stream}")
    }

    /// The index that is of most files of a chain, and of how many.
    pub(crate) fn read_index(
        &self,
        stream: &StreamId,
        chain: &[ChainFile],
        reader: &str,
    ) -> Result<Option<(Slots, usize)>, StoreError> {
        let folder = Self::index_folder(stream);
        let known = identities(chain.iter().map(|chained| &chained.file), reader);
        let covered = |path: &str| identity_in(path).and_then(|identity| known.get(identity)).copied();
        let mut candidates: Vec<Candidate> = Vec::new();
        for (path, size) in self.location.copies(&folder) {
            candidates.extend(covered(&path).map(|covered| Candidate { path, size, covered, local: true }));
        }
        // The newest one at hand is as good as any: the bucket need not be asked.
        if candidates.iter().all(|candidate| candidate.covered < chain.len()) {
            for listed in self.location.list(&folder)? {
                let (path, size) = (listed.path, listed.size);
                candidates.extend(covered(&path).map(|covered| Candidate { path, size, covered, local: false }));
            }
        }
        candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.covered), !candidate.local));
        for Candidate { path, size, covered, local } in candidates {
            let mut bytes = Slots::room(size);
            let read = match local {
                true => self.location.read_copy(&path, &mut bytes),
                false => self.location.read_into(&path, &mut bytes)?,
            };
            // Derived: one that is damaged is made again.
            if read
                && is_index_named_after(&path, &bytes)
                && let Some(slots) = Slots::from_bytes(bytes)
            {
                return Ok(Some((slots, covered)));
            }
        }
        Ok(None)
    }

    /// Keeps the index of the newest version of a stream. Best effort: without it a commit takes longer.
    pub(crate) fn write_index(&self, stream: &StreamId, version: u64, reader: &str, slots: Slots) {
        let Ok(found) = self.catalog.stream(stream) else { return };
        let Ok(chain) = chain_files(found, stream, version) else { return };
        let known = identities(chain.iter().map(|chained| &chained.file), reader);
        let Some((identity, _)) = known.iter().find(|(_, covered)| **covered == chain.len()) else { return };
        let (folder, count) = (Self::index_folder(stream), slots.len() as u64);
        let bytes = slots.into_bytes();
        let path = format!("{folder}/{identity}-{:032x}.bin", xxh3_128(&bytes));
        let Ok(older) = self.location.list(&folder) else { return };
        let older: Vec<String> = older.into_iter().map(|old| old.path).collect();
        if self.location.is_far() {
            for (old, _) in self.location.copies(&folder).iter().filter(|(old, _)| *old != path) {
                self.location.forget_copy(old);
            }
            self.location.keep_copy(&path, &bytes);
            let covered = older.iter().filter_map(|old| known.get(identity_in(old)?)).max();
            let since = covered.map(|&covered| chain[covered..].iter().map(|chained| chained.file.rows).sum::<u64>());
            if since.is_some_and(|since| since.saturating_mul(LAG) < count) {
                return;
            }
        }
        if older.contains(&path) || self.location.put_derived(&path, bytes).is_ok() {
            for old in older.iter().filter(|old| **old != path) {
                let _ = self.location.delete(old);
            }
        }
    }
}

/// The names of the indexes of a chain's first file, of its first two, and so on, each with how many that is: which
/// files they are of, and who read the lines, since another reader may seal other properties.
fn identities<'a>(files: impl Iterator<Item = &'a FileRef>, reader: &str) -> BTreeMap<String, usize> {
    let mut hasher = Sha256::new_with_prefix(b"driftline/index/v1\0").chain_update(reader);
    let mut names = BTreeMap::new();
    for (file, count) in files.zip(1..) {
        hasher.update([0]);
        hasher.update(&file.path);
        if let Some(part) = file.part {
            hasher.update([0]);
            hasher.update(part.first.to_be_bytes());
        }
        names.insert(format!("{:032x}", half(&hasher.clone().finalize())), count);
    }
    names
}

fn identity_in(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.split_once('-').map(|(identity, _)| identity)
}

/// Whether an index's bytes are those its name promises.
pub(crate) fn is_index_named_after(path: &str, bytes: &[u8]) -> bool {
    let digest = path.rsplit('-').next().and_then(|end| end.strip_suffix(".bin"));
    digest.is_some_and(|digest| digest == format!("{:032x}", xxh3_128(bytes)))
}
