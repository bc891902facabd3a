//! A file of the store as Parquet reads it: range by range, each checked.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::check::BLOCK;
use crate::error::StoreError;
use crate::location::Location;
use crate::log::FileRef;

/// How much is asked for beyond a page when the one before it was read just now; doubled every time.
const FIRST_AHEAD: u64 = 256 << 10;
const MOST_AHEAD: u64 = 8 << 20;

/// Reads ranges of a file in the store as Parquet asks for them. Whole blocks are read and checked, so that no
/// damaged byte is ever looked at.
pub(crate) struct Remote {
    location: Location,
    file: FileRef,
    ahead: Mutex<Ahead>,
}

/// What was read last, and how far to read ahead next: in a bucket a request costs more than what it brings.
#[derive(Default)]
struct Ahead {
    start: u64,
    bytes: Bytes,
    more: u64,
}

impl Ahead {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn cut(&self, wanted: &Range<u64>) -> Option<Bytes> {
        let inside = |at: u64| usize::try_from(at - self.start).ok();
        let holds = self.start <= wanted.start && wanted.end <= self.end();
        holds.then(|| Some(self.bytes.slice(inside(wanted.start)?..inside(wanted.end)?))).flatten()
    }

    /// How far to read for a range that is not at hand. One that begins where the last ended, or little after it,
    /// is one of a row.
    fn reach(&mut self, wanted: &Range<u64>, size: u64) -> u64 {
        let follows = (self.start..=self.end() + BLOCK).contains(&wanted.start) && !self.bytes.is_empty();
        self.more = if follows { (self.more * 2).clamp(FIRST_AHEAD, MOST_AHEAD) } else { 0 };
        (wanted.end + self.more).min(size)
    }
}

impl Remote {
    pub(crate) fn new(location: Location, file: FileRef) -> Self {
        Self { location, file, ahead: Mutex::default() }
    }

    fn range(&self, wanted: Range<u64>) -> Result<Bytes, ParquetError> {
        let checked = |range: Range<u64>| match self.location.get_checked(&self.file, range) {
            Ok(bytes) => Ok(bytes),
            // Whoever reads says which file it is.
            Err(StoreError::Damaged { reason, .. }) => Err(ParquetError::General(reason)),
            Err(error) => Err(ParquetError::External(Box::new(error))),
        };
        if !self.location.is_far() {
            return checked(wanted);
        }
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = ahead.cut(&wanted) {
            return Ok(bytes);
        }
        let end = ahead.reach(&wanted, self.file.size).max(wanted.end);
        let bytes = checked(wanted.start..end)?;
        (ahead.start, ahead.bytes) = (wanted.start, bytes);
        ahead.cut(&wanted).ok_or_else(|| ParquetError::General(format!("it ends before byte {}", wanted.end)))
    }
}

impl Length for Remote {
    fn len(&self) -> u64 {
        self.file.size
    }
}

impl ChunkReader for Remote {
    type T = std::io::Cursor<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        // Only page headers are read this way, when a file has no offset index; ours all have one.
        Ok(std::io::Cursor::new(self.range(start..(start + BLOCK).min(self.file.size))?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.range(start..start + length as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ahead: &mut Ahead, wanted: Range<u64>, size: u64) -> u64 {
        let end = ahead.reach(&wanted, size);
        (ahead.start, ahead.bytes) = (wanted.start, vec![0; usize::try_from(end - wanted.start).unwrap_or(0)].into());
        end - wanted.start
    }

    #[test]
    fn only_what_is_read_in_a_row_is_read_ahead() {
        let (size, page) = (1 << 30, 10_000);
        let mut ahead = Ahead::default();
        assert_eq!(read(&mut ahead, size - page..size, size), page, "the end of the file");
        assert_eq!(read(&mut ahead, 5_000_000..5_000_000 + page, size), page, "a page somewhere");
        let next = ahead.end();
        assert_eq!(read(&mut ahead, next..next + page, size), page + FIRST_AHEAD);
        let next = ahead.end() + 100;
        assert_eq!(read(&mut ahead, next..next + page, size), page + 2 * FIRST_AHEAD);
        for _ in 0..20 {
            let next = ahead.end();
            assert!(read(&mut ahead, next..next + page, size) <= page + MOST_AHEAD);
        }
        assert_eq!(read(&mut ahead, 0..page, size), page, "a page somewhere else");
    }

    #[test]
    fn what_is_at_hand_is_cut_from_it() {
        let ahead = Ahead { start: 100, bytes: Bytes::from_static(b"0123456789"), more: 0 };
        assert_eq!(ahead.cut(&(102..105)), Some(Bytes::from_static(b"234")));
        assert_eq!(ahead.cut(&(100..110)), Some(Bytes::from_static(b"0123456789")));
        assert_eq!(ahead.cut(&(99..105)), None);
        assert_eq!(ahead.cut(&(105..111)), None);
    }
}
