//! What a version holds: for every key, its content and where its image lies.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use driftline_core::{ContentId, KeyRef, StreamId};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::catalog::Catalog;
use crate::error::StoreError;
use crate::segment::{KeyColumns, Segment};
use crate::store::{Store, random};

/// A key's 128-bit hash under a seed of this process: no one can prepare two keys that collide, and by chance
/// none will, so it stands for the key.
pub(crate) type KeyHash = u128;

/// Hashes that are already random need no further hashing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only u128 keys are hashed");
    }

    #[expect(clippy::cast_possible_truncation, reason = "half of a random number is random")]
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

pub(crate) type ByKey<T> = HashMap<KeyHash, T, BuildHasherDefault<Identity>>;

#[derive(Clone, Debug)]
pub(crate) struct KeyHasher {
    seed: u64,
    buffer: Vec<u8>,
}

impl KeyHasher {
    pub(crate) fn new() -> Self {
        Self { seed: random(), buffer: Vec::new() }
    }

    pub(crate) fn hash(&mut self, key: KeyRef<'_>) -> KeyHash {
        self.hash_parts(key.kind.as_bytes(), key.place.as_bytes(), key.id.as_bytes())
    }

    pub(crate) fn hash_columns(&mut self, key: &KeyColumns) -> KeyHash {
        self.hash_parts(key.kind.data(), key.place.data(), key.id.data())
    }

    fn hash_parts(&mut self, kind: &[u8], place: &[u8], id: &[u8]) -> KeyHash {
        self.buffer.clear();
        for part in [kind, place, id] {
            self.buffer.extend_from_slice(part);
            self.buffer.push(0);
        }
        xxh3_128_with_seed(&self.buffer, self.seed)
    }
}

/// One resource of a version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub content: ContentId,
    /// Which of the state's files holds its image, and in which row.
    pub file: u32,
    pub row: u32,
    /// The position at which it came in the observation being committed; 0 until then.
    pub met: u32,
    pub seen: bool,
}

/// All resources of a version, by key, without their images.
#[derive(Debug)]
pub(crate) struct State {
    pub slots: ByKey<Slot>,
    /// The full image first, then the change files after it.
    pub files: Vec<Segment>,
}

impl Store {
    /// Loads the keys of a version. An empty state for a stream without versions.
    pub(crate) fn state(
        &self,
        catalog: &Catalog,
        stream: &StreamId,
        version: u64,
        hasher: &mut KeyHasher,
    ) -> Result<State, StoreError> {
        let found = catalog.version(stream, version)?;
        let (_, base, changes) = catalog
            .stream(stream)?
            .chain(version)
            .ok_or_else(|| StoreError::damaged(stream.to_string(), "no full image starts its versions"))?;
        let capacity = usize::try_from(found.rows).unwrap_or(0);
        let mut slots = ByKey::with_capacity_and_hasher(capacity + capacity / 64, BuildHasherDefault::default());
        let mut files = vec![self.read_parts(base)?];
        files[0].keys(|row, key, content, seen| {
            let content = content.ok_or_else(|| StoreError::damaged(base.path.as_str(), "a full image has a gap"))?;
            slots.insert(hasher.hash_columns(key), Slot { content, file: 0, row, met: 0, seen });
            Ok(())
        })?;
        for delta in changes.into_iter().filter_map(|version| version.delta.as_ref()) {
            let segment = self.read_whole(delta)?;
            let file = u32::try_from(files.len()).expect("a chain has few files");
            segment.keys(|row, key, content, seen| {
                let hash = hasher.hash_columns(key);
                match content {
                    None => {
                        slots.remove(&hash);
                    }
                    Some(content) => match slots.get_mut(&hash) {
                        // Only the sighting changed: its image stays where it was.
                        Some(slot) if slot.content == content => slot.seen = seen,
                        Some(slot) => *slot = Slot { content, file, row, met: 0, seen },
                        None => {
                            slots.insert(hash, Slot { content, file, row, met: 0, seen });
                        }
                    },
                }
                Ok(())
            })?;
            files.push(segment);
        }
        Ok(State { slots, files })
    }
}

impl State {
    /// Keys and images of the given places (file, row), in the order given.
    pub(crate) fn fetch(
        &self,
        places: &[(u32, u32)],
        images: bool,
    ) -> Result<Vec<(KeyColumns, Option<Box<str>>)>, StoreError> {
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_unstable_by_key(|&at| places[at]);
        let mut out: Vec<Option<(KeyColumns, Option<Box<str>>)>> = (0..places.len()).map(|_| None).collect();
        for group in order.chunk_by(|&a, &b| places[a].0 == places[b].0) {
            let file = &self.files[places[group[0]].0 as usize];
            let rows: Vec<u32> = group.iter().map(|&at| places[at].1).collect();
            let found = file.pick(&rows, images)?;
            if found.len() != rows.len() {
                return Err(StoreError::damaged(file.path(), "it has fewer rows than it had"));
            }
            for (&at, row) in group.iter().zip(found) {
                if images && row.1.is_none() {
                    return Err(StoreError::damaged(file.path(), "a row has no image"));
                }
                out[at] = Some(row);
            }
        }
        Ok(out.into_iter().flatten().collect())
    }
}
