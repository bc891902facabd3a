//! Checksums of files, fine enough to say where a file is damaged.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How much of a file one CRC covers.
pub(crate) const BLOCK: u64 = 64 * 1024;
const BLOCK_SIZE: usize = 64 * 1024;

/// What a file's bytes must add up to: all of it, and each block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksums {
    pub sha256: String,
    /// CRC-32 of each 64 KiB, eight hex digits each.
    pub blocks: String,
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Checksums {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let blocks = bytes.chunks(BLOCK_SIZE).map(|block| format!("{:08x}", crc32fast::hash(block))).collect();
        Self { sha256: sha256_hex(bytes), blocks }
    }

    /// Says what is wrong with these bytes, naming the first bad byte where that can be told.
    pub(crate) fn verify(&self, bytes: &[u8], size: u64) -> Result<(), String> {
        if sha256_hex(bytes) == self.sha256 {
            return Ok(());
        }
        if bytes.len() as u64 != size {
            return Err(format!("it has {} bytes, not {size}", bytes.len()));
        }
        self.verify_blocks(bytes, 0)?;
        Err("its blocks are as recorded but their whole is not: the record itself is damaged".into())
    }

    /// Says what is wrong with some whole blocks of a file, the first of which begins at `start`.
    pub(crate) fn verify_blocks(&self, bytes: &[u8], start: u64) -> Result<(), String> {
        let first = usize::try_from(start / BLOCK).map_err(|error| error.to_string())?;
        for (at, block) in bytes.chunks(BLOCK_SIZE).enumerate() {
            let digits = (first + at) * 8;
            let expected = self.blocks.get(digits..digits + 8).and_then(|hex| u32::from_str_radix(hex, 16).ok());
            let found = crc32fast::hash(block);
            if expected == Some(found) {
                continue;
            }
            let start = (first + at) * BLOCK_SIZE;
            let syndrome = expected.unwrap_or(0) ^ found;
            return Err(match single_byte_error(block.len(), syndrome) {
                Some((offset, flip)) => format!(
                    "the first bad byte is byte {} (0x{:02x}, must be 0x{:02x})",
                    start + offset,
                    block[offset],
                    block[offset] ^ flip
                ),
                None => format!("the first bad byte is between bytes {start} and {}", start + block.len() - 1),
            });
        }
        Ok(())
    }
}

/// Which one byte, changed how, explains the difference between two CRCs of a block.
///
/// A CRC is linear: what a flip in one byte does to it depends only on the flip and on how many bytes follow.
fn single_byte_error(length: usize, syndrome: u32) -> Option<(usize, u8)> {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let table: Vec<u32> = (0..256u32)
        .map(|byte| (0..8).fold(byte, |crc, _| if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 }))
        .collect();
    let mut effects: Vec<u32> = table[1..].to_vec();
    for offset in (0..length).rev() {
        if let Some(at) = effects.iter().position(|effect| *effect == syndrome) {
            return Some((offset, u8::try_from(at + 1).expect("255 flips")));
        }
        for effect in &mut effects {
            *effect = (*effect >> 8) ^ table[(*effect & 0xff) as usize];
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_byte_is_named() {
        let bytes: Vec<u8> = (0..200_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let sums = Checksums::of(&bytes);
        let size = bytes.len() as u64;
        assert_eq!(sums.verify(&bytes, size), Ok(()));
        for (at, flip) in [(0usize, 1u8), (65_535, 0x80), (65_536, 0xff), (131_072, 7), (199_999, 0x55)] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            let error = sums.verify(&damaged, size).expect_err("damage is found");
            assert!(error.contains(&format!("byte {at} ")), "{error}");
        }
        assert!(sums.verify(&bytes[..100], size).is_err());
        let mut twice = bytes;
        twice[70_000] ^= 1;
        twice[70_001] ^= 1;
        assert!(sums.verify(&twice, size).expect_err("damage is found").contains("first bad byte"));
    }
}
