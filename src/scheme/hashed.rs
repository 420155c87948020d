//! Schemes whose rows ids share: a few rows are stored by any codec, and an index says which of them an id reads.

mod figures;
mod fit;

use std::{fmt, sync::Arc};

use super::{
    BaggedRows, Buckets, Codec, FitFigure, Join, Misfit, NO_ROW, Part, Rows, Shader, Stored, options::Options,
    pool::pool_decoded, registry::Made,
};
use crate::{
    error::{EncodeError, SchemeError},
    units::{MAX_ROWS, Shape},
};

/// Which stored rows an id reads, and how they become one.
pub(super) trait Index: Copy + fmt::Debug + Send + Sync + 'static {
    /// The first word of the scheme, which is the name of the index's WGSL.
    const STEM: &'static str;

    /// Its options, as they are written.
    fn fmt_options(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Rows that are stored of a table of `rows`.
    fn stored_rows(&self, rows: u32) -> u32;

    /// Which of so many stored rows an id reads.
    fn buckets(&self, stored: u32) -> Buckets;

    /// What is made of the rows that an id reads.
    fn join(&self) -> Join {
        Join::Sum
    }

    /// The WGSL of `rows_of`.
    fn sources(&self) -> &'static [&'static str];
}

/// The number of rows that an index must be given.
pub(super) fn rows_option(options: &mut Options<'_>, least: u32, most: u64) -> Result<u32, SchemeError> {
    match options.number("rows")? {
        Some(rows) if (u64::from(least)..=most.min(MAX_ROWS)).contains(&u64::from(rows)) => Ok(rows),
        Some(_) => Err(options.error("rows", &format!("takes a number from {least} to {}", most.min(MAX_ROWS)))),
        None => Err(options.error("rows", "must be given, as in `rows=100000`")),
    }
}

/// The scheme of an index before a codec.
pub(super) fn build(options: &mut Options<'_>, index: impl Index, codec: Arc<dyn Codec>) -> Made {
    let equal = options.choice("weights", &["zipf", "equal"])? == 1;
    let parts = Shape::new(1, 1).map(|shape| codec.parts(shape)).unwrap_or_default();
    if parts.iter().any(Part::counts_values) {
        return Err(options.error("/", "is followed by what is no way to store rows that ids share: those are full"));
    }
    Ok(Arc::new(Hashed { index, equal, codec, fitted: None }))
}

#[derive(Clone, Debug)]
struct Hashed<I> {
    index: I,
    /// Whether all rows weigh alike in the fit.
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

impl<I: Index> Hashed<I> {
    /// The stored rows of a table of `rows`.
    fn buckets_of(&self, rows: u32) -> Buckets {
        self.index.buckets(self.index.stored_rows(rows))
    }

    /// Columns of a stored row.
    #[expect(clippy::cast_possible_truncation, reason = "no more than those of a row")]
    fn width(&self, dim: u32) -> u32 {
        self.index.join().width(dim as usize) as u32
    }

    /// Stored rows that an id reads.
    fn each(&self) -> usize {
        self.buckets_of(1).each()
    }

    /// Parts of `rows` stored rows of `width` columns. Both numbers have been checked.
    fn stored_parts(&self, rows: u32, width: usize) -> Vec<Part> {
        Shape::new(rows.into(), width as u64).map(|shape| self.codec.parts(shape)).unwrap_or_default()
    }
}

impl<I: Index> Codec for Hashed<I> {
    fn fmt_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", I::STEM)?;
        self.index.fmt_options(f)?;
        f.write_str(if self.equal { ",weights=equal/" } else { "/" })?;
        self.codec.fmt_scheme(f)
    }

    fn buckets(&self, rows: u32) -> Option<Buckets> {
        Some(self.buckets_of(rows))
    }

    fn join(&self) -> Join {
        self.index.join()
    }

    fn stores_by(&self) -> Option<&Arc<dyn Codec>> {
        Some(&self.codec)
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
        self.codec.check(self.width(dim))
    }

    fn parts(&self, shape: Shape) -> Vec<Part> {
        let rows = if shape.rows() == 0 { 0 } else { self.index.stored_rows(shape.rows()) };
        self.stored_parts(rows, self.width(shape.dim()) as usize)
    }

    fn encode_rows(&self, _dim: usize, _values: &[f32], _parts: &mut [&mut [u8]]) -> Result<(), Misfit> {
        unreachable!("the encoder takes stored rows by their codec")
    }

    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]) {
        /// Values of a block, unless a row has more: they stay in the nearest cache.
        const BLOCK: usize = 1 << 12;
        let each = self.each();
        if each == 1 {
            return self.codec.decode_rows(dim, parts, rows, out);
        }
        let (join, width) = (self.index.join(), self.index.join().width(dim));
        let block = (BLOCK / (each * width)).clamp(1, (rows.len() / each).max(1));
        let mut values = vec![0.0; block * each * width];
        for (rows, out) in rows.chunks(block * each).zip(out.chunks_mut(block * dim)) {
            let values = &mut values[..rows.len() * width];
            self.codec.decode_rows(width, parts, rows, values);
            for (values, out) in values.chunks_exact(each * width).zip(out.chunks_exact_mut(dim)) {
                join.join(values, out);
            }
        }
    }

    fn pool_rows(&self, dim: usize, parts: &[&[u8]], bags: &BaggedRows<'_>, out: &mut [f32]) {
        if self.each() == 1 {
            return self.codec.pool_rows(dim, parts, bags, out);
        }
        pool_decoded(self, dim, parts, bags, out);
    }

    /// Of a row that shares none of its stored ones: the fit then leaves zeros for a sum to its others, ones for a product.
    fn error_bound(&self, row: &[f32]) -> f64 {
        let bound = |row: &[f32]| self.codec.error_bound(row);
        // What is computed with may be flushed where it is subnormal.
        let least = f64::from(f32::MIN_POSITIVE);
        match self.index.join() {
            Join::Sum if self.each() == 1 => bound(row),
            #[expect(clippy::cast_precision_loss, reason = "at most four")]
            Join::Sum => bound(row) + (self.each() - 1) as f64 * bound(&vec![0.0; row.len()]) + least,
            Join::Product => {
                let largest = row.iter().fold(0.0, |largest: f64, value| largest.max(f64::from(value.abs())));
                let one = bound(&vec![1.0; row.len()]) + 2f64.powi(-24);
                bound(row) * (1.0 + one) + largest * one + least
            }
            Join::Halves => {
                let (first, rest) = row.split_at(self.index.join().width(row.len()));
                let mut second = vec![0.0; first.len()];
                second[..rest.len()].copy_from_slice(rest);
                bound(first).max(bound(&second))
            }
        }
    }

    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64 {
        let width = self.index.join().width(dim);
        let one = self.stored_parts(1, width)[0].row_bytes();
        // A table has under 2^32 rows, and those stored have codes.
        let stored = u32::try_from(parts[0].len() as u64 / one).unwrap_or(NO_ROW);
        let buckets = self.index.buckets(stored);
        let value = |table: usize, column: usize| {
            self.codec.reference(width, parts, buckets.row(row as u64, table) as usize, column)
        };
        self.index.join().reference(buckets.each(), dim, column, value)
    }

    fn rounding(&self, row: &[f64]) -> f64 {
        self.codec.rounding(row)
    }

    fn shader(&self) -> Shader {
        let ids = include_str!("../../shaders/index/hashed.wgsl");
        let join = self.index.join().sources(self.each());
        Shader { stem: I::STEM, ids, index: self.index.sources(), join, ..self.codec.shader() }
    }

    fn turns(&self, dim: u32) -> u32 {
        let each = u32::try_from(self.each()).unwrap_or(u32::MAX);
        each * self.codec.turns(self.width(dim))
    }

    fn constants(&self, dim: u32) -> Vec<(&'static str, f64)> {
        let width = self.width(dim);
        let mut constants = self.codec.constants(width);
        if width != dim {
            constants.push(("ROW_DIM", f64::from(width)));
        }
        constants
    }
}
