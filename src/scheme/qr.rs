//! `qr:rows=N/CODEC`: each row of a table of `V` is made of two stored rows: one for the remainder of its number by `N`, one
//! for the quotient, `ceil(V / N)` of them.
//!
//! ```text
//! parts of N + Q rows by the codec, Q = ceil(V / N)
//!     | N rows | Q rows |                     rows of an id = id mod N, and N + (id div N) mod Q
//!
//! op=add       (written as none)              their sum
//! op=mul                                      their product, column by column
//! op=concat                                   one behind the other: the first has ceil(dim / 2) columns, the second the others;
//!                                             of an odd number, its last is 0 and never read
//! ```
//!
//! This is the quotient-remainder trick (Shi et al. 2019). No two rows of the table read the same two, so that `N = sqrt(V)`, the
//! least number, tells them all apart. All 64 bits of an id count, and **every unsigned id has a row**: those from `V` on, as far
//! as `N Q`, where the two numbers lead; those past `N Q` are taken modulo it. Negative ids are as for `hash`. Decoding
//! adds or multiplies in f32.
//!
//! **Fitting.** Weighted least squares over all rows, by alternating, as for `multihash`: the remainders' rows first, which are the
//! weighted means of what their quotients' leave. Of a product, quotients begin at 1, and the best row of one table is found
//! column by column: a product has no best fit but from where it begins. Halves are weighted means, of one sweep.
//! Memory: 4 bytes for each stored value and 8, of a product 16, for each of the larger table. Frequencies and `weights=equal` are
//! as for `hash`.
//!
//! **Error bound.** None follows from a row alone, as for `hash`. Of a row that shares no remainder, the quotient's is 0 of
//! a sum and 1 of a product, whose error is then that of the row, and as much of the row as the codec's error of 1.

use std::{fmt, sync::Arc};

use super::{
    Buckets, Build, Codec, Join, SchemeInfo,
    buckets::Hash,
    hashed::{self, Index},
    options::Options,
    registry::Made,
};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "qr",
    summary: "a row of the id's remainder and one of its quotient, by any codec: sum, product or halves",
    options: "rows=N of remainders, op=mul or op=concat, weights=equal, then /CODEC",
    examples: &["qr:rows=4000/int8", "qr:rows=4000,op=concat/int8"],
    variants: &["qr:rows=37,op=mul/int8", "qr:rows=29,op=concat/f32"],
    build: Build::Index(build),
};

/// So many remainders, and the quotients of the most rows there may be, are no more than may be stored: no more are needed.
const MOST_REMAINDERS: u64 = 1 << 31;

const JOINS: [(&str, Join); 3] = [("add", Join::Sum), ("mul", Join::Product), ("concat", Join::Halves)];

fn build(options: &mut Options<'_>, codec: Arc<dyn Codec>) -> Made {
    let rows = hashed::rows_option(options, 2, MOST_REMAINDERS)?;
    let op = options.choice("op", &JOINS.map(|(name, _)| name))?;
    hashed::build(options, QuotientRemainder { rows, op }, codec)
}

#[derive(Clone, Copy, Debug)]
struct QuotientRemainder {
    rows: u32,
    /// Which of [`JOINS`].
    op: usize,
}

impl Index for QuotientRemainder {
    const STEM: &'static str = INFO.name;

    fn fmt_options(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows={}", self.rows)?;
        if self.op == 0 { Ok(()) } else { write!(f, ",op={}", JOINS[self.op].0) }
    }

    fn stored_rows(&self, rows: u32) -> u32 {
        self.rows + rows.div_ceil(self.rows)
    }

    fn buckets(&self, stored: u32) -> Buckets {
        Buckets { hash: Hash::Quotient { remainders: self.rows }, rows: stored }
    }

    fn join(&self) -> Join {
        JOINS[self.op].1
    }

    fn sources(&self) -> &'static [&'static str] {
        &[include_str!("../../shaders/index/divide.wgsl"), include_str!("../../shaders/index/qr.wgsl")]
    }
}

#[cfg(test)]
mod tests;
