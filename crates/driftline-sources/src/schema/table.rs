//! The embedded table: two zstd frames, of which the second is read only when facts are asked for.
//!
//! The first has a line on where the facts are from and a line per type with its name and the length of its record;
//! the second has the records, one after the other. `zstdcat` prints both.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use thiserror::Error;
use zstd::zstd_safe;

use super::{Facts, RecordError, record};

/// What `cargo xtask schemas` made.
pub(super) static BYTES: &[u8] = include_bytes!("../../data/schemas.zst");

/// Says which form this is, so that another one is not misread.
const HEADING: &str = "driftline schemas 1: ";

/// As much as zstd can: the table is made once and read often.
const LEVEL: i32 = 22;

static EMBEDDED: LazyLock<Table<'static>> =
    LazyLock::new(|| Table::new(BYTES).expect("a test reads the whole embedded table"));

pub(super) fn embedded() -> &'static Table<'static> {
    &EMBEDDED
}

#[derive(Debug, Error)]
pub enum TableError {
    #[error("the table of schemas is not one: {0}")]
    Form(&'static str),
    #[error("the table of schemas cannot be unpacked")]
    Packing(#[from] std::io::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A table whose records are unpacked with the first question, and each read with the first question about it.
#[derive(Debug)]
pub struct Table<'b> {
    index: String,
    origin: Range<usize>,
    /// In the order of the names, capitals aside.
    entries: Vec<Entry>,
    packed: &'b [u8],
    records: OnceLock<String>,
    /// Which entry has a name, as it is written; made with the first question.
    numbers: OnceLock<HashMap<String, usize>>,
}

/// Where the name of a type is in the index, and where its record is among the records.
#[derive(Debug)]
struct Entry {
    name: Range<usize>,
    record: Range<usize>,
    // Boxed: most types are never asked for, and the facts of 1,884 types take a megabyte even when there are none.
    facts: OnceLock<Box<Facts>>,
}

impl<'b> Table<'b> {
    pub fn new(bytes: &'b [u8]) -> Result<Self, TableError> {
        let end = zstd_safe::find_frame_compressed_size(bytes).map_err(|_| TableError::Form("it has no index"))?;
        let (index, packed) = bytes.split_at_checked(end).ok_or(TableError::Form("its index is cut short"))?;
        let index = unpack(index)?;
        let (heading, mut rest) = index.split_once('\n').unwrap_or((&index, ""));
        if !heading.starts_with(HEADING) {
            return Err(TableError::Form("it begins with another line"));
        }
        let (origin, mut at) = (HEADING.len()..heading.len(), heading.len() + 1);
        let mut entries: Vec<Entry> = Vec::with_capacity(2_000);
        let (mut start, mut last) = (0, "");
        while let Some((line, after)) = rest.split_once('\n') {
            let entry = line.split_once(' ').and_then(|(name, length)| Some((name, length.parse::<usize>().ok()?)));
            let (name, length) = entry.ok_or(TableError::Form("a line of its index is not a name and a length"))?;
            if compare_names(last, name) != Ordering::Less {
                return Err(TableError::Form("its types are not in order"));
            }
            let (name_at, record) = (at..at + name.len(), start..start + length);
            start = record.end;
            entries.push(Entry { name: name_at, record, facts: OnceLock::new() });
            last = name;
            at += line.len() + 1;
            rest = after;
        }
        Ok(Self { origin, entries, packed, records: OnceLock::new(), numbers: OnceLock::new(), index })
    }

    pub fn origin(&self) -> &str {
        &self.index[self.origin.clone()]
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| self.name_of(entry))
    }

    fn name_of(&self, entry: &Entry) -> &str {
        &self.index[entry.name.clone()]
    }

    fn find(&self, kind: &str) -> Option<&Entry> {
        let numbers = self.numbers.get_or_init(|| {
            self.entries.iter().enumerate().map(|(at, entry)| (self.name_of(entry).to_owned(), at)).collect()
        });
        let at = match numbers.get(kind) {
            Some(at) => *at,
            None => self.entries.binary_search_by(|entry| compare_names(self.name_of(entry), kind)).ok()?,
        };
        Some(&self.entries[at])
    }

    /// The type with its own capitals.
    pub fn name(&self, kind: &str) -> Option<&str> {
        self.find(kind).map(|entry| self.name_of(entry))
    }

    /// Only of a table that [`Table::check`] finds sound.
    pub(super) fn facts(&self, kind: &str) -> Option<&Facts> {
        let entry = self.find(kind)?;
        Some(entry.facts.get_or_init(|| {
            let facts = self.record(entry).and_then(|record| Ok(record::parse(self.name_of(entry), record)?));
            Box::new(facts.expect("a test reads the whole embedded table"))
        }))
    }

    /// The records as text, unpacked when first asked for.
    fn records(&self) -> Result<&str, TableError> {
        if let Some(records) = self.records.get() {
            return Ok(records);
        }
        let records = unpack(self.packed)?;
        Ok(self.records.get_or_init(|| records))
    }

    fn record(&self, entry: &Entry) -> Result<&str, TableError> {
        self.records()?.get(entry.record.clone()).ok_or(TableError::Form("its records are cut short"))
    }

    /// Reads everything, so that nothing in it can fail later. Gives all of it as text, type by type.
    pub fn check(&self) -> Result<Vec<(&str, &str)>, TableError> {
        let length = self.records()?.len();
        if self.entries.last().is_none_or(|entry| entry.record.end != length) {
            return Err(TableError::Form("its index and its records are of different lengths"));
        }
        let mut all = Vec::new();
        for entry in &self.entries {
            let (name, record) = (self.name_of(entry), self.record(entry)?);
            record::parse(name, record)?;
            all.push((name, record));
        }
        Ok(all)
    }
}

/// The bytes of a table. The same facts give the same bytes, in whatever order they come.
pub fn pack(origin: &str, facts: &[Facts]) -> Result<Vec<u8>, TableError> {
    let mut records: Vec<(&str, String)> = facts.iter().map(|it| (it.name.as_str(), record::write(it))).collect();
    records.sort_by(|(a, _), (b, _)| compare_names(a, b));
    let mut index = format!("{HEADING}{origin}\n");
    let mut text = String::new();
    for (name, record) in &records {
        index.push_str(&format!("{name} {}\n", record.len()));
        text.push_str(record);
    }
    let mut bytes = zstd::bulk::compress(index.as_bytes(), LEVEL)?;
    bytes.extend(zstd::bulk::compress(text.as_bytes(), LEVEL)?);
    Table::new(&bytes)?.check()?;
    Ok(bytes)
}

fn unpack(frame: &[u8]) -> Result<String, TableError> {
    let size = zstd_safe::get_frame_content_size(frame).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok()).ok_or(TableError::Form("a part has no size"))?;
    let text = zstd::bulk::decompress(frame, size)?;
    String::from_utf8(text).map_err(|_| TableError::Form("it is not text"))
}

/// The order of names, capitals aside. Names of types are ASCII.
fn compare_names(a: &str, b: &str) -> Ordering {
    a.bytes().map(|byte| byte.to_ascii_lowercase()).cmp(b.bytes().map(|byte| byte.to_ascii_lowercase()))
}
