//! A store that is open: its log read, its files at hand.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use bytes::Bytes;
use driftline_core::coverage::{Coverage, Places};
use driftline_core::{BaselineName, Outcome, ResourceKey, StreamId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::baseline::Accepted;
use crate::catalog::{Catalog, Version};
use crate::check::{Checksums, sha256_hex};
use crate::error::{FORMAT, PLAIN_FORMAT, StoreError};
use crate::location::{Location, Place, pause};
use crate::log::{self, FileRef, Step};
use crate::pack::LastPack;
use crate::segment::{Segment, Written};

pub(crate) const SEGMENTS: &str = "seg";
pub(crate) const COVERAGE: &str = "coverage";
pub(crate) const VIEWS: &str = "view";
/// What a check-up that was cut off may leave; `gc` deletes it.
pub(crate) const PROBES: &str = "probe";
const SNAPSHOTS: &str = "view/catalog";

/// How often a commit starts over because others came first, before it gives up.
const MAX_TRIES: u32 = 10_000;
/// How often one record is put while nobody holds its number.
const RECORD_TRIES: u32 = 8;

/// How many records are asked for at first when a sum of the log is at hand, the last that it counts included.
const AFTER_A_SUM: u64 = 8;
/// A sum of the log is written after one more interval for every so many intervals of it.
const RECORDS_A_STEP: u64 = 256;

#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) location: Location,
    pub(crate) catalog: Catalog,
    pub(crate) tuning: Tuning,
    pub(crate) packs: LastPack,
}

/// From which size on things are done that only pay when there is much. Answers do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// After how many log records the log is summed up again for quicker opening.
    pub snapshot_every: u64,
    /// From how many rows on a derived view of a far diff is worth its file.
    pub view_rows: usize,
    /// From how many resources on an index of their lines is.
    pub index_rows: usize,
    /// A chain of changes is started anew when they weigh as much as the full image, but not below this.
    pub rebase_bytes: u64,
    /// ... or when it has this many versions.
    pub rebase_versions: usize,
    /// How many files there must be before they are packed into one.
    pub pack_files: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            snapshot_every: 64,
            view_rows: 256,
            index_rows: 10_000,
            rebase_bytes: 256 * 1024,
            rebase_versions: 256,
            pack_files: 16,
        }
    }
}

impl Store {
    /// Opens the store in a place for reading; there must be one.
    pub fn open(place: impl Into<Place>) -> Result<Self, StoreError> {
        let store = Self::load(Location::open(&place.into())?)?;
        match store.location.is_far() && store.catalog.next == 0 {
            true => Err(StoreError::NoStore { location: store.name() }),
            false => Ok(store),
        }
    }

    /// Opens the store in a place, making one if there is nothing.
    pub fn create(place: impl Into<Place>) -> Result<Self, StoreError> {
        let store = Self::load(Location::create(place.into())?)?;
        if store.location.is_far() && store.catalog.next == 0 {
            store.location.check_vacant()?;
            // Not every look-alike of S3 keeps the one promise that everything here stands on.
            if !store.probe()? {
                return Err(StoreError::NotAStore {
                    location: store.name(),
                    reason: "it replaces files that are there although it is told not to (`If-None-Match: *`), so two \
                             observers at once would lose versions"
                        .into(),
                });
            }
        }
        Ok(store)
    }

    fn load(location: Location) -> Result<Self, StoreError> {
        let summed = latest_snapshot(&location)?;
        let catalog = Catalog::default();
        let mut store = Self { location, catalog, tuning: Tuning::default(), packs: LastPack::default() };
        if let Some(summed) = summed
            && let Some(last) = summed.next.checked_sub(1)
        {
            // The sum of a log must end where the log itself says: the last record it counts is read and compared, and
            // the next ones are asked for beside it.
            let asked = store.location.at_once(AFTER_A_SUM);
            let mut records = store.location.records(last, asked)?.into_iter();
            let Some((bytes, _)) = records.next() else {
                return Err(StoreError::damaged(log::record_path(last), "the file is missing"));
            };
            let found = records.len() as u64 + 1;
            // Of another log, or one that was replaced: the log itself is what counts.
            if log::decode(last, &bytes, &store.name())?.check == summed.last_check {
                store.catalog = summed;
                store.take_in(records.map(|(bytes, _)| bytes))?;
                if found < asked {
                    return Ok(store);
                }
            }
        }
        store.refresh()?;
        Ok(store)
    }

    fn take_in(&mut self, records: impl Iterator<Item = Bytes>) -> Result<(), StoreError> {
        for bytes in records {
            let record = log::decode(self.catalog.next, &bytes, &self.name())?;
            self.catalog.apply(record)?;
        }
        Ok(())
    }

    /// The same store, doing things early or late.
    #[must_use]
    pub fn with_tuning(self, tuning: Tuning) -> Self {
        Self { tuning, ..self }
    }

    /// Reads what others have added since.
    pub fn refresh(&mut self) -> Result<(), StoreError> {
        // The more there were, the more there may be.
        let mut count = 1;
        loop {
            let asked = self.location.at_once(count);
            let records = self.location.records(self.catalog.next, asked)?;
            count = count.saturating_mul(2);
            let found = records.len() as u64;
            self.take_in(records.into_iter().map(|(bytes, _)| bytes))?;
            if found < asked {
                return Ok(());
            }
        }
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) fn name(&self) -> String {
        self.location.place().to_string()
    }

    /// Whether this place keeps the one promise we need: a file that is there is not replaced.
    pub fn probe(&self) -> Result<bool, StoreError> {
        let path = format!("{PROBES}/{:016x}", random());
        self.location.put_own(&path, "1")?;
        let replaced = self.location.put_if_absent(&path, "2")?;
        let kept = self.location.get(&path)? == "1";
        self.location.delete(&path)?;
        Ok(kept && !replaced)
    }

    /// Adds one step to the log. `make` is asked again whenever someone else's step came first.
    pub(crate) fn append(
        &mut self,
        now: Timestamp,
        mut make: impl FnMut(&mut Self) -> Result<Step, StoreError>,
    ) -> Result<(), StoreError> {
        for tried in 0..MAX_TRIES {
            if tried > 0 {
                if self.location.is_far() {
                    pause(tried);
                }
                self.refresh()?;
            }
            let step = make(self)?;
            let number = self.catalog.next;
            let nonce = format!("{:016x}", random());
            let (bytes, _) = log::encode(number, now, &self.catalog.last_check, &nonce, &step);
            let path = log::record_path(number);
            // Read back before it is there for all: a record that cannot be read would end the store.
            let record = log::decode(number, &bytes, &self.name())?;
            if self.put_record(&path, &bytes)? {
                self.catalog.apply(record)?;
                self.snapshot_if_due();
                return Ok(());
            }
        }
        Err(StoreError::Contended { tries: MAX_TRIES })
    }

    /// Whether this record came to be the one with its number.
    fn put_record(&self, path: &str, bytes: &[u8]) -> Result<bool, StoreError> {
        for tried in 1..=RECORD_TRIES {
            let created = self.location.put_if_absent(path, bytes.to_vec());
            if matches!(created, Ok(true)) {
                return Ok(true);
            }
            // Whether it was created is what the record itself says: a reply may be lost, or an error be told of
            // something that came after it was there for all to see.
            if let Some(found) = self.location.get_if_present(path)? {
                return Ok(found == bytes);
            }
            // "It is there", and it is not: two requests met, one of them perhaps our own of before, still on its way. The
            // same bytes again, so that it is one record whichever of them arrives.
            created?;
            pause(tried);
        }
        Err(StoreError::Contended { tries: RECORD_TRIES })
    }

    pub fn set_baseline(
        &mut self,
        name: &BaselineName,
        pins: &BTreeMap<StreamId, u64>,
        by: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.append(now, |store| {
            for (stream, version) in pins {
                store.catalog.version(stream, *version)?;
                if store.catalog.stream(stream)?.is_events() {
                    return Err(StoreError::Events(stream.clone()));
                }
            }
            Ok(Step::BaselineSet { name: name.clone(), pins: pins.clone(), by: by.to_owned() })
        })
    }

    pub fn accept(&mut self, name: &BaselineName, accepted: &[Accepted], now: Timestamp) -> Result<(), StoreError> {
        self.append(now, |store| {
            store.catalog.baseline(name)?;
            Ok(Step::BaselineAccept { name: name.clone(), accepted: accepted.to_vec() })
        })
    }

    pub fn remove_baseline(&mut self, name: &BaselineName, by: &str, now: Timestamp) -> Result<(), StoreError> {
        self.append(now, |store| {
            store.catalog.baseline(name)?;
            Ok(Step::BaselineRemove { name: name.clone(), by: by.to_owned() })
        })
    }

    /// Writes a change file and returns what a record says of it.
    pub(crate) fn write_segment<'a>(
        &self,
        stream: &StreamId,
        version: u64,
        taken_at: Timestamp,
        rows: impl Iterator<Item = Written<'a>>,
        count: u64,
    ) -> Result<FileRef, StoreError> {
        self.put_segment(stream, version, crate::segment::write(stream, taken_at, rows)?, count)
    }

    pub(crate) fn put_segment(
        &self,
        stream: &StreamId,
        version: u64,
        bytes: Vec<u8>,
        count: u64,
    ) -> Result<FileRef, StoreError> {
        let path = format!("{SEGMENTS}/{stream}/{version:010}-{:016x}.parquet", random());
        let (size, checksums) = (bytes.len() as u64, Checksums::of(&bytes));
        // A put can fail after the file is there; it is ours alone, so it can be taken away again.
        self.location.put_own(&path, bytes).inspect_err(|_| {
            let _ = self.location.delete(&path);
        })?;
        Ok(FileRef { path, size, rows: count, checksums, part: None })
    }

    /// Deletes files of ours that no record came to refer to. If that is not certain they stay, and `gc` sees to them.
    pub(crate) fn take_back<'a>(&mut self, files: impl Iterator<Item = &'a FileRef>) {
        // From afar a request that failed may still arrive, and then its files are needed.
        if !self.location.is_far() && self.refresh().is_ok() {
            self.discard(files);
        }
    }

    /// Deletes files that no record refers to.
    pub(crate) fn discard<'a>(&self, files: impl Iterator<Item = &'a FileRef>) {
        for file in files {
            if !self.catalog.files().any(|known| known.path == file.path) {
                let _ = self.location.delete(&file.path);
            }
        }
    }

    /// A file read whole and checked; for files that are small or all of which is needed.
    pub(crate) fn read_whole(&self, file: &FileRef) -> Result<Segment, StoreError> {
        Segment::from_bytes(file, self.whole_bytes(file)?)
    }

    /// Versions next to each other are read one after the other, and may be parts of one file: the last such is kept.
    fn whole_bytes(&self, file: &FileRef) -> Result<Bytes, StoreError> {
        if file.part.is_some()
            && let Some(bytes) = self.packs.last(&file.path)
        {
            return Ok(bytes);
        }
        let bytes = self.location.get_good(&file.path, |bytes| {
            file.checksums.verify(bytes, file.size).map_err(|reason| StoreError::damaged(file.path.as_str(), reason))
        })?;
        if file.part.is_some() {
            self.packs.keep(&file.path, &bytes);
        }
        Ok(bytes)
    }

    /// A file of which only some columns and rows will be read.
    pub(crate) fn read_parts(&self, file: &FileRef) -> Result<Segment, StoreError> {
        Segment::open(&self.location, file)
    }

    /// What a version looked at.
    pub fn coverage(&self, name: &str) -> Result<Coverage, StoreError> {
        let path = coverage_path(name);
        let bytes = self.location.get_good(&path, |bytes| decode_coverage(&path, name, bytes).map(|_| ()))?;
        decode_coverage(&path, name, &bytes)
    }

    /// Equal coverage is the same file, and most passes of a source cover the same: what the version before names
    /// is there, and stays.
    pub(crate) fn write_coverage(&self, coverage: &Coverage, parent: Option<&Version>) -> Result<String, StoreError> {
        let bytes = encode_coverage(coverage);
        let name = sha256_hex(&bytes)[..32].to_owned();
        let path = coverage_path(&name);
        if parent.is_none_or(|parent| parent.coverage != name) && !self.location.exists(&path)? {
            self.location.put_own(&path, bytes)?;
        }
        Ok(name)
    }

    /// Once a record names a coverage: what was found before may have been deleted until then, because nothing named
    /// it. From now on something does.
    pub(crate) fn keep_coverage(&self, coverage: &Coverage, parent: Option<&Version>) -> Result<(), StoreError> {
        self.write_coverage(coverage, parent).map(|_| ())
    }

    fn snapshot_if_due(&self) {
        // It weighs as much as all versions together, so it is written the rarer the more there are.
        let every =
            self.tuning.snapshot_every * (1 + self.catalog.next / (self.tuning.snapshot_every * RECORDS_A_STEP));
        if !self.catalog.next.is_multiple_of(every) {
            return;
        }
        // Derived and rebuildable: if it cannot be written, opening reads the log instead and means the same.
        let Ok(bytes) = encode_snapshot(&self.catalog) else { return };
        let path = format!("{SNAPSHOTS}/{:020}-{}.json", self.catalog.next, &sha256_hex(&bytes)[..32]);
        let Ok(older) = self.location.list(SNAPSHOTS) else { return };
        if self.location.put_derived(&path, bytes).is_ok() {
            for old in older.iter().rev().skip(1) {
                let _ = self.location.delete(&old.path);
            }
        }
    }
}

pub(crate) fn coverage_path(name: &str) -> String {
    format!("{COVERAGE}/{name}.json.zst")
}

/// The newest sum of the log that is whole; a damaged one only costs time, the log has everything.
fn latest_snapshot(location: &Location) -> Result<Option<Catalog>, StoreError> {
    for listed in location.list(SNAPSHOTS)?.iter().rev() {
        let Some(bytes) = location.get_if_present(&listed.path)? else { continue };
        if is_named_after(&listed.path, &bytes)
            && let Some(catalog) = decode_snapshot(&bytes)
        {
            return Ok(Some(catalog));
        }
    }
    Ok(None)
}

/// A sum with events or packed files in it is wrapped: a program that does not know them cannot read it, reads the log instead, and is
/// told there that the store is too new for it.
#[derive(Serialize, Deserialize)]
struct Wrapped<C> {
    format: u32,
    catalog: C,
}

fn encode_snapshot(catalog: &Catalog) -> serde_json::Result<Vec<u8>> {
    match catalog.format() {
        PLAIN_FORMAT => serde_json::to_vec(catalog),
        format => serde_json::to_vec(&Wrapped { format, catalog }),
    }
}

fn decode_snapshot(bytes: &[u8]) -> Option<Catalog> {
    let catalog = match serde_json::from_slice::<Wrapped<Catalog>>(bytes) {
        Ok(wrapped) => (wrapped.format <= FORMAT).then_some(wrapped.catalog),
        Err(_) => serde_json::from_slice(bytes).ok(),
    };
    catalog.filter(|catalog: &Catalog| catalog.files().all(|file| log::is_plain(&file.path)))
}

/// Whether a file whose name ends in `-<digest>.<ending>` has that digest.
pub(crate) fn is_named_after(path: &str, bytes: &[u8]) -> bool {
    let stem = path.rsplit('/').next().unwrap_or(path);
    let stem = stem.split('.').next().unwrap_or(stem);
    let digest = stem.rsplit('-').next().unwrap_or(stem);
    digest.len() == 32 && sha256_hex(bytes).starts_with(digest)
}

/// Types that were listed in the same places, and how that went.
#[derive(Serialize, Deserialize)]
struct Listing {
    types: Vec<String>,
    places: Vec<Listed>,
}

#[derive(Serialize, Deserialize)]
struct Listed {
    outcome: Outcome,
    places: Vec<String>,
}

/// The file of a coverage; that of a listing which can be made in only one way is just its listings.
#[derive(Serialize, Deserialize)]
struct Based {
    basis: String,
    listings: Vec<Listing>,
}

fn encode_coverage(coverage: &Coverage) -> Bytes {
    let listing = |(places, types): (&Places, Vec<&str>)| {
        let mut by_outcome: BTreeMap<&Outcome, Vec<String>> = BTreeMap::new();
        for (place, outcome) in places {
            by_outcome.entry(outcome).or_default().push(place.clone());
        }
        let listed = |(outcome, places): (&Outcome, Vec<String>)| Listed { outcome: outcome.clone(), places };
        Listing {
            types: types.into_iter().map(ToOwned::to_owned).collect(),
            places: by_outcome.into_iter().map(listed).collect(),
        }
    };
    let listings: Vec<Listing> = coverage.groups().into_iter().map(listing).collect();
    let text = match coverage.basis() {
        None => serde_json::to_vec(&listings),
        Some(basis) => serde_json::to_vec(&Based { basis: basis.to_owned(), listings }),
    };
    let text = text.expect("strings and lists of them can be written as JSON");
    zstd::bulk::compress(&text, 9).expect("compressing memory to memory does not fail").into()
}

pub(crate) fn decode_coverage(path: &str, name: &str, bytes: &[u8]) -> Result<Coverage, StoreError> {
    const MOST: usize = 1 << 30;
    if !sha256_hex(bytes).starts_with(name) {
        return Err(StoreError::damaged(path, "it does not add up to its name"));
    }
    let text = zstd::stream::decode_all(bytes).map_err(|error| StoreError::damaged(path, error))?;
    if text.len() > MOST {
        return Err(StoreError::damaged(path, "it unpacks to more than a gigabyte"));
    }
    let read = match text.first() {
        Some(b'{') => serde_json::from_slice::<Based>(&text).map(|based| (based.listings, Some(based.basis))),
        _ => serde_json::from_slice(&text).map(|listings| (listings, None)),
    };
    let (listings, basis): (Vec<Listing>, _) = read.map_err(|error| StoreError::damaged(path, error))?;
    let mut coverage = Coverage::new().on_basis(basis);
    for Listing { types, places } in listings {
        let one = |listed: Listed| {
            let outcome = listed.outcome;
            listed.places.into_iter().map(move |place| (place, outcome.clone()))
        };
        coverage.record_group(types, places.into_iter().flat_map(one).collect());
    }
    Ok(coverage)
}

/// Differs from call to call and from process to process; never part of a result.
pub(crate) fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// Sums up the keys and contents of a version, whatever their order; kept up change by change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StateDigest([u64; 4]);

impl StateDigest {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lanes = [0; 4];
        if text.len() != 64 {
            return None;
        }
        for (at, lane) in lanes.iter_mut().enumerate() {
            *lane = u64::from_str_radix(text.get(at * 16..at * 16 + 16)?, 16).ok()?;
        }
        Some(Self(lanes))
    }

    pub(crate) fn add(&mut self, key: &ResourceKey, content: driftline_core::ContentId) {
        let row = row_digest(key, content);
        self.0.iter_mut().zip(row).for_each(|(lane, row)| *lane = lane.wrapping_add(row));
    }

    pub(crate) fn remove(&mut self, key: &ResourceKey, content: driftline_core::ContentId) {
        let row = row_digest(key, content);
        self.0.iter_mut().zip(row).for_each(|(lane, row)| *lane = lane.wrapping_sub(row));
    }
}

impl std::fmt::Display for StateDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|lane| write!(f, "{lane:016x}"))
    }
}

fn row_digest(key: &ResourceKey, content: driftline_core::ContentId) -> [u64; 4] {
    use sha2::{Digest, Sha256};
    let mut hasher = Sha256::new_with_prefix(b"driftline/row/v1\0");
    for part in [key.kind.as_bytes(), key.place.as_str().as_bytes(), key.id.as_bytes()] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.update(content.0);
    let digest = hasher.finalize();
    let mut lanes = [0; 4];
    for (lane, bytes) in lanes.iter_mut().zip(digest.as_chunks::<8>().0) {
        *lane = u64::from_be_bytes(*bytes);
    }
    lanes
}
