//! Copies of what never changes, so that a bucket is asked for it once.
//!
//! Data files have a random part or a digest in their names, so a name means one content for ever. The log does not:
//! a bucket may be emptied and begun anew, and its records are always asked for.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use jiff::Timestamp;
use xxhash_rust::xxh3::xxh3_128;

use crate::store::{COVERAGE, SEGMENTS, VIEWS};

/// Files above this are read in parts, and not kept.
const LARGEST: u64 = 32 << 20;
/// How much may be kept on disk; the files that were longest unused go first.
const MOST_KEPT: u64 = 1 << 30;
/// How many files stay in memory: one is read in many small parts.
const AT_HAND: usize = 4;
/// Each copy ends in a digest of itself: a machine may have crashed while it was written.
const DIGEST: usize = 16;

#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    at_hand: Mutex<Vec<(String, Bytes)>>,
}

impl Cache {
    pub(crate) fn new(folder: &Path) -> Self {
        trim(folder, MOST_KEPT);
        Self { folder: folder.to_owned(), at_hand: Mutex::default() }
    }

    /// Whether a file of this name and size is kept whole.
    pub(crate) fn takes(path: &str, size: u64) -> bool {
        size <= LARGEST && never_changes(path)
    }

    pub(crate) fn get(&self, path: &str) -> Option<Bytes> {
        if !never_changes(path) {
            return None;
        }
        if let Some((_, bytes)) = self.hand().iter().find(|(name, _)| name == path) {
            return Some(bytes.clone());
        }
        let mut kept = fs::read(self.folder.join(path)).ok()?;
        let end = kept.len().checked_sub(DIGEST)?;
        if kept[end..] != xxh3_128(&kept[..end]).to_be_bytes() {
            self.forget(path);
            return None;
        }
        kept.truncate(end);
        let bytes = Bytes::from(kept);
        // Touched, so that what is in use is not what is thrown away.
        if let Ok(file) = fs::File::options().append(true).open(self.folder.join(path)) {
            let _ = file.set_modified(now().into());
        }
        self.hold(path, &bytes);
        Some(bytes)
    }

    /// Keeps a copy. A disk that is full or may not be written to only means that the bucket is asked again.
    #[expect(clippy::disallowed_methods, reason = "a copy may replace a copy: both are the same")]
    pub(crate) fn keep(&self, path: &str, bytes: &Bytes) {
        if !Self::takes(path, bytes.len() as u64) {
            return;
        }
        self.hold(path, bytes);
        let file = self.folder.join(path);
        let Some(parent) = file.parent() else { return };
        let beside = parent.join(format!(".{:016x}", crate::store::random()));
        let mut copy = bytes.to_vec();
        copy.extend(xxh3_128(bytes).to_be_bytes());
        let written = fs::create_dir_all(parent)
            .and_then(|()| fs::write(&beside, copy))
            .and_then(|()| fs::rename(&beside, &file));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
    }

    pub(crate) fn forget(&self, path: &str) {
        self.hand().retain(|(name, _)| name != path);
        if never_changes(path) {
            let _ = fs::remove_file(self.folder.join(path));
        }
    }

    fn hold(&self, path: &str, bytes: &Bytes) {
        let mut hand = self.hand();
        hand.retain(|(name, _)| name != path);
        hand.insert(0, (path.to_owned(), bytes.clone()));
        hand.truncate(AT_HAND);
    }

    fn hand(&self) -> std::sync::MutexGuard<'_, Vec<(String, Bytes)>> {
        self.at_hand.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[expect(clippy::disallowed_methods, reason = "only says which copy was used last; no answer depends on it")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn never_changes(path: &str) -> bool {
    [SEGMENTS, COVERAGE, VIEWS].iter().any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
}

/// Deletes copies until no more than so many bytes are kept.
fn trim(folder: &Path, most: u64) {
    let mut files: Vec<(Timestamp, u64, PathBuf)> = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(data) if data.is_dir() => folders.push(entry.path()),
                Ok(data) => {
                    let used = data.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
                    files.push((used.unwrap_or(Timestamp::MIN), data.len(), entry.path()));
                }
                Err(_) => {}
            }
        }
    }
    let mut kept: u64 = files.iter().map(|(_, size, _)| size).sum();
    files.sort();
    for (_, size, path) in files {
        if kept <= most {
            return;
        }
        if fs::remove_file(path).is_ok() {
            kept -= size;
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
mod tests {
    use super::*;

    const FILE: &str = "seg/inventory/0000000001-aa.parquet";

    fn fresh() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        (folder, cache)
    }

    #[test]
    fn what_was_kept_is_there_for_the_next_process() {
        let (folder, cache) = fresh();
        cache.keep(FILE, &Bytes::from_static(b"rows"));
        assert_eq!(Cache::new(folder.path()).get(FILE).unwrap(), "rows");
    }

    #[test]
    fn a_copy_that_was_cut_or_changed_is_not_used() {
        let (folder, cache) = fresh();
        for damage in [&b"ro"[..], b"", b"rows and more than a digest of them"] {
            cache.keep(FILE, &Bytes::from_static(b"rows"));
            fs::write(folder.path().join(FILE), damage).unwrap();
            assert_eq!(Cache::new(folder.path()).get(FILE), None, "{damage:?}");
        }
    }

    #[test]
    fn records_of_the_log_are_never_kept() {
        let (_folder, cache) = fresh();
        for path in ["_delta_log/00000000000000000000.json", "probe/1", "segments/x", "seg"] {
            cache.keep(path, &Bytes::from_static(b"1"));
            assert_eq!(cache.get(path), None, "{path}");
        }
    }

    #[test]
    fn what_was_longest_unused_goes_first() {
        let (folder, cache) = fresh();
        let paths = ["seg/a", "seg/b", "seg/c"];
        for (age, path) in (1..).zip(paths) {
            cache.keep(path, &Bytes::from(vec![0; 100]));
            let file = fs::File::options().append(true).open(folder.path().join(path)).unwrap();
            file.set_modified(Timestamp::from_second(age).unwrap().into()).unwrap();
        }
        trim(folder.path(), 250);
        let left: Vec<bool> = paths.iter().map(|path| folder.path().join(path).exists()).collect();
        assert_eq!(left, [false, true, true]);
    }

    #[test]
    fn without_a_place_to_write_nothing_is_kept_and_nothing_fails() {
        let cache = Cache::new(Path::new("/dev/null/nowhere"));
        cache.keep(FILE, &Bytes::from_static(b"rows"));
        assert_eq!(cache.get(FILE).unwrap(), "rows", "it is still at hand");
        cache.forget(FILE);
        assert_eq!(cache.get(FILE), None);
    }
}
