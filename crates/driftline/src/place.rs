//! Where the store is: a folder, or a bucket that everybody shares.

use std::fmt;
use std::path::{Path, PathBuf};

use driftline_store::Place;

use crate::error::{CommandError, CommandResult};

/// The place of the store, as it was named. Nothing is asked of it before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreAt {
    Folder(PathBuf),
    Bucket(String),
}

impl StoreAt {
    pub(crate) fn named(name: &Path) -> CommandResult<Self> {
        let Some((scheme, _)) = name.to_str().and_then(|text| text.split_once("://")) else {
            return Ok(StoreAt::Folder(name.to_owned()));
        };
        match scheme {
            "s3" | "gs" | "az" => Ok(StoreAt::Bucket(name.display().to_string())),
            _ => Err(CommandError::new(format!("a store cannot be at a `{scheme}://` address"))
                .hint("name a folder, or a bucket as s3://bucket/prefix, gs://bucket/prefix or az://container/prefix")),
        }
    }

    /// The folder, if it is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            StoreAt::Folder(folder) => Some(folder),
            StoreAt::Bucket(_) => None,
        }
    }

    pub(crate) fn place(&self) -> CommandResult<Place> {
        match self {
            StoreAt::Folder(folder) => Ok(folder.into()),
            StoreAt::Bucket(url) => bucket::open(url),
        }
    }
}

impl fmt::Display for StoreAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreAt::Folder(folder) => write!(f, "{}", folder.display()),
            StoreAt::Bucket(url) => f.write_str(url),
        }
    }
}

#[cfg(feature = "bucket")]
mod bucket {
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::{Mutex, PoisonError};

    use driftline_store::{Bucket, Place};

    use crate::error::{CommandError, CommandResult};
    use crate::surroundings::{text_variable, variable};

    /// A server opens its store again and again: connections and credentials are kept.
    pub(super) fn open(url: &str) -> CommandResult<Place> {
        static OPEN: Mutex<BTreeMap<String, Bucket>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = open.get(url) {
            return Ok(Place::Bucket(known.clone()));
        }
        let bucket = driftline_bucket::open(url, caches().as_deref())
            .map_err(|error| CommandError::because(format!("cannot open the store `{url}`"), &error))?;
        open.insert(url.to_owned(), bucket.clone());
        Ok(Place::Bucket(bucket))
    }

    /// Where copies of files of buckets are kept; set to nothing, nowhere.
    fn caches() -> Option<PathBuf> {
        if let Some(named) = variable("DRIFTLINE_CACHE_DIR") {
            return (!named.is_empty()).then(|| PathBuf::from(named));
        }
        let cache = text_variable("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| text_variable("HOME").map(|home| PathBuf::from(home).join(".cache")));
        cache.map(|folder| folder.join("driftline").join("buckets"))
    }
}

#[cfg(not(feature = "bucket"))]
mod bucket {
    use driftline_store::Place;

    use crate::error::{CommandError, CommandResult};

    pub(super) fn open(url: &str) -> CommandResult<Place> {
        Err(CommandError::new(format!("cannot open the store `{url}`: this program was built without `bucket`"))
            .hint("build it with `--features bucket`, or name a folder"))
    }
}
