//! Numbers that look random and are the same on every machine.

/// `SplitMix64`: one addition and a mix per number, and any seed is a good one.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The numbers that belong to one thing (a record, a version) of one estate.
    pub(crate) fn of(seed: u64, what: u64, which: u64) -> Self {
        Self(mix(mix(seed ^ mix(what)).wrapping_add(which)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Below `bound`, evenly enough for a bench: the bias is under `bound` / 2^64.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.next()) * bound as u128;
        usize::try_from(product >> 64).expect("below `bound`, which is a usize")
    }

    /// Numbers of their own. Taking more or fewer of them moves nothing that is drawn after.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// Moves an even choice of `count` items to the front, in an even order.
    pub(crate) fn shuffle_front<T>(&mut self, items: &mut [T], count: usize) {
        for at in 0..count.min(items.len()) {
            let from = at + self.below(items.len() - at);
            items.swap(at, from);
        }
    }
}

/// One to one on 64 bits, so distinct numbers stay distinct.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// One to one on 32 bits (Wellons' `lowbias32`).
pub(crate) fn mix32(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7FEB_352D);
    x = (x ^ (x >> 15)).wrapping_mul(0x846C_A68B);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..1000).collect();
        Random::of(1, 2, 3).shuffle_front(&mut items, 1000);
        assert_ne!(items, (0..1000).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
    }

    /// Pinned: other numbers mean another estate, and measurements that no longer compare.
    #[test]
    fn the_numbers_never_change() {
        let mut random = Random::of(1, 0, 0);
        assert_eq!([random.below(1000), random.below(1000), random.below(1000)], [255, 88, 290]);
        assert_eq!(mix32(1), 1_753_845_952);
    }
}
