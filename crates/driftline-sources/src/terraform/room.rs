//! How much may come of a document.
//!
//! Some names are written once and hold for many: that of a resource with a thousand instances, that of a member above
//! a thousand others. Written out for each of them, they could make a small file need all the memory there is.

/// What is written out may be so many times as long as what it is of, and a little more.
const TIMES: usize = 16;
const APART: usize = 4 << 10;

/// What a name needs besides its letters.
const NAME: usize = size_of::<String>();

#[derive(Debug)]
pub(crate) struct Room {
    left: usize,
    is_short: bool,
}

impl Room {
    /// As much as there is for what comes of so many bytes.
    pub(crate) fn beside(bytes: usize) -> Self {
        Self { left: bytes.saturating_mul(TIMES).saturating_add(APART), is_short: false }
    }

    /// Whether there still is room for these names. From the first that does not fit on, there is none.
    pub(super) fn take<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> bool {
        let needed: usize = names.into_iter().map(|name| name.len() + NAME).sum();
        self.is_short |= needed > self.left;
        self.left = self.left.saturating_sub(needed);
        !self.is_short
    }

    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_fit_once_does_not_fit_later() {
        let mut room = Room::beside(10);
        assert!(room.take(["short", "names"]));
        assert!(!room.take([&*"x".repeat(APART + 10 * TIMES)]));
        assert!(!room.take(["short"]) && room.is_short());
    }
}
