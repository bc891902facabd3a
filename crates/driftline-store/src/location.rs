//! Where a store lies, and the four things we do there: put if absent, get, list, delete.
//!
//! Only operations that every `object_store` backend has; a folder fsyncs every file and its directory. A bucket is
//! handed to us open, and everything asked of it is asked again when the network fails.

use std::future::Future;
use std::io::Read;
use std::ops::Range;
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_executor::block_on;
use futures_util::TryStreamExt;
use futures_util::future::join_all;
use jiff::Timestamp;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tokio::runtime::Handle;

use crate::cache::Cache;
use crate::check::BLOCK;
use crate::error::StoreError;
use crate::log::{FileRef, LOG_FOLDER, record_path};
use crate::store::{COVERAGE, PROBES, SEGMENTS, VIEWS};

/// Where a store lies, as it was named.
#[derive(Clone, Debug)]
pub enum Place {
    Folder(PathBuf),
    Bucket(Bucket),
}

/// Object storage that somebody has opened for us: this crate knows no cloud.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// As the user wrote it, e.g. `s3://bucket/prefix`.
    pub url: String,
    /// What is beneath that address.
    pub objects: Arc<dyn ObjectStore>,
    /// Where its requests and timers run, whoever waits for them.
    pub runtime: Handle,
    /// Where copies of files that never change are kept, if anywhere.
    pub cache: Option<PathBuf>,
}

impl Place {
    /// The folder, if it is one.
    pub fn folder(&self) -> Option<&FsPath> {
        match self {
            Place::Folder(folder) => Some(folder),
            Place::Bucket(_) => None,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Folder(folder) => write!(f, "{}", folder.display()),
            Place::Bucket(bucket) => f.write_str(&bucket.url),
        }
    }
}

impl From<PathBuf> for Place {
    fn from(folder: PathBuf) -> Self {
        Place::Folder(folder)
    }
}

impl From<&FsPath> for Place {
    fn from(folder: &FsPath) -> Self {
        Place::Folder(folder.to_owned())
    }
}

impl From<&PathBuf> for Place {
    fn from(folder: &PathBuf) -> Self {
        Place::Folder(folder.clone())
    }
}

impl From<&Place> for Place {
    fn from(place: &Place) -> Self {
        place.clone()
    }
}

#[derive(Clone, Debug)]
pub struct Location {
    store: Arc<dyn ObjectStore>,
    /// The same place without waiting for the disk, for what can be made again.
    derived: Arc<dyn ObjectStore>,
    place: Place,
    cache: Option<Arc<Cache>>,
}

/// A file that is in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub path: String,
    pub size: u64,
    pub modified: Timestamp,
}

/// How often something is tried again that a bucket failed at, besides what its client tries by itself.
const TRIES: u32 = 6;
/// How many records are asked for at once where asking takes time.
const MOST_AT_ONCE: u64 = 16;

impl Location {
    /// A place that already holds a store. Whether a bucket does is what its log says, which is read next anyway.
    pub fn open(place: &Place) -> Result<Self, StoreError> {
        match place {
            Place::Folder(folder) => {
                check_folder(folder)?;
                Self::in_folder(folder)
            }
            Place::Bucket(bucket) => Ok(Self::in_bucket(bucket)),
        }
    }

    /// A place that holds a store, or may: missing and empty folders and empty prefixes become one.
    pub fn create(place: Place) -> Result<Self, StoreError> {
        match (Self::open(&place), place) {
            (Err(StoreError::NoStore { .. }), Place::Folder(folder)) => {
                std::fs::create_dir_all(folder.join(LOG_FOLDER)).map_err(|error| StoreError::NotAStore {
                    location: folder.display().to_string(),
                    reason: format!("it cannot be created: {error}"),
                })?;
                Self::in_folder(&folder)
            }
            (other, _) => other,
        }
    }

    /// Refuses a place without a store in it that holds something else. What a commit writes before its record is no
    /// stranger's.
    pub(crate) fn check_vacant(&self) -> Result<(), StoreError> {
        let ours = |path: &str| {
            [LOG_FOLDER, SEGMENTS, COVERAGE, VIEWS, PROBES]
                .iter()
                .any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
        };
        match self.find(|path| !ours(path))? {
            None => Ok(()),
            Some(other) => {
                let reason = format!("other things are beneath it, `{other}` for one, and no `{LOG_FOLDER}`");
                Err(StoreError::NotAStore { location: self.place.to_string(), reason })
            }
        }
    }

    fn in_folder(folder: &FsPath) -> Result<Self, StoreError> {
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|error| StoreError::NotAStore {
            location: folder.display().to_string(),
            reason: error.to_string(),
        })?;
        let derived = Arc::new(store.clone());
        Ok(Self { store: Arc::new(store.with_fsync(true)), derived, place: folder.into(), cache: None })
    }

    fn in_bucket(bucket: &Bucket) -> Self {
        Self {
            store: bucket.objects.clone(),
            derived: bucket.objects.clone(),
            place: Place::Bucket(bucket.clone()),
            cache: bucket.cache.as_deref().map(|folder| Arc::new(Cache::new(folder))),
        }
    }

    /// The same place, asked for everything anew.
    pub(crate) fn without_copies(&self) -> Self {
        Self { cache: None, ..self.clone() }
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether others may write here from other machines, and every request takes its time.
    pub(crate) fn is_far(&self) -> bool {
        matches!(self.place, Place::Bucket(_))
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let _inside = match &self.place {
            Place::Folder(_) => None,
            Place::Bucket(bucket) => Some(bucket.runtime.enter()),
        };
        block_on(future)
    }

    /// Tries again what a network may fail at. Every one of our requests may be made twice.
    fn persist<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, object_store::Error>,
    ) -> Result<T, object_store::Error> {
        let mut tried = 0;
        loop {
            tried += 1;
            match attempt() {
                Err(object_store::Error::Generic { .. }) if self.is_far() && tried < TRIES => pause(tried),
                result => return result,
            }
        }
    }

    /// `false` when something is there already; nothing is written then.
    pub fn put_if_absent(&self, path: &str, bytes: impl Into<Bytes>) -> Result<bool, StoreError> {
        self.put(&*self.store, path, &bytes.into())
    }

    /// Puts a file that nobody else would put here with another content, and comes back when it is there.
    pub(crate) fn put_own(&self, path: &str, bytes: impl Into<Bytes>) -> Result<(), StoreError> {
        let bytes = bytes.into();
        for tried in 1..=TRIES {
            // "It is there already" may be the echo of our own request whose reply was lost; and S3 says the same of a
            // request that met another one on its way, after which there may be nothing.
            if self.put(&*self.store, path, &bytes)? || !self.is_far() || self.exists(path)? {
                self.keep_copy(path, &bytes);
                return Ok(());
            }
            pause(tried);
        }
        Err(StoreError::damaged(path, "it could not be written: the bucket says that it is there, and it is not"))
    }

    /// Puts a file that is named after its content and can be made again; it may be lost when the machine crashes.
    pub(crate) fn put_derived(&self, path: &str, bytes: impl Into<Bytes>) -> Result<bool, StoreError> {
        self.put(&*self.derived, path, &bytes.into())
    }

    pub fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        self.get_if_present(path)?.ok_or_else(|| StoreError::damaged(path, "the file is missing"))
    }

    /// A file that must pass a check. One that does not may be a bad copy of a good file: it is asked for once more.
    pub(crate) fn get_good(
        &self,
        path: &str,
        check: impl Fn(&Bytes) -> Result<(), StoreError>,
    ) -> Result<Bytes, StoreError> {
        let bytes = self.get(path)?;
        match check(&bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if self.cache.is_none() => Err(error),
            Err(_) => {
                self.forget_copy(path);
                let bytes = self.get(path)?;
                check(&bytes).map(|()| bytes)
            }
        }
    }

    pub fn get_if_present(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        if let Some(kept) = self.cache.as_ref().and_then(|cache| cache.get(path)) {
            return Ok(Some(kept));
        }
        match self.persist(|| self.wait(get(&*self.store, path))) {
            Ok(bytes) => {
                if let Some(cache) = &self.cache {
                    cache.keep(path, &bytes);
                }
                Ok(Some(bytes))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(StoreError::Io { action: "read", path: path.to_owned(), source }),
        }
    }

    /// Reads a whole file to the end of some bytes that have room for it. `false` if there is none.
    pub(crate) fn read_into(&self, path: &str, bytes: &mut Vec<u8>) -> Result<bool, StoreError> {
        let start = bytes.len();
        let read = || {
            bytes.truncate(start);
            self.wait(get_into(&*self.store, path, bytes))
        };
        match self.persist(read) {
            Ok(()) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(source) => Err(StoreError::Io { action: "read", path: path.to_owned(), source }),
        }
    }

    /// The copies on this machine of what is in a folder, with their sizes.
    pub(crate) fn copies(&self, folder: &str) -> Vec<(String, u64)> {
        self.cache.as_ref().map_or_else(Vec::new, |cache| cache.copies(folder))
    }

    /// [`Self::read_into`] from the copy on this machine, if there is one.
    pub(crate) fn read_copy(&self, path: &str, bytes: &mut Vec<u8>) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.read_into(path, bytes))
    }

    /// Keeps a copy on this machine of something derived, whether the bucket has it or not.
    pub(crate) fn keep_copy(&self, path: &str, bytes: &Bytes) {
        if let Some(cache) = &self.cache {
            cache.keep(path, bytes);
        }
    }

    pub(crate) fn forget_copy(&self, path: &str) {
        if let Some(cache) = &self.cache {
            cache.forget(path);
        }
    }

    pub fn exists(&self, path: &str) -> Result<bool, StoreError> {
        match self.persist(|| self.wait(self.store.head(&Path::from(path)))) {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(source) => Err(StoreError::Io { action: "look for", path: path.to_owned(), source }),
        }
    }

    /// How many records are asked for where so many may be: from afar asking takes time.
    pub(crate) fn at_once(&self, count: u64) -> u64 {
        if self.is_far() { count.clamp(1, MOST_AT_ONCE) } else { 1 }
    }

    /// So many records, in order, up to the first that is not there; each with when it came to be there by the clock
    /// of the place. They are asked for at once.
    pub(crate) fn records(&self, first: u64, count: u64) -> Result<Vec<(Bytes, Timestamp)>, StoreError> {
        let paths: Vec<String> = (first..first + count).map(record_path).collect();
        let asked = self.wait(join_all(paths.iter().map(|path| get_dated(&*self.store, path))));
        let mut found = Vec::new();
        for (path, answer) in paths.iter().zip(asked) {
            let answer = match answer {
                Err(object_store::Error::Generic { .. }) if self.is_far() => {
                    self.persist(|| self.wait(get_dated(&*self.store, path)))
                }
                answer => answer,
            };
            match answer {
                Ok(record) => found.push(record),
                Err(object_store::Error::NotFound { .. }) => break,
                Err(source) => return Err(StoreError::Io { action: "read", path: path.clone(), source }),
            }
        }
        Ok(found)
    }

    /// A part of a file of a known size.
    pub fn get_range(&self, path: &str, range: Range<u64>, size: u64) -> Result<Bytes, StoreError> {
        if self.cache.is_some() && Cache::takes(path, size) {
            let whole = self.get(path)?;
            let inside = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(whole.len());
            return Ok(whole.slice(inside(range.start)..inside(range.end)));
        }
        if let Some(part) = self.cache.as_ref().and_then(|cache| cache.part(path, &range)) {
            return Ok(part);
        }
        self.persist(|| self.wait(self.store.get_range(&Path::from(path), range.clone())))
            .map_err(|source| StoreError::Io { action: "read", path: path.to_owned(), source })
    }

    /// A part of a file that a record refers to. Whole blocks are read and checked, so that no damaged byte is ever
    /// looked at.
    pub fn get_checked(&self, file: &FileRef, range: Range<u64>) -> Result<Bytes, StoreError> {
        let first = range.start / BLOCK * BLOCK;
        let last = range.end.next_multiple_of(BLOCK).min(file.size);
        let damaged = |reason: String| StoreError::damaged(file.path.as_str(), reason);
        let mut blocks = self.get_range(&file.path, first..last, file.size)?;
        if let Err(reason) = file.checksums.verify_blocks(&blocks, first) {
            // What is damaged may be the copy of it.
            if self.cache.is_none() {
                return Err(damaged(reason));
            }
            self.forget_copy(&file.path);
            blocks = self.get_range(&file.path, first..last, file.size)?;
            file.checksums.verify_blocks(&blocks, first).map_err(damaged)?;
        }
        let inside = |at: u64| usize::try_from(at - first).unwrap_or(usize::MAX);
        let (from, to) = (inside(range.start), inside(range.end));
        if from > to || to > blocks.len() {
            return Err(damaged(format!("it ends before byte {}", range.end)));
        }
        Ok(blocks.slice(from..to))
    }

    /// Everything beneath a folder of the store, in order of path. A folder that is not there is empty.
    pub fn list(&self, prefix: &str) -> Result<Vec<Listed>, StoreError> {
        let prefix_path = (!prefix.is_empty()).then(|| Path::from(prefix));
        let list = || {
            self.wait(
                self.store
                    .list(prefix_path.as_ref())
                    .map_ok(|meta| Listed {
                        path: meta.location.to_string(),
                        size: meta.size,
                        modified: modified(&meta),
                    })
                    .try_collect(),
            )
        };
        let mut listed: Vec<Listed> =
            self.persist(list).map_err(|source| StoreError::Io { action: "list", path: prefix.to_owned(), source })?;
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listed)
    }

    /// The first file of that kind; the rest is not even listed.
    fn find(&self, wanted: impl Fn(&str) -> bool) -> Result<Option<String>, StoreError> {
        let look = || {
            self.wait(async {
                let mut all = self.store.list(None);
                while let Some(meta) = all.try_next().await? {
                    if wanted(meta.location.as_ref()) {
                        return Ok(Some(meta.location.to_string()));
                    }
                }
                Ok(None)
            })
        };
        self.persist(look).map_err(|source| StoreError::Io { action: "list", path: String::new(), source })
    }

    /// Deleting what is not there is fine: someone else was quicker.
    pub fn delete(&self, path: &str) -> Result<(), StoreError> {
        if let Some(cache) = &self.cache {
            cache.forget(path);
        }
        match self.persist(|| self.wait(self.store.delete(&Path::from(path)))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(StoreError::Io { action: "delete", path: path.to_owned(), source }),
        }
    }

    /// Deletes several at once.
    pub(crate) fn delete_all(&self, paths: &[String]) -> Result<(), StoreError> {
        const AT_ONCE: usize = 16;
        for some in paths.chunks(if self.is_far() { AT_ONCE } else { 1 }) {
            let places: Vec<Path> = some.iter().map(|path| Path::from(path.as_str())).collect();
            let asked = self.wait(join_all(places.iter().map(|place| self.store.delete(place))));
            for (path, answer) in some.iter().zip(asked) {
                match answer {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => self.forget_copy(path),
                    Err(_) => self.delete(path)?,
                }
            }
        }
        Ok(())
    }

    fn put(&self, store: &dyn ObjectStore, path: &str, bytes: &Bytes) -> Result<bool, StoreError> {
        let put = || {
            let options = PutOptions::from(PutMode::Create);
            self.wait(store.put_opts(&Path::from(path), bytes.clone().into(), options))
        };
        match self.persist(put) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(source) => Err(StoreError::Io { action: "write", path: path.to_owned(), source }),
        }
    }
}

async fn get(store: &dyn ObjectStore, path: &str) -> Result<Bytes, object_store::Error> {
    store.get(&Path::from(path)).await?.bytes().await
}

async fn get_dated(store: &dyn ObjectStore, path: &str) -> Result<(Bytes, Timestamp), object_store::Error> {
    let found = store.get(&Path::from(path)).await?;
    let modified = modified(&found.meta);
    Ok((found.bytes().await?, modified))
}

fn modified(meta: &ObjectMeta) -> Timestamp {
    Timestamp::from_second(meta.last_modified.timestamp()).unwrap_or(Timestamp::MIN)
}

async fn get_into(store: &dyn ObjectStore, path: &str, bytes: &mut Vec<u8>) -> Result<(), object_store::Error> {
    match store.get(&Path::from(path)).await?.payload {
        GetResultPayload::File(mut file, _) => {
            file.read_to_end(bytes)
                .map_err(|error| object_store::Error::Generic { store: "folder", source: Box::new(error) })?;
        }
        GetResultPayload::Stream(mut stream) => {
            while let Some(piece) = stream.try_next().await? {
                bytes.extend_from_slice(&piece);
            }
        }
    }
    Ok(())
}

/// Waits a little, longer each time, and not as long as others who wait for the same.
pub(crate) fn pause(tried: u32) {
    const FIRST: u64 = 20;
    const LONGEST: u64 = 2_000;
    let most = FIRST.saturating_mul(1 << tried.min(10)).min(LONGEST);
    std::thread::sleep(Duration::from_millis(crate::store::random() % most));
}

fn check_folder(folder: &FsPath) -> Result<(), StoreError> {
    let location = || folder.display().to_string();
    match std::fs::metadata(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(StoreError::NoStore { location: location() });
        }
        Err(error) => return Err(StoreError::NotAStore { location: location(), reason: error.to_string() }),
        Ok(data) if !data.is_dir() => {
            return Err(StoreError::NotAStore { location: location(), reason: "it is a file, not a folder".into() });
        }
        Ok(_) => {}
    }
    // Asked in this order: someone may be making the store at this moment, and its log is the first thing in it.
    let empty = is_empty(folder);
    match (folder.join(LOG_FOLDER).is_dir(), empty) {
        (true, _) => Ok(()),
        (false, true) => Err(StoreError::NoStore { location: location() }),
        (false, false) => Err(StoreError::NotAStore {
            location: location(),
            reason: format!("the folder has other things in it and no `{LOG_FOLDER}`"),
        }),
    }
}

fn is_empty(folder: &FsPath) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}
