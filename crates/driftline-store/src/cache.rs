//! Copies of what never changes, so that a bucket is asked for it once.
//!
//! Data files have a random part or a digest in their names, so a name means one content for ever. The log does not:
//! a bucket may be emptied and begun anew, and its records are always asked for.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::log::is_plain;
use crate::store::{COVERAGE, SEGMENTS, VIEWS};

/// Files above this are read in parts: who wants a page of one does not wait for all of it.
const LARGEST: u64 = 32 << 20;
/// Files above this are not kept, though they passed by as a whole.
const LARGEST_KEPT: u64 = 256 << 20;
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
    /// About how many bytes are kept.
    kept: AtomicU64,
    /// Large copies that this process has found whole; their parts are read as they are asked for.
    whole: Mutex<HashSet<String>>,
}

impl Cache {
    pub(crate) fn new(folder: &Path) -> Self {
        let kept = AtomicU64::new(trim(folder, MOST_KEPT));
        Self { folder: folder.to_owned(), at_hand: Mutex::default(), kept, whole: Mutex::default() }
    }

    /// Whether a file of this name and size is got whole when a part of it is wanted.
    pub(crate) fn takes(path: &str, size: u64) -> bool {
        size <= LARGEST && never_changes(path)
    }

    pub(crate) fn get(&self, path: &str) -> Option<Bytes> {
        if let Some((_, bytes)) = self.hand().iter().find(|(name, _)| name == path) {
            return Some(bytes.clone());
        }
        let mut kept = Vec::new();
        if !self.read_into(path, &mut kept) {
            return None;
        }
        let bytes = Bytes::from(kept);
        self.hold(path, &bytes);
        Some(bytes)
    }

    /// Reads a copy to the end of some bytes, if there is one.
    pub(crate) fn read_into(&self, path: &str, bytes: &mut Vec<u8>) -> bool {
        if !never_changes(path) {
            return false;
        }
        let start = bytes.len();
        let read = fs::File::open(self.folder.join(path)).and_then(|mut file| file.read_to_end(bytes));
        if read.is_err() {
            bytes.truncate(start);
            return false;
        }
        let whole = match bytes.len().checked_sub(DIGEST).filter(|&end| end >= start) {
            Some(end) if bytes[end..] == digest(&bytes[start..end]) => Some(end),
            _ => None,
        };
        bytes.truncate(whole.unwrap_or(start));
        match whole {
            Some(_) => self.touch(path),
            None => self.forget(path),
        }
        whole.is_some()
    }

    /// A part of a copy that is too large to be held whole, if there is one.
    pub(crate) fn part(&self, path: &str, range: &Range<u64>) -> Option<Bytes> {
        if !never_changes(path) {
            return None;
        }
        let file = fs::File::open(self.folder.join(path)).ok()?;
        if !self.whole().contains(path) {
            if !is_whole(&file) {
                self.forget(path);
                return None;
            }
            self.touch(path);
            self.whole().insert(path.to_owned());
        }
        let end = file.metadata().ok()?.len().checked_sub(DIGEST as u64)?;
        let mut part = vec![0; usize::try_from(range.end.min(end).checked_sub(range.start)?).ok()?];
        file.read_exact_at(&mut part, range.start).ok()?;
        Some(part.into())
    }

    /// The copies in a folder, with their sizes.
    pub(crate) fn copies(&self, folder: &str) -> Vec<(String, u64)> {
        let entries = fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'))?;
            Some((format!("{folder}/{name}"), entry.metadata().ok()?.len()))
        });
        named.collect()
    }

    /// Keeps a copy. A disk that is full or may not be written to only means that the bucket is asked again.
    #[expect(clippy::disallowed_methods, reason = "a copy may replace a copy: both are the same")]
    pub(crate) fn keep(&self, path: &str, bytes: &Bytes) {
        let size = bytes.len() as u64;
        if size > LARGEST_KEPT || !never_changes(path) {
            return;
        }
        if size <= LARGEST {
            self.hold(path, bytes);
        }
        let file = self.folder.join(path);
        let Some(parent) = file.parent() else { return };
        let beside = parent.join(format!(".{:016x}", crate::store::random()));
        let written = fs::create_dir_all(parent)
            .and_then(|()| fs::File::create_new(&beside))
            .and_then(|mut copy| copy.write_all(bytes).and_then(|()| copy.write_all(&digest(bytes))))
            .and_then(|()| fs::rename(&beside, &file));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
            return;
        }
        // One run may read more than is to be kept.
        if self.kept.fetch_add(size, Ordering::Relaxed) + size > MOST_KEPT {
            self.kept.store(trim(&self.folder, MOST_KEPT - MOST_KEPT / 8), Ordering::Relaxed);
        }
    }

    /// So that what is in use is not what is thrown away.
    fn touch(&self, path: &str) {
        if let Ok(file) = fs::File::options().append(true).open(self.folder.join(path)) {
            let _ = file.set_modified(now().into());
        }
    }

    pub(crate) fn forget(&self, path: &str) {
        self.hand().retain(|(name, _)| name != path);
        self.whole().remove(path);
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

    fn hand(&self) -> MutexGuard<'_, Vec<(String, Bytes)>> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn whole(&self) -> MutexGuard<'_, HashSet<String>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(bytes: &[u8]) -> [u8; DIGEST] {
    xxh3_128(bytes).to_be_bytes()
}

/// Whether a copy ends in the digest of what is before it.
fn is_whole(file: &fs::File) -> bool {
    let mut hasher = Xxh3::new();
    let mut read = || -> std::io::Result<bool> {
        let mut left = file.metadata()?.len().saturating_sub(DIGEST as u64);
        let (mut at, mut piece) = (0, vec![0; 1 << 20]);
        while left > 0 {
            let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            file.read_exact_at(&mut piece[..length], at)?;
            hasher.update(&piece[..length]);
            (at, left) = (at + length as u64, left - length as u64);
        }
        let mut end = [0; DIGEST];
        file.read_exact_at(&mut end, at)?;
        Ok(end == hasher.digest128().to_be_bytes())
    };
    read().unwrap_or(false)
}

#[expect(clippy::disallowed_methods, reason = "only says which copy was used last; no answer depends on it")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Names come from a bucket, and whoever may write there must not choose where we write here.
fn never_changes(path: &str) -> bool {
    is_plain(path)
        && [SEGMENTS, COVERAGE, VIEWS]
            .iter()
            .any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
}

/// Deletes copies until no more than so many bytes are kept, and answers how many are.
fn trim(folder: &Path, most: u64) -> u64 {
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
            break;
        }
        if fs::remove_file(path).is_ok() {
            kept -= size;
        }
    }
    kept
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
    fn parts_are_read_from_a_whole_copy_only() {
        let (folder, cache) = fresh();
        let text: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_be_bytes).collect();
        cache.keep(FILE, &Bytes::from(text.clone()));
        let next = Cache::new(folder.path());
        assert_eq!(next.part(FILE, &(7_000_000..7_000_100)).unwrap(), &text[7_000_000..7_000_100]);
        let end = text.len() as u64;
        assert_eq!(next.part(FILE, &(end - 4..end + 4)).unwrap(), &text[text.len() - 4..], "no more than there is");
        assert_eq!(next.part(FILE, &(end + 1..end + 4)), None);
        let file = fs::File::options().write(true).open(folder.path().join(FILE)).unwrap();
        file.write_all_at(&[255], 11_000_000).unwrap();
        assert_eq!(Cache::new(folder.path()).part(FILE, &(0..4)), None, "damaged in another part");
        assert!(!folder.path().join(FILE).exists());
    }

    #[test]
    fn nothing_is_written_or_deleted_outside_its_folder() {
        let outer = tempfile::tempdir().unwrap();
        let cache = Cache::new(&outer.path().join("a/b"));
        fs::write(outer.path().join("mine"), "precious").unwrap();
        for path in ["seg/../../../mine", "seg/../../../new", "seg//mine", "seg/./x", "seg/..", "seg/"] {
            cache.keep(path, &Bytes::from_static(b"theirs"));
            assert_eq!(cache.get(path), None, "{path}");
            cache.forget(path);
        }
        assert_eq!(fs::read(outer.path().join("mine")).unwrap(), b"precious");
        let beneath: Vec<_> = fs::read_dir(outer.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(beneath, ["mine"]);
    }

    #[test]
    fn copies_are_listed_by_folder() {
        let (_folder, cache) = fresh();
        cache.keep(FILE, &Bytes::from_static(b"rows"));
        assert_eq!(cache.copies("seg/inventory"), [(FILE.to_owned(), 4 + DIGEST as u64)]);
        assert_eq!(cache.copies("seg/other"), []);
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
