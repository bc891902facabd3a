//! The resources of a version without their images, in the very bytes of the index that is kept of them.
//!
//! A large estate has tens of millions of them: they are read into one piece of memory, changed in place and written
//! from it, so that there is never a second copy.

use bytes::Bytes;
use driftline_core::ContentId;

use crate::state::Hash;

/// Per slot: key, content and line, 16 bytes each, then row and sighting in 5.
const SLOT_BYTES: usize = 16 * 3 + 5;
const CONTENT: usize = 16;
const LINE: usize = 32;
const ROW: usize = 48;
const SEEN: usize = 52;

type Packed = [u8; SLOT_BYTES];

/// One resource of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub key: Hash,
    pub content: ContentId,
    pub line: Hash,
    /// The row of its image, counted through all files of the chain.
    pub row: u32,
    pub seen: bool,
}

impl Slot {
    fn pack(&self) -> Packed {
        let mut packed = [0; SLOT_BYTES];
        packed[..CONTENT].copy_from_slice(&self.key.to_be_bytes());
        packed[CONTENT..LINE].copy_from_slice(&self.content.0);
        packed[LINE..ROW].copy_from_slice(&self.line.to_be_bytes());
        packed[ROW..SEEN].copy_from_slice(&self.row.to_be_bytes());
        packed[SEEN] = u8::from(self.seen);
        packed
    }
}

fn part(packed: &Packed, at: usize) -> [u8; 16] {
    packed[at..at + 16].try_into().expect("16 bytes")
}

fn key(packed: &Packed) -> Hash {
    Hash::from_be_bytes(part(packed, 0))
}

/// All resources of a version, in order of their keys' hashes.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    bytes: Vec<u8>,
    /// The position at which each came in the observation being committed; 0 until then.
    met: Vec<u32>,
}

impl Slots {
    pub(crate) fn new(mut slots: Vec<Slot>) -> Self {
        slots.sort_unstable_by_key(|slot| slot.key);
        let mut bytes = Vec::with_capacity(slots.len() * SLOT_BYTES);
        for slot in &slots {
            bytes.extend_from_slice(&slot.pack());
        }
        Self { bytes, met: vec![0; slots.len()] }
    }

    /// Room for an index of this size, and for some resources to come, so that it need not be moved for them.
    pub(crate) fn room(size: u64) -> Vec<u8> {
        let size = usize::try_from(size).unwrap_or(0);
        Vec::with_capacity(size + size / 64 + 64 * SLOT_BYTES)
    }

    /// What [`Slots::into_bytes`] gave. `None` if these bytes cannot be that.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let (slots, rest) = bytes.as_chunks::<SLOT_BYTES>();
        // Looked up by halving and by leading bits: another order would find nothing and say nothing.
        if !rest.is_empty() || !slots.is_sorted_by(|a, b| a[..CONTENT] < b[..CONTENT]) {
            return None;
        }
        let met = vec![0; slots.len()];
        Some(Self { bytes, met })
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }

    pub(crate) fn len(&self) -> usize {
        self.met.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.met.is_empty()
    }

    fn all(&self) -> &[Packed] {
        self.bytes.as_chunks().0
    }

    fn at_mut(&mut self, at: usize) -> &mut Packed {
        &mut self.bytes.as_chunks_mut().0[at]
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Hash> {
        self.all().iter().map(key)
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = Hash> {
        self.all().iter().map(|packed| Hash::from_be_bytes(part(packed, LINE)))
    }

    pub(crate) fn key(&self, at: usize) -> Hash {
        key(&self.all()[at])
    }

    pub(crate) fn content(&self, at: usize) -> ContentId {
        ContentId(part(&self.all()[at], CONTENT))
    }

    pub(crate) fn line(&self, at: usize) -> Hash {
        Hash::from_be_bytes(part(&self.all()[at], LINE))
    }

    pub(crate) fn row(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.all()[at][ROW..SEEN].try_into().expect("4 bytes"))
    }

    pub(crate) fn seen(&self, at: usize) -> bool {
        self.all()[at][SEEN] != 0
    }

    pub(crate) fn met(&self, at: usize) -> u32 {
        self.met[at]
    }

    /// Notes the position at which a resource came, and answers the one noted before.
    pub(crate) fn meet(&mut self, at: usize, position: u32) -> u32 {
        std::mem::replace(&mut self.met[at], position)
    }

    pub(crate) fn set_line(&mut self, at: usize, line: Hash) {
        self.at_mut(at)[LINE..ROW].copy_from_slice(&line.to_be_bytes());
    }

    fn find(&self, wanted: Hash) -> Option<usize> {
        self.all().binary_search_by_key(&wanted, key).ok()
    }

    /// Takes in a file of changes: what each row says of its resource, and whether that is there after it.
    pub(crate) fn follow(&mut self, rows: &[(Slot, bool)]) {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        for &(slot, present) in rows {
            match (self.find(slot.key), present) {
                (Some(at), false) => gone.push(at),
                // A row that only saw it again, or not, has no image.
                (Some(at), true) if self.content(at) == slot.content => self.at_mut(at)[SEEN] = u8::from(slot.seen),
                (Some(at), true) => *self.at_mut(at) = slot.pack(),
                (None, true) => new.push(slot),
                (None, false) => {}
            }
        }
        self.replace(gone, new);
    }

    pub(crate) fn set_image(&mut self, at: usize, content: ContentId, row: u32) {
        let packed = self.at_mut(at);
        packed[CONTENT..LINE].copy_from_slice(&content.0);
        packed[ROW..SEEN].copy_from_slice(&row.to_be_bytes());
    }

    /// What did not come is not seen.
    pub(crate) fn see_what_was_met(&mut self) {
        for (packed, met) in self.bytes.as_chunks_mut::<SLOT_BYTES>().0.iter_mut().zip(&self.met) {
            packed[SEEN] = u8::from(*met != 0);
        }
    }

    pub(crate) fn see_all(&mut self) {
        for packed in self.bytes.as_chunks_mut::<SLOT_BYTES>().0 {
            packed[SEEN] = 1;
        }
    }

    /// Takes out the slots at these places and puts others in, none of whose keys are there. Nothing is met after it.
    pub(crate) fn replace(&mut self, mut gone: Vec<usize>, mut new: Vec<Slot>) {
        self.met = Vec::new();
        gone.sort_unstable();
        let (slots, _) = self.bytes.as_chunks_mut::<SLOT_BYTES>();
        let mut kept = slots.len();
        if let Some(&first) = gone.first() {
            let mut gone = gone.iter().copied().peekable();
            kept = first;
            for at in first..slots.len() {
                if gone.next_if_eq(&at).is_none() {
                    slots[kept] = slots[at];
                    kept += 1;
                }
            }
        }
        new.sort_unstable_by_key(|slot| slot.key);
        let count = kept + new.len();
        self.bytes.resize(count * SLOT_BYTES, 0);
        // Merged from the end, where the room is.
        let (slots, _) = self.bytes.as_chunks_mut::<SLOT_BYTES>();
        let (mut old, mut to) = (kept, count);
        for slot in new.iter().rev() {
            while old > 0 && key(&slots[old - 1]) > slot.key {
                (old, to) = (old - 1, to - 1);
                slots[to] = slots[old];
            }
            to -= 1;
            slots[to] = slot.pack();
        }
        self.met = vec![0; count];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn slot(key: u128, tag: u8) -> Slot {
        Slot {
            key,
            content: ContentId([tag; 16]),
            line: u128::from(tag),
            row: u32::from(tag),
            seen: tag.is_multiple_of(2),
        }
    }

    fn unpack(slots: &Slots) -> Vec<Slot> {
        let one = |at| Slot {
            key: slots.key(at),
            content: slots.content(at),
            line: slots.line(at),
            row: slots.row(at),
            seen: slots.seen(at),
        };
        (0..slots.len()).map(one).collect()
    }

    proptest! {
        /// Taking out and putting in gives what a map gives, in order, and survives being written.
        #[test]
        fn replacing_is_what_a_map_does(
            old in prop::collection::btree_map(0u128..60, any::<u8>(), 0..40),
            leave in prop::collection::vec(any::<bool>(), 40),
            new in prop::collection::btree_map(0u128..60, any::<u8>(), 0..40),
        ) {
            let mut slots = Slots::new(old.iter().rev().map(|(&key, &tag)| slot(key, tag)).collect());
            let gone: Vec<usize> = (0..old.len()).filter(|&at| leave[at]).rev().collect();
            let mut expected: BTreeMap<u128, u8> =
                old.iter().zip(&leave).filter(|(_, gone)| !**gone).map(|((&key, &tag), _)| (key, tag)).collect();
            let added: Vec<(u128, u8)> =
                new.into_iter().filter(|(key, _)| !expected.contains_key(key)).collect();
            expected.extend(added.iter().copied());
            slots.replace(gone, added.iter().rev().map(|&(key, tag)| slot(key, tag)).collect());
            let expected: Vec<Slot> = expected.into_iter().map(|(key, tag)| slot(key, tag)).collect();
            prop_assert_eq!(unpack(&slots), expected.clone());
            prop_assert_eq!(slots.len(), expected.len());
            let again = Slots::from_bytes(slots.into_bytes().to_vec());
            prop_assert_eq!(again.map(|slots| unpack(&slots)), Some(expected));
        }
    }

    #[test]
    fn bytes_that_are_no_index_are_refused() {
        let slots = Slots::new(vec![slot(1, 1), slot(2, 2)]);
        let bytes = slots.into_bytes().to_vec();
        assert!(Slots::from_bytes(bytes[..bytes.len() - 1].to_vec()).is_none(), "cut");
        let swapped = [&bytes[SLOT_BYTES..], &bytes[..SLOT_BYTES]].concat();
        assert!(Slots::from_bytes(swapped).is_none(), "out of order");
        assert!(Slots::from_bytes([&bytes[..SLOT_BYTES], &bytes[..SLOT_BYTES]].concat()).is_none(), "twice");
    }
}
