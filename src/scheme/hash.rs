//! `hash:rows=N/CODEC`: a table of any number of rows stored as `N`, each of which serves all ids that are equal modulo `N`.
//! `hash:rows=N,fn=mix/CODEC` takes the ids' hashes modulo `N`.
//!
//! ```text
//! parts of N rows by the codec                    row of an id = id mod N             fn=mod, as `x % size` has it
//!                                                              = murmur3(id) mod N    fn=mix
//! ```
//!
//! This is the hashing trick (Weinberger et al. 2009), of one function and without signs. `murmur3` is `MurmurHash3_x86_32` of
//! the id's 8 bytes, little endian, with seed 0. Both take all 64 bits of an id, and **every unsigned id has a row**, those past
//! the table's rows too: no vocabulary is needed. A negative signed id has none, unless a policy counts -1 to -rows from
//! the end; these are then the ids that they stand for. A table of no rows has no row for any id.
//!
//! **Fitting.** A stored row is the weighted mean of the rows of its bucket, which has the least weighted squared error. Rows
//! weigh their frequency: what the caller says, or `1 / (r + 1)` of row `r`, as its traffic is by Zipf's law where rows are in the
//! order of their frequency; `weights=equal` weighs all alike. A row alone in its bucket is stored as it is (but for -0.0, which
//! becomes 0.0); a bucket without traffic has zeros. Sums are in f64, in the order of the rows. The fit takes `12 N dim` bytes
//! of host memory, the encoder after it `8 N dim`.
//!
//! **Error bound.** A row that shares its bucket may be as far from it as the others pull it: no bound follows from the row
//! alone. What the codec bounds is the distance of what is stored from the bucket's mean. The report of an encoding is
//! measured on all rows of the table, each against the row that its number finds.

use std::{fmt, sync::Arc};

use super::{
    Buckets, Build, Codec, SchemeInfo,
    buckets::Hash as Function,
    hashed::{self, Index},
    options::Options,
    registry::Made,
};
use crate::units::MAX_ROWS;

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "hash",
    summary: "fewer rows by any codec, shared by ids of one hash",
    options: "rows=N, fn=mix, weights=equal, then /CODEC",
    examples: &["hash:rows=4000/int8"],
    variants: &["hash:rows=64/f32", "hash:rows=41,fn=mix/int8"],
    build: Build::Index(build),
};

fn build(options: &mut Options<'_>, codec: Arc<dyn Codec>) -> Made {
    let rows = hashed::rows_option(options, 1, MAX_ROWS)?;
    let mixed = options.choice("fn", &["mod", "mix"])? == 1;
    hashed::build(options, Hash { rows, mixed }, codec)
}

#[derive(Clone, Copy, Debug)]
struct Hash {
    rows: u32,
    /// Whether ids are mixed before the remainder is taken.
    mixed: bool,
}

impl Index for Hash {
    const STEM: &'static str = INFO.name;

    fn fmt_options(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows={}{}", self.rows, if self.mixed { ",fn=mix" } else { "" })
    }

    fn stored_rows(&self, _rows: u32) -> u32 {
        self.rows
    }

    fn buckets(&self, stored: u32) -> Buckets {
        let hash = if self.mixed { Function::Mixed { tables: 1 } } else { Function::Remainder };
        Buckets { hash, rows: stored }
    }

    fn sources(&self) -> &'static [&'static str] {
        &[
            include_str!("../../shaders/index/divide.wgsl"),
            include_str!("../../shaders/index/murmur3.wgsl"),
            include_str!("../../shaders/index/hash.wgsl"),
        ]
    }
}

#[cfg(test)]
mod tests;
