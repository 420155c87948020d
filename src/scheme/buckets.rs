//! Which stored row an id reads, where ids are no row numbers.

/// Stored rows that ids share: the row of an id is a number made of all its 64 bits, modulo the number of stored rows.
/// `shaders/index/hash.wgsl` is its twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// Stored rows: 1 at least.
    pub(super) rows: u32,
    /// Whether the id is mixed before, or is the number itself.
    pub(super) mixed: bool,
}

impl Buckets {
    /// Stored rows.
    pub(crate) fn rows(self) -> u32 {
        self.rows
    }

    /// The stored row of an id.
    #[inline(always)]
    pub(crate) fn row(self, id: u64) -> u32 {
        let number = if self.mixed { u64::from(murmur3(id)) } else { id };
        #[expect(clippy::cast_possible_truncation, reason = "less than a number of 32 bits")]
        let row = (number % u64::from(self.rows)) as u32;
        row
    }

    /// Values of the index's own `override` constants.
    pub(crate) fn constants(self) -> [(&'static str, f64); 2] {
        [("HASH_ROWS", f64::from(self.rows)), ("HASH_MIX", f64::from(u8::from(self.mixed)))]
    }
}

/// `MurmurHash3_x86_32` (Appleby 2011) of the id's 8 bytes, little endian, with seed 0: arithmetic of 32 bits only, which
/// shaders have.
#[inline(always)]
fn murmur3(id: u64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
    let (low, high) = (id as u32, (id >> 32) as u32);
    let block = |hash: u32, word: u32| {
        let mixed = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (hash ^ mixed).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    };
    let mut hash = block(block(0, low), high) ^ 8;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_murmur3_as_others_have_it() {
        // By a plain implementation for any bytes, which gives the published 0xba6bd213 for "test".
        for (id, hash) in [(0, 0x6385_2afc), (1, 0x5307_5d44), (1 << 32, 0x3ad8_5688), (u64::MAX, 0x6275_64e8)] {
            assert_eq!(murmur3(id), hash, "{id}");
        }
    }

    #[test]
    fn a02_all_bits_of_an_id_count() {
        for rows in [1, 2, 37, 64, 65_537, u32::MAX - 1] {
            let buckets = Buckets { rows, mixed: false };
            for id in [0, 5, u64::from(rows), (1 << 32) - 1, 1 << 32, (1 << 32) + 5, 1 << 63, u64::MAX] {
                assert_eq!(u128::from(buckets.row(id)), u128::from(id) % u128::from(rows));
            }
        }
        assert_ne!(Buckets { rows: 37, mixed: false }.row((1 << 32) + 5), 5);
    }
}
