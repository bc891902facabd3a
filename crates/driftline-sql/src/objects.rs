//! The store as `DataFusion`'s object storage: only files that the log names, only for reading, and every byte checked.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::{ObjectStoreRegistry, ObjectStoreUrl};
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use driftline_store::{FileRef, Store, StoreError};
use futures_util::stream::{self, BoxStream, StreamExt};
use url::Url;

/// Opens the store that a plan names, on whatever machine the plan runs.
pub type Opener = Arc<dyn Fn(&str) -> std::result::Result<Store, StoreError> + Send + Sync>;

const SCHEME: &str = "driftline";

/// How plans name a store. Only a scheme and a host are kept of such an address, so the place is the host, in hex.
pub(crate) fn address(place: &str) -> Result<ObjectStoreUrl> {
    let host: String = place.bytes().map(|byte| format!("{byte:02x}")).collect();
    ObjectStoreUrl::parse(format!("{SCHEME}://{host}"))
}

fn place_of(url: &Url) -> Option<String> {
    let host = url.host_str().filter(|_| url.scheme() == SCHEME)?;
    let digits = host.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    String::from_utf8(digits.0.iter().map(byte).collect::<Option<Vec<u8>>>()?).ok().filter(|_| digits.1.is_empty())
}

/// Knows stores and nothing else: no plan can name another file, and nothing can be registered.
pub(crate) struct Stores {
    open: Opener,
    known: Mutex<BTreeMap<String, Objects>>,
}

impl Stores {
    pub(crate) fn new(open: Opener) -> Self {
        Self { open, known: Mutex::default() }
    }
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stores")
    }
}

impl ObjectStoreRegistry for Stores {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let place = place_of(url).ok_or_else(|| {
            DataFusionError::Execution(format!("`{url}` cannot be read: only the views of the store can be asked"))
        })?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = known.entry(place.clone()).or_insert_with(|| Objects::new(place, self.open.clone()));
        Ok(Arc::new(objects.clone()))
    }
}

/// The data files of one store.
#[derive(Clone)]
pub(crate) struct Objects {
    place: Arc<str>,
    open: Opener,
    opened: Arc<OnceLock<Mutex<Known>>>,
}

struct Known {
    store: Store,
    files: BTreeMap<String, FileRef>,
}

impl Known {
    fn new(store: Store) -> Self {
        let files = store.catalog().files().map(|file| (file.path.clone(), file.clone())).collect();
        Self { store, files }
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({})", self.place)
    }
}

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store `{}`", self.place)
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "driftline", source: Box::new(error) }
}

impl Objects {
    fn new(place: String, open: Opener) -> Self {
        Self { place: place.into(), open, opened: Arc::default() }
    }

    /// The store and the file of that name. A file that a later commit wrote is known after a second look.
    fn file(&self, path: &str) -> datafusion::object_store::Result<(driftline_store::Location, FileRef)> {
        let known = match self.opened.get() {
            Some(known) => known,
            None => {
                let store = (self.open)(&self.place).map_err(failed)?;
                self.opened.get_or_init(|| Mutex::new(Known::new(store)))
            }
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.files.contains_key(path) {
            let store = (self.open)(&self.place).map_err(failed)?;
            *known = Known::new(store);
        }
        match known.files.get(path) {
            Some(file) => Ok((known.store.location().clone(), file.clone())),
            None => Err(Error::NotFound {
                path: path.to_owned(),
                source: "the log of the store does not name it (any more)".into(),
            }),
        }
    }

    #[expect(clippy::default_trait_access, reason = "the type is of a crate that is not needed for more")]
    fn read(&self, path: &str, options: &GetOptions) -> datafusion::object_store::Result<GetResult> {
        let (location, file) = self.file(path)?;
        let range: Range<u64> = match &options.range {
            Some(range) => range.as_range(file.size).map_err(failed)?,
            None => 0..file.size,
        };
        let bytes = match options.head || range.is_empty() {
            true => Bytes::new(),
            false => location.get_checked(&file, range.clone()).map_err(failed)?,
        };
        let meta = ObjectMeta {
            location: Path::from(path),
            last_modified: Default::default(),
            size: file.size,
            e_tag: None,
            version: None,
        };
        let payload = GetResultPayload::Stream(stream::once(async move { Ok(bytes) }).boxed());
        Ok(GetResult { payload, meta, range, attributes: Attributes::default() })
    }
}

fn refused<T>() -> datafusion::object_store::Result<T> {
    Err(Error::NotSupported { source: "the store is only read here".into() })
}

#[async_trait]
impl ObjectStore for Objects {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> datafusion::object_store::Result<GetResult> {
        let (objects, path) = (self.clone(), location.to_string());
        // The store waits for its disk or its bucket; nobody else has to.
        tokio::task::spawn_blocking(move || objects.read(&path, &options)).await.map_err(failed)?
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> datafusion::object_store::Result<PutResult> {
        refused()
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> datafusion::object_store::Result<Box<dyn MultipartUpload>> {
        refused()
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, datafusion::object_store::Result<Path>>,
    ) -> BoxStream<'static, datafusion::object_store::Result<Path>> {
        stream::once(async { refused() }).boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, datafusion::object_store::Result<ObjectMeta>> {
        stream::once(async { refused() }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> datafusion::object_store::Result<ListResult> {
        refused()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> datafusion::object_store::Result<()> {
        refused()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_the_place_and_nothing_else_is_an_address() {
        for place in ["/srv/a b/.driftline", "s3://bucket/prefix", "ü"] {
            let url = address(place).unwrap();
            assert_eq!(place_of(url.as_ref()).as_deref(), Some(place));
        }
        for other in ["file:///etc/passwd", "s3://bucket", "driftline://abc", "driftline://zz"] {
            assert_eq!(place_of(&Url::parse(other).unwrap()), None, "{other}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let stores = Stores::new(Arc::new(|_| unreachable!("nothing is opened")));
        assert!(stores.get_store(&Url::parse("file:///").unwrap()).is_err());
    }
}
