//! What a version holds: for every key, its content and where its image lies.
//!
//! Read from the key columns of the change files, or from a derived index of them. The index also knows by which
//! line of input each resource came: the same bytes mean the same resource, so a line that came before needs no
//! parsing.

use std::cell::OnceCell;

use driftline_core::{ContentId, KeyRef, StreamId};
use sha2::{Digest, Sha256};

use crate::catalog::{Catalog, Stream};
use crate::error::StoreError;
use crate::log::FileRef;
use crate::segment::{KeyColumns, Segment};
use crate::slots::{Slot, Slots};
use crate::store::Store;

/// Half a SHA-256 stands for a key or a line: nobody can make two that collide.
pub(crate) type Hash = u128;

/// A line that is not known; no SHA-256 will ever be this.
pub(crate) const NO_LINE: Hash = 0;

pub(crate) fn half(digest: &[u8]) -> Hash {
    u128::from_be_bytes(digest[..16].try_into().expect("a SHA-256 has 32 bytes"))
}

pub(crate) fn hash_key(key: KeyRef<'_>) -> Hash {
    hash_parts(key.kind.as_bytes(), key.place.as_bytes(), key.id.as_bytes())
}

fn hash_parts(kind: &[u8], place: &[u8], id: &[u8]) -> Hash {
    // With their lengths, so that no part can end in the next one.
    let mut hasher = Sha256::new();
    for part in [kind, place, id] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    half(&hasher.finalize())
}

pub(crate) fn hash_line(line: &[u8]) -> Hash {
    half(&Sha256::digest(line))
}

/// All resources of a version, in order of their keys' hashes, without their images.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub slots: Slots,
    /// Where the keys with these leading bits begin.
    key_starts: Vec<u32>,
    key_shift: u32,
    /// Open addressing over the lines' hashes: half a tag, half slot number + 1; or 0.
    line_table: Vec<u64>,
    chain: Vec<ChainFile>,
}

/// A file of the chain: the full image first, then the changes after it. Opened when it is first needed.
#[derive(Debug)]
pub(crate) struct ChainFile {
    pub file: FileRef,
    first_row: u32,
    open: OnceCell<Segment>,
}

impl State {
    fn new(slots: Slots, chain: Vec<ChainFile>) -> Self {
        let mut state = Self { slots, chain, ..Self::default() };
        state.index();
        state
    }

    /// Builds the look-up tables.
    fn index(&mut self) {
        let count = self.slots.len();
        let bits = count.next_power_of_two().trailing_zeros().clamp(1, 28);
        self.key_shift = 128 - bits;
        self.key_starts = vec![0; (1 << bits) + 1];
        for key in self.slots.keys() {
            self.key_starts[leading(key, self.key_shift) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut self.key_starts {
            sum += *start;
            *start = sum;
        }
        if self.slots.lines().any(|line| line != NO_LINE) {
            let size = (count * 2).next_power_of_two();
            self.line_table = vec![0; size];
            for (at, line) in self.slots.lines().enumerate().filter(|(_, line)| *line != NO_LINE) {
                let mut place = low(line) & (size - 1);
                while self.line_table[place] != 0 {
                    place = (place + 1) & (size - 1);
                }
                self.line_table[place] = tag(line) | (at as u64 + 1);
            }
        }
    }

    pub(crate) fn has_lines(&self) -> bool {
        !self.line_table.is_empty()
    }

    /// Which slots these lines are of. Looked up together, so that the memory is asked for many places at once.
    pub(crate) fn find_lines(&self, lines: &[Hash], found: &mut Vec<Option<usize>>) {
        let mask = self.line_table.len() - 1;
        found.clear();
        found.extend(lines.iter().map(|&line| {
            let mut place = low(line) & mask;
            loop {
                match self.line_table[place] {
                    0 => return None,
                    entry if entry & TAG == tag(line) => return usize::try_from((entry & !TAG) - 1).ok(),
                    _ => place = (place + 1) & mask,
                }
            }
        }));
        for (found, &line) in found.iter_mut().zip(lines) {
            // Two lines with one tag are rare enough to be treated as not known.
            if found.is_some_and(|at| self.slots.line(at) != line) || line == NO_LINE {
                *found = None;
            }
        }
    }

    pub(crate) fn find_key(&self, key: Hash) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let bucket = leading(key, self.key_shift);
        let (start, end) = (self.key_starts[bucket] as usize, self.key_starts[bucket + 1] as usize);
        (start..end).find(|&at| self.slots.key(at) == key)
    }

    /// Whether a chain is the one this was read from, and then a file of changes if there is one.
    pub(crate) fn leads_to(&self, chain: &[ChainFile], delta: Option<&FileRef>) -> bool {
        let same = |a: &FileRef, b: &FileRef| a.path == b.path && a.part == b.part;
        let known = self.chain.iter().map(|chained| &chained.file).chain(delta);
        chain.len() == self.chain.len() + usize::from(delta.is_some())
            && known.zip(chain).all(|(known, chained)| same(known, &chained.file))
    }

    /// How many rows the files of the chain have together.
    pub(crate) fn rows(&self) -> u32 {
        self.chain.last().map_or(0, |last| last.first_row + rows_of(&last.file))
    }

    /// The keys of the given rows, in the order given.
    pub(crate) fn fetch_keys(&self, store: &Store, rows: &[u32]) -> Result<Vec<KeyColumns>, StoreError> {
        self.fetch(store, rows, Segment::pick_keys)
    }

    /// The images of the given rows, in the order given.
    pub(crate) fn fetch_images(&self, store: &Store, rows: &[u32]) -> Result<Vec<Box<str>>, StoreError> {
        self.fetch(store, rows, Segment::pick_images)
    }

    fn fetch<T>(
        &self,
        store: &Store,
        rows: &[u32],
        pick: impl Fn(&Segment, &[u32]) -> Result<Vec<T>, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by_key(|&at| rows[at]);
        let file_of = |row: u32| self.chain.partition_point(|file| file.first_row <= row) - 1;
        let mut out: Vec<Option<T>> = (0..rows.len()).map(|_| None).collect();
        for group in order.chunk_by(|&a, &b| file_of(rows[a]) == file_of(rows[b])) {
            let chained = &self.chain[file_of(rows[group[0]])];
            let segment = chained.segment(store)?;
            let inside: Vec<u32> = group.iter().map(|&at| rows[at] - chained.first_row).collect();
            let found = pick(segment, &inside)?;
            if found.len() != inside.len() {
                return Err(StoreError::damaged(segment.path(), "it has fewer rows than it had"));
            }
            for (&at, row) in group.iter().zip(found) {
                out[at] = Some(row);
            }
        }
        Ok(out.into_iter().flatten().collect())
    }
}

/// The part of a table entry that is taken from the hash; the rest is the slot's number + 1.
const TAG: u64 = 0xffff_ffff_0000_0000;

fn tag(hash: Hash) -> u64 {
    (hash >> 64) as u64 & TAG
}

fn leading(hash: Hash, shift: u32) -> usize {
    (hash >> shift) as usize
}

fn low(hash: Hash) -> usize {
    hash as usize
}

pub(crate) fn rows_of(file: &FileRef) -> u32 {
    u32::try_from(file.rows).unwrap_or(u32::MAX)
}

impl ChainFile {
    fn segment(&self, store: &Store) -> Result<&Segment, StoreError> {
        if let Some(open) = self.open.get() {
            return Ok(open);
        }
        let segment = store.read_parts(&self.file)?;
        Ok(self.open.get_or_init(|| segment))
    }

    /// What each row says of its resource, and whether that is there after it.
    fn rows(&self, store: &Store) -> Result<Vec<(Slot, bool)>, StoreError> {
        let mut rows = Vec::with_capacity(rows_of(&self.file) as usize);
        self.segment(store)?.keys(|row, key, content, seen| {
            let slot = Slot {
                key: hash_parts(key.kind.data(), key.place.data(), key.id.data()),
                content: content.unwrap_or(ContentId([0; 16])),
                line: NO_LINE,
                row: self.first_row + row,
                seen,
            };
            rows.push((slot, content.is_some()));
            Ok(())
        })?;
        Ok(rows)
    }
}

pub(crate) fn chain_files(stream: &Stream, id: &StreamId, version: u64) -> Result<Vec<ChainFile>, StoreError> {
    let (_, base, changes) = stream
        .chain(version)
        .ok_or_else(|| StoreError::damaged(id.to_string(), "no full image starts its versions"))?;
    let deltas = changes.into_iter().filter_map(|version| version.delta.as_ref());
    let mut first_row = 0u32;
    let mut files = Vec::new();
    for file in std::iter::once(base).chain(deltas) {
        files.push(ChainFile { file: file.clone(), first_row, open: OnceCell::new() });
        first_row = first_row.checked_add(rows_of(file)).ok_or(StoreError::TooMany)?;
    }
    Ok(files)
}

impl Store {
    /// Loads the keys of a version: from the index where there is one for this reader, else from the files.
    pub(crate) fn state(
        &self,
        catalog: &Catalog,
        stream: &StreamId,
        version: u64,
        reader: Option<&str>,
    ) -> Result<State, StoreError> {
        let chain = chain_files(catalog.stream(stream)?, stream, version)?;
        if let Some(reader) = reader
            && let Some((mut slots, covered)) = self.read_index(stream, &chain, reader)?
        {
            for chained in &chain[covered..] {
                let rows = chained.rows(self)?;
                slots.follow(&rows);
            }
            return Ok(State::new(slots, chain));
        }
        // Later rows replace earlier ones of the same key; the last one says whether it is still there.
        let mut rows: Vec<(Slot, bool)> = Vec::new();
        for chained in &chain {
            rows.extend(chained.rows(self)?);
        }
        rows.sort_unstable_by_key(|(slot, _)| (slot.key, slot.row));
        let mut slots: Vec<Slot> = Vec::with_capacity(rows.len());
        for group in rows.chunk_by(|a, b| a.0.key == b.0.key) {
            let (last, present) = group[group.len() - 1];
            if !present {
                continue;
            }
            // Rows that only saw it again have no image: that is in the last row before with this content.
            let image = group
                .iter()
                .rev()
                .take_while(|(slot, present)| *present && slot.content == last.content)
                .last()
                .map_or(last.row, |(slot, _)| slot.row);
            slots.push(Slot { row: image, ..last });
        }
        drop(rows);
        Ok(State::new(Slots::new(slots), chain))
    }
}
