//! `multihash:k=K,rows=N/CODEC`: a table of any number of rows as the sums of `K` of `N` stored rows, one for each of `K` hashes
//! of the id, 2 to 4.
//!
//! ```text
//! parts of N rows by the codec, cut into K tables, the first N mod K of which have a row more:
//!     | rows of table 0 | rows of table 1 | ...         row of an id in table n = murmur3(id, seed n) mod its rows
//! ```
//!
//! These are hash embeddings (Tito Svenstrup et al. 2017) without importance weights, and Bloom embeddings (Serra and
//! Karatzoglou 2017) by sums: ids that share a row of one table seldom share one of the next, so nearly each id has a sum of
//! its own. `murmur3` is as for `hash:fn=mix`, of seed `n * 0x9e3779b9` in 32 bits. Tables are apart, so that no id reads a row
//! twice. Every unsigned id of 64 bits has a row, as for `hash`. Decoding adds the rows in the order of the tables, in f32.
//!
//! **No learned weights.** One for each hash changes nothing that rows of its table do not hold already; one for each id and hash
//! needs a vocabulary, or a further hashed table, whose ids past the vocabulary read weights learnt for others.
//!
//! **Fitting.** Weighted least squares over all rows, by alternating: each table in turn becomes the best for what the others
//! leave of the rows, which is a weighted mean for each of its rows, as for `hash`; a sweep over the tables never adds to the error.
//! It ends once a sweep takes less than a 10,000th off it, or after 16. Each table takes a pass over the rows, in their order.
//! Memory: `4 N dim` bytes, and `8 N dim / K` for sums. Frequencies and `weights=equal` are as for `hash`.
//!
//! **Error bound.** None follows from a row alone, as for `hash`. Of a row that shares no stored row of the first table, the other
//! tables have zeros.

use std::{fmt, sync::Arc};

use super::{
    Buckets, Build, Codec, SchemeInfo,
    buckets::{Hash, MOST_READ},
    hashed::{self, Index},
    options::Options,
    registry::Made,
};
use crate::units::MAX_ROWS;

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "multihash",
    summary: "sums of a few rows by any codec, one for each of several hashes of the id",
    options: "k=2 to 4, rows=N, weights=equal, then /CODEC",
    examples: &["multihash:k=2,rows=4000/int8"],
    variants: &["multihash:k=3,rows=131/int8"],
    build: Build::Index(build),
};

fn build(options: &mut Options<'_>, codec: Arc<dyn Codec>) -> Made {
    let tables = match options.number("k")? {
        Some(tables) if (2..=4).contains(&tables) => tables,
        Some(_) => return Err(options.error("k", "takes a number from 2 to 4")),
        None => return Err(options.error("k", "must be given, as in `multihash:k=2,rows=100000/int8`")),
    };
    debug_assert!(tables as usize <= MOST_READ, "an id reads them all");
    let rows = hashed::rows_option(options, tables, MAX_ROWS)?;
    hashed::build(options, MultiHash { tables, rows }, codec)
}

#[derive(Clone, Copy, Debug)]
struct MultiHash {
    tables: u32,
    rows: u32,
}

impl Index for MultiHash {
    const STEM: &'static str = INFO.name;

    fn fmt_options(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k={},rows={}", self.tables, self.rows)
    }

    fn stored_rows(&self, _rows: u32) -> u32 {
        self.rows
    }

    fn buckets(&self, stored: u32) -> Buckets {
        Buckets { hash: Hash::Mixed { tables: self.tables }, rows: stored }
    }

    fn sources(&self) -> &'static [&'static str] {
        &[include_str!("../../shaders/index/murmur3.wgsl"), include_str!("../../shaders/index/multihash.wgsl")]
    }
}

#[cfg(test)]
mod tests;
