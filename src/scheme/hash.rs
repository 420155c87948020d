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
//! **Fitting.** A stored row is the weighted mean of the rows of its bucket, which has the least weighted squared error. Row
//! `r` weighs `1 / (r + 1)`, as its traffic is by Zipf's law where rows are in the order of their frequency;
//! `weights=equal` weighs all alike. A row alone in its bucket is stored as it is (but for -0.0, which becomes 0.0). Sums are in
//! f64, in the order of the rows. The fit takes `12 N dim` bytes of host memory, the encoder after it `8 N dim`.
//!
//! **Error bound.** A row that shares its bucket may be as far from it as the others pull it: no bound follows from the row
//! alone. What the codec bounds is the distance of what is stored from the bucket's mean. The report of an encoding is
//! measured on all rows of the table, each against the row that its number finds.

mod fit;

use std::{fmt, sync::Arc};

use super::{
    BaggedRows, Buckets, Build, Codec, FitFigure, Misfit, Part, Rows, SchemeInfo, Shader, Stored, options::Options,
};
use crate::{
    error::{EncodeError, SchemeError},
    units::{MAX_ROWS, Shape},
};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "hash",
    summary: "fewer rows by any codec, shared by ids of one hash",
    options: "rows=N, fn=mix, weights=equal, then /CODEC",
    examples: &["hash:rows=4000/int8"],
    variants: &["hash:rows=64/f32", "hash:rows=41,fn=mix/int8"],
    build: Build::Index(build),
};

fn build(options: &mut Options<'_>, codec: Arc<dyn Codec>) -> Result<Arc<dyn Codec>, SchemeError> {
    let rows = match options.number("rows")? {
        Some(rows) if (1..=MAX_ROWS).contains(&u64::from(rows)) => rows,
        Some(_) => return Err(options.error("rows", &format!("takes a number from 1 to {MAX_ROWS}"))),
        None => return Err(options.error("rows", "must be given, as in `hash:rows=100000/int8`")),
    };
    let mixed = options.choice("fn", ["mod", "mix"])? == 1;
    let equal = options.choice("weights", ["zipf", "equal"])? == 1;
    Ok(Arc::new(Hash { buckets: Buckets { rows, mixed }, equal, codec, fitted: None }))
}

#[derive(Clone, Debug)]
struct Hash {
    buckets: Buckets,
    /// Whether all rows weigh alike in the mean of their bucket.
    equal: bool,
    codec: Arc<dyn Codec>,
    fitted: Option<Arc<Fitted>>,
}

/// What was learnt of a table.
#[derive(Debug)]
struct Fitted {
    stored: Stored,
    figures: Vec<FitFigure>,
}

impl Codec for Hash {
    fn fmt_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hash:rows={}", self.buckets.rows)?;
        f.write_str(if self.buckets.mixed { ",fn=mix" } else { "" })?;
        f.write_str(if self.equal { ",weights=equal/" } else { "/" })?;
        self.codec.fmt_scheme(f)
    }

    fn buckets(&self) -> Option<Buckets> {
        Some(self.buckets)
    }

    fn behind_index(&self) -> Option<Arc<dyn Codec>> {
        Some(self.codec.clone())
    }

    fn fit(&self, rows: &mut dyn Rows) -> Result<Option<Arc<dyn Codec>>, EncodeError> {
        if self.fitted.is_some() {
            return Ok(None);
        }
        let mut fitted = fit::fit(self, rows)?;
        // What the codec learns, it learns of the rows that it stores.
        let codec = match self.codec.fit(&mut fitted.stored)? {
            Some(codec) => codec,
            None => self.codec.clone(),
        };
        fitted.figures.extend(codec.figures());
        Ok(Some(Arc::new(Self { codec, fitted: Some(Arc::new(fitted)), ..self.clone() })))
    }

    fn stored(&self) -> Option<&Stored> {
        self.fitted.as_deref().map(|fitted| &fitted.stored)
    }

    fn without_rows(&self) -> Option<Arc<dyn Codec>> {
        self.fitted.is_some().then(|| Arc::new(Self { fitted: None, ..self.clone() }) as Arc<dyn Codec>)
    }

    fn figures(&self) -> Vec<FitFigure> {
        self.fitted.as_ref().map_or_else(Vec::new, |fitted| fitted.figures.clone())
    }

    fn shared_part(&self, part: usize) -> Vec<u8> {
        self.codec.shared_part(part)
    }

    fn check(&self, dim: u32) -> Result<(), String> {
        self.codec.check(dim)
    }

    fn parts(&self, shape: Shape) -> Vec<Part> {
        let rows = if shape.rows() == 0 { 0 } else { self.buckets.rows };
        // Both numbers have been checked.
        Shape::new(rows.into(), shape.dim().into()).map(|shape| self.codec.parts(shape)).unwrap_or_default()
    }

    fn encode_rows(&self, dim: usize, values: &[f32], parts: &mut [&mut [u8]]) -> Result<(), Misfit> {
        self.codec.encode_rows(dim, values, parts)
    }

    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]) {
        self.codec.decode_rows(dim, parts, rows, out);
    }

    fn pool_rows(&self, dim: usize, parts: &[&[u8]], bags: &BaggedRows<'_>, out: &mut [f32]) {
        self.codec.pool_rows(dim, parts, bags, out);
    }

    fn error_bound(&self, row: &[f32]) -> f64 {
        self.codec.error_bound(row)
    }

    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64 {
        // By the definition, and a table has under 2^32 rows.
        let number = if self.buckets.mixed { self.buckets.row(row as u64) as usize } else { row };
        self.codec.reference(dim, parts, number % self.buckets.rows as usize, column)
    }

    fn rounding(&self, row: &[f64]) -> f64 {
        self.codec.rounding(row)
    }

    fn shader(&self) -> Shader {
        let index = include_str!("../../shaders/index/hash.wgsl");
        Shader { stem: "hash", index, ..self.codec.shader() }
    }

    fn turns(&self, dim: u32) -> u32 {
        self.codec.turns(dim)
    }

    fn constants(&self, dim: u32) -> Vec<(&'static str, f64)> {
        self.codec.constants(dim)
    }
}

#[cfg(test)]
mod tests;
