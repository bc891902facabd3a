//! Where a store lies, and the four things we do there: put if absent, get, list, delete.
//!
//! Only operations that every `object_store` backend has; a folder fsyncs every file and its directory.

use std::ops::Range;
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_executor::block_on;
use futures_util::TryStreamExt;
use jiff::Timestamp;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use crate::error::StoreError;
use crate::log::LOG_FOLDER;

#[derive(Clone, Debug)]
pub struct Location {
    store: Arc<dyn ObjectStore>,
    /// The same place without waiting for the disk, for what can be made again.
    derived: Arc<dyn ObjectStore>,
    folder: PathBuf,
}

/// A file that is in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub path: String,
    pub size: u64,
    pub modified: Timestamp,
}

impl Location {
    /// A folder that already holds a store.
    pub fn open(folder: &FsPath) -> Result<Self, StoreError> {
        let location = || folder.display().to_string();
        match std::fs::metadata(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(StoreError::NoStore { location: location() });
            }
            Err(error) => return Err(StoreError::NotAStore { location: location(), reason: error.to_string() }),
            Ok(data) if !data.is_dir() => {
                return Err(StoreError::NotAStore {
                    location: location(),
                    reason: "it is a file, not a folder".into(),
                });
            }
            Ok(_) => {}
        }
        // Asked in this order: someone may be making the store at this moment, and its log is the first thing in it.
        let empty = is_empty(folder);
        if !folder.join(LOG_FOLDER).is_dir() {
            return Err(if empty {
                StoreError::NoStore { location: location() }
            } else {
                StoreError::NotAStore {
                    location: location(),
                    reason: format!("the folder has other things in it and no `{LOG_FOLDER}`"),
                }
            });
        }
        Self::at(folder)
    }

    /// A folder that holds a store, or may: missing and empty folders become one.
    pub fn create(folder: &FsPath) -> Result<Self, StoreError> {
        match Self::open(folder) {
            Err(StoreError::NoStore { .. }) => {
                std::fs::create_dir_all(folder.join(LOG_FOLDER)).map_err(|error| StoreError::NotAStore {
                    location: folder.display().to_string(),
                    reason: format!("it cannot be created: {error}"),
                })?;
                Self::at(folder)
            }
            other => other,
        }
    }

    fn at(folder: &FsPath) -> Result<Self, StoreError> {
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|error| StoreError::NotAStore {
            location: folder.display().to_string(),
            reason: error.to_string(),
        })?;
        let derived = Arc::new(store.clone());
        Ok(Self { store: Arc::new(store.with_fsync(true)), derived, folder: folder.to_owned() })
    }

    pub fn folder(&self) -> &FsPath {
        &self.folder
    }

    /// `false` when something is there already; nothing is written then.
    pub fn put_if_absent(&self, path: &str, bytes: impl Into<Bytes>) -> Result<bool, StoreError> {
        put(&*self.store, path, bytes.into())
    }

    /// Puts a file that is named after its content and can be made again; it may be lost when the machine crashes.
    pub(crate) fn put_derived(&self, path: &str, bytes: impl Into<Bytes>) -> Result<bool, StoreError> {
        put(&*self.derived, path, bytes.into())
    }

    pub fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        self.get_if_present(path)?.ok_or_else(|| StoreError::damaged(path, "the file is missing"))
    }

    pub fn get_if_present(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        let get = async { self.store.get(&Path::from(path)).await?.bytes().await };
        match block_on(get) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(StoreError::Io { action: "read", path: path.to_owned(), source }),
        }
    }

    pub fn exists(&self, path: &str) -> Result<bool, StoreError> {
        match block_on(self.store.head(&Path::from(path))) {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(source) => Err(StoreError::Io { action: "look for", path: path.to_owned(), source }),
        }
    }

    pub fn get_range(&self, path: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        block_on(self.store.get_range(&Path::from(path), range)).map_err(|source| StoreError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })
    }

    /// Everything beneath a folder of the store, in order of path. A folder that is not there is empty.
    pub fn list(&self, prefix: &str) -> Result<Vec<Listed>, StoreError> {
        let prefix_path = (!prefix.is_empty()).then(|| Path::from(prefix));
        let mut listed: Vec<Listed> = block_on(
            self.store
                .list(prefix_path.as_ref())
                .map_ok(|meta| Listed {
                    path: meta.location.to_string(),
                    size: meta.size,
                    modified: Timestamp::from_second(meta.last_modified.timestamp()).unwrap_or(Timestamp::MIN),
                })
                .try_collect(),
        )
        .map_err(|source| StoreError::Io { action: "list", path: prefix.to_owned(), source })?;
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listed)
    }

    /// Deleting what is not there is fine: someone else was quicker.
    pub fn delete(&self, path: &str) -> Result<(), StoreError> {
        match block_on(self.store.delete(&Path::from(path))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(StoreError::Io { action: "delete", path: path.to_owned(), source }),
        }
    }
}

fn put(store: &dyn ObjectStore, path: &str, bytes: Bytes) -> Result<bool, StoreError> {
    let options = PutOptions::from(PutMode::Create);
    match block_on(store.put_opts(&Path::from(path), bytes.into(), options)) {
        Ok(_) => Ok(true),
        Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
        Err(source) => Err(StoreError::Io { action: "write", path: path.to_owned(), source }),
    }
}

fn is_empty(folder: &FsPath) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}
