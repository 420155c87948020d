//! Which stored rows an id reads, where ids are no row numbers.

use std::ops::Range;

/// The most stored rows that an id reads.
pub(crate) const MOST_READ: usize = 4;

/// Stored rows that ids share: an id reads one row, or one in each of several tables that the stored rows are cut into. All
/// its 64 bits count. The files of `shaders/index/` are its twins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    pub(super) hash: Hash,
    /// Stored rows of all tables: as many at least as there are tables.
    pub(super) rows: u32,
}

/// What is made of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    /// The id modulo the rows.
    Remainder,
    /// MurmurHash3 with a seed of its own for each of as many tables, modulo the rows of the table.
    Mixed { tables: u32 },
    /// The id modulo the rows of the first table, and its quotient by them modulo those of the second.
    Quotient { remainders: u32 },
}

impl Buckets {
    /// Stored rows.
    pub(crate) fn rows(self) -> u32 {
        self.rows
    }

    /// Stored rows that an id reads: one in each table.
    #[inline(always)]
    pub(crate) fn each(self) -> usize {
        match self.hash {
            Hash::Remainder => 1,
            Hash::Mixed { tables } => tables as usize,
            Hash::Quotient { .. } => 2,
        }
    }

    /// The rows of a table.
    #[inline(always)]
    pub(super) fn table(self, table: usize) -> Range<u32> {
        #[expect(clippy::cast_possible_truncation, reason = "at most four tables")]
        let table = table as u32;
        match self.hash {
            Hash::Remainder => 0..self.rows,
            Hash::Mixed { tables } => {
                // The first tables have a row more where there are rows left.
                let (rows, more) = (self.rows / tables, self.rows % tables);
                let start = table * rows + table.min(more);
                start..start + rows + u32::from(table < more)
            }
            Hash::Quotient { remainders } if table == 0 => 0..remainders,
            Hash::Quotient { remainders } => remainders..self.rows,
        }
    }

    /// The stored row of an id in a table.
    #[inline(always)]
    pub(crate) fn row(self, id: u64, table: usize) -> u32 {
        let Range { start, end } = self.table(table);
        let number = match self.hash {
            Hash::Remainder => id,
            Hash::Mixed { .. } => murmur3(id, seed(table)).into(),
            Hash::Quotient { .. } if table == 0 => id,
            Hash::Quotient { remainders } => id / u64::from(remainders),
        };
        #[expect(clippy::cast_possible_truncation, reason = "less than a number of 32 bits")]
        let row = (number % u64::from(end - start)) as u32;
        start + row
    }

    /// All stored rows that an id reads; the first is repeated behind them.
    #[inline(always)]
    pub(super) fn all(self, id: u64) -> [u32; MOST_READ] {
        let mut rows = [self.row(id, 0); MOST_READ];
        for (table, row) in rows.iter_mut().enumerate().take(self.each()).skip(1) {
            *row = self.row(id, table);
        }
        rows
    }

    /// Values of the index's own `override` constants.
    pub(crate) fn constants(self) -> Vec<(&'static str, f64)> {
        let rows = ("HASH_ROWS", f64::from(self.rows));
        match self.hash {
            Hash::Remainder => vec![rows],
            Hash::Mixed { tables: 1 } => vec![rows, ("HASH_MIX", 1.0)],
            Hash::Mixed { tables } => vec![rows, ("ROWS", f64::from(tables))],
            Hash::Quotient { remainders } => vec![("REMAINDERS", f64::from(remainders))],
        }
    }
}

/// The seed of a table's hash: multiples of an odd number without a pattern in its bits, the golden ratio's.
fn seed(table: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "at most four tables")]
    let table = table as u32;
    table.wrapping_mul(0x9e37_79b9)
}

/// `MurmurHash3_x86_32` (Appleby 2011) of the id's 8 bytes, little endian: arithmetic of 32 bits only, which shaders have.
#[inline(always)]
pub(crate) fn murmur3(id: u64, seed: u32) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
    let (low, high) = (id as u32, (id >> 32) as u32);
    let block = |hash: u32, word: u32| {
        let mixed = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (hash ^ mixed).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    };
    let mut hash = block(block(seed, low), high) ^ 8;
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
            assert_eq!(murmur3(id, 0), hash, "{id}");
        }
    }

    #[test]
    fn remainders_take_all_bits() {
        for rows in [1, 2, 37, 65_536, 1 << 31, u32::MAX - 1] {
            let buckets = Buckets { rows, hash: Hash::Remainder };
            for id in [0, 5, u64::from(rows), (1 << 32) - 1, 1 << 32, (1 << 32) + 5, 1 << 63, u64::MAX] {
                assert_eq!(u128::from(buckets.row(id, 0)), u128::from(id) % u128::from(rows));
            }
        }
        assert_ne!(Buckets { rows: 37, hash: Hash::Remainder }.row((1 << 32) + 5, 0), 5);
    }

    #[test]
    fn tables_share_all_rows_among_them() {
        for (rows, tables) in [(2, 2), (7, 2), (8, 4), (11, 4), (u32::MAX - 1, 4), (u32::MAX - 1, 3)] {
            let buckets = Buckets { rows, hash: Hash::Mixed { tables } };
            let mut next = 0;
            for table in 0..tables as usize {
                let Range { start, end } = buckets.table(table);
                assert!(start == next && end > start && end - start - rows / tables <= 1);
                assert!((0..100).all(|id| (start..end).contains(&buckets.row(id, table))));
                next = end;
            }
            assert_eq!(next, rows);
        }
        let buckets = Buckets { rows: 10, hash: Hash::Quotient { remainders: 7 } };
        assert_eq!(buckets.all(16), [2, 7 + 2, 2, 2]);
        // Past the quotients there are, they begin again.
        assert_eq!(buckets.all(22), [1, 7, 1, 1]);
        assert_eq!(buckets.all(u64::MAX)[1], 7 + (u64::MAX / 7 % 3) as u32);
    }
}
