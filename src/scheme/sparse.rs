//! `csr/CODEC` and `coo/CODEC`: of each row only the values that are not zero, or the largest of the table, with their columns.
//!
//! ```text
//! csr  values: F32 or F16 [n, 1]   columns: U8, U16 or U32 [n, 1]   starts: U32 [rows + 1, 1]
//!      |x0 |x1 |x2 | ...           |c0 |c1 |c2 | ...                |s0 |s1 | ... |n |
//!
//!      row r is the values s_r to s_r+1 - 1, each in its column; zeros elsewhere
//!
//! coo  values, columns as in csr   rows: U8 [n, 1]                  starts: U32 [ceil(rows / 16) + 1, 1]
//!                                  |r0 |r1 |r2 | ...                |s0 |s1 | ... |n |
//!
//!      rows 16 b to 16 b + 15 are the values s_b to s_b+1 - 1; each is of row 16 b + its number in `rows`
//! ```
//!
//! Values are in the order of their rows, and columns ascend in a row, none twice. Columns take one byte up to 256 columns, two
//! up to 65,536. CSR (compressed sparse rows) finds a row at once and spends four bytes on each, COO (coordinates) spends a
//! byte a value and a quarter of a byte a row: less where most rows have fewer than four values.
//!
//! **What is kept.** `csr/f32` keeps all values that are not zero: nothing is lost. `threshold=T` keeps magnitudes from `T` up.
//! `nonzeros=N` keeps the `N` largest magnitudes of the table, and `density=S` as many as are the share `S` of all its values,
//! rounded up. Values of one magnitude are kept together, so it may be more; zeros never are. A table's own scheme
//! says how many there are. The threshold of the largest is found in two passes, exactly, by counts of the upper and of the
//! lower bits of the magnitudes: 1.5 MiB, whatever the table's size.
//!
//! **Error bound.** A value that is kept has the codec's bound; one that is not is under the threshold, where that is known, and no
//! larger than the row's largest.

mod check;
mod decode;
mod fit;

use std::{cmp::Ordering, fmt, sync::Arc};

use super::{
    BaggedRows, Build, Category, Codec, Dtype, FitFigure, Misfit, Part, Pool, Rows, SchemeInfo, Shader,
    options::Options, pool::pool_decoded,
};
use crate::{
    error::{EncodeError, SchemeError},
    units::Shape,
};

pub(super) const CSR: SchemeInfo = SchemeInfo {
    name: "csr",
    summary: "the values that are not zero, or the largest, by rows",
    options: "density=S, threshold=T or nonzeros=N, then /f32 or /f16",
    examples: &["csr:density=0.1/f16"],
    variants: &["csr:density=0.25/f32", "csr:threshold=0.5/f16"],
    build: Build::Factor(|options, codec| build(options, codec, &CSR, 1)),
};

pub(super) const COO: SchemeInfo = SchemeInfo {
    name: "coo",
    summary: "the same by coordinates: for rows that are mostly empty",
    options: CSR.options,
    examples: &["coo:density=0.1/f16"],
    variants: &["coo:density=0.1/f16"],
    build: Build::Factor(|options, codec| build(options, codec, &COO, 16)),
};

/// Parts, in their order; a COO table has `rows` between the last two.
const VALUES: usize = 0;
const COLUMNS: usize = 1;

fn build(
    options: &mut Options<'_>,
    codec: Arc<dyn Codec>,
    info: &'static SchemeInfo,
    every: u32,
) -> Result<Arc<dyn Codec>, SchemeError> {
    let alone = Shape::new(1, 1).map(|shape| codec.parts(shape)).unwrap_or_default();
    let dtype = match &*alone {
        [part] if matches!(part.dtype(), Dtype::F32 | Dtype::F16) => part.dtype(),
        _ => return Err(options.error("/", "must be followed by `f32` or `f16`: values are stored each by itself")),
    };
    let keep = match (options.decimal("density")?, options.decimal("threshold")?, options.number("nonzeros")?) {
        (None, None, None) => Keep::NonZeros,
        (Some(share), None, None) if share > 0.0 && share <= 1.0 => Keep::Share(share),
        (Some(_), None, None) => return Err(options.error("density", "takes a share over 0 and up to 1")),
        #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
        (None, Some(least), None) if least >= 0.0 && least <= f64::from(f32::MAX) => Keep::From(least as f32),
        (None, Some(_), None) => return Err(options.error("threshold", "takes a number from 0 up that f32 has")),
        (None, None, Some(count)) => Keep::Largest(count),
        _ => return Err(options.error("density", "`threshold` and `nonzeros` exclude each other")),
    };
    Ok(Arc::new(Sparse { info, every, keep, codec, dtype, fitted: None }))
}

/// Which values are stored.
#[derive(Clone, Copy, Debug)]
enum Keep {
    NonZeros,
    /// As many of the largest as are this share of all.
    Share(f64),
    /// Magnitudes from this one up.
    From(f32),
    /// So many of the largest.
    Largest(u32),
}

#[derive(Clone, Debug)]
struct Sparse {
    info: &'static SchemeInfo,
    /// Rows to an item of `starts`.
    every: u32,
    keep: Keep,
    /// How values are stored: a row of one column.
    codec: Arc<dyn Codec>,
    dtype: Dtype,
    fitted: Option<Fitted>,
}

/// What was learnt of a table.
#[derive(Clone, Copy, Debug)]
struct Fitted {
    /// The least magnitude that is kept; over 0.
    least: f32,
    /// Values that are kept, among all.
    kept: u64,
    values: u64,
    /// Share of the table's squared values that is kept.
    energy: f64,
}

impl Sparse {
    /// The least magnitude that is kept.
    fn least(&self) -> f32 {
        self.fitted.map_or(f32::from_bits(1), |fitted| fitted.least)
    }

    /// Values that are stored, or the most that may be, where the scheme is not fitted yet.
    fn nonzeros(&self, shape: Shape) -> u64 {
        let all = u64::from(shape.rows()) * u64::from(shape.dim());
        let most = match self.keep {
            Keep::NonZeros | Keep::From(_) => all,
            Keep::Share(share) => fit::count(share, all),
            Keep::Largest(count) => all.min(count.into()),
        };
        most.min(u32::MAX.into())
    }

    fn has_rows(&self) -> bool {
        self.every > 1
    }

    fn column_dtype(dim: u32) -> Dtype {
        match dim {
            0..=0x100 => Dtype::U8,
            0x101..=0x1_0000 => Dtype::U16,
            _ => Dtype::U32,
        }
    }
}

impl Codec for Sparse {
    fn fmt_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info.name)?;
        match self.keep {
            Keep::NonZeros => {}
            Keep::Share(share) => write!(f, ":density={share}")?,
            Keep::From(least) => write!(f, ":threshold={least}")?,
            Keep::Largest(count) => write!(f, ":nonzeros={count}")?,
        }
        f.write_str("/")?;
        self.codec.fmt_scheme(f)
    }

    fn fit(&self, rows: &mut dyn Rows) -> Result<Option<Arc<dyn Codec>>, EncodeError> {
        if self.fitted.is_some() {
            return Ok(None);
        }
        let fitted = fit::fit(self.keep, rows)?;
        let Ok(kept) = u32::try_from(fitted.kept) else {
            let dim = rows.shape().dim();
            let reason = format!("{} values would be stored, and at most {} can", fitted.kept, u32::MAX);
            return Err(EncodeError::Unfit { scheme: self.info.name.to_owned(), dim, reason });
        };
        Ok(Some(Arc::new(Self { keep: Keep::Largest(kept), fitted: Some(fitted), ..self.clone() })))
    }

    fn figures(&self) -> Vec<FitFigure> {
        let Some(fitted) = self.fitted else { return Vec::new() };
        #[expect(clippy::cast_precision_loss, reason = "a share of a few digits")]
        let density = if fitted.values == 0 { 0.0 } else { fitted.kept as f64 / fitted.values as f64 };
        let mut figures = vec![FitFigure { name: "density", value: density }];
        figures.push(FitFigure { name: "energy kept", value: fitted.energy });
        if fitted.least.is_finite() {
            figures.push(FitFigure { name: "threshold", value: fitted.least.into() });
        }
        figures
    }

    fn parts(&self, shape: Shape) -> Vec<Part> {
        let count = self.nonzeros(shape);
        let mut parts = vec![
            Part::of_values("values", self.dtype, Category::Payload, count),
            Part::of_values("columns", Self::column_dtype(shape.dim()), Category::Index, count),
        ];
        if self.has_rows() {
            parts.push(Part::of_values("rows", Dtype::U8, Category::Index, count));
        }
        parts.push(Part::starts("starts", shape.rows(), self.every));
        parts
    }

    fn lengths(&self, dim: usize, values: &[f32], lengths: &mut [u32]) {
        let least = self.least();
        for (length, row) in lengths.iter_mut().zip(values.chunks_exact(dim)) {
            *length = row.iter().map(|value| u32::from(value.abs() >= least)).sum();
        }
    }

    fn malformed(&self, rows: u32, dim: usize, parts: &[&[u8]]) -> Option<(u32, String)> {
        check::malformed(&self.stored(dim, parts), rows)
    }

    fn encode_rows(&self, dim: usize, values: &[f32], parts: &mut [&mut [u8]]) -> Result<(), Misfit> {
        let least = self.least();
        let kept = values.iter().enumerate().filter(|(_, value)| value.abs() >= least);
        let places: Vec<usize> = kept.map(|(at, _)| at).collect();
        let kept: Vec<f32> = places.iter().map(|at| values[*at]).collect();
        self.codec
            .encode_rows(1, &kept, &mut [&mut *parts[VALUES]])
            .map_err(|misfit| Misfit { index: places[misfit.index], ..misfit })?;
        #[expect(clippy::cast_possible_truncation, reason = "a row has at most 2^20 columns")]
        let width = Self::column_dtype(dim as u32).bytes() as usize;
        for (bytes, at) in parts[COLUMNS].chunks_exact_mut(width).zip(&places) {
            bytes.copy_from_slice(&(at % dim).to_le_bytes()[..width]);
        }
        if self.has_rows() {
            for (byte, at) in parts[COLUMNS + 1].iter_mut().zip(&places) {
                *byte = (at / dim % self.every as usize).to_le_bytes()[0];
            }
        }
        Ok(())
    }

    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]) {
        self.stored(dim, parts).decode(rows, out);
    }

    fn pool_rows(&self, dim: usize, parts: &[&[u8]], bags: &BaggedRows<'_>, out: &mut [f32]) {
        // A zero that is not stored changes no sum, but a maximum, and the product with an infinite weight.
        let finite = bags.weights.is_none_or(|weights| weights.iter().all(|weight| weight.is_finite()));
        match bags.pool {
            Pool::Sum if finite => self.stored(dim, parts).sum(bags, out),
            _ => pool_decoded(self, dim, parts, bags, out),
        }
    }

    fn error_bound(&self, row: &[f32]) -> f64 {
        let largest = row.iter().fold(0.0, |largest: f64, value| largest.max(f64::from(value.abs())));
        let dropped = self.fitted.map_or(largest, |fitted| largest.min(fitted.least.into()));
        self.codec.error_bound(row).max(dropped)
    }

    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64 {
        let number = |bytes: &[u8], dtype: Dtype, at: usize| {
            let width = usize::from(dtype.bytes().to_le_bytes()[0]);
            bytes[at * width..][..width].iter().rev().fold(0usize, |number, byte| number << 8 | usize::from(*byte))
        };
        let every = self.every as usize;
        let start = |at| number(parts[parts.len() - 1], Dtype::U32, at);
        let columns = Self::column_dtype(u32::try_from(dim).unwrap_or(u32::MAX));
        // Row and column ascend, so that a row of a million columns is not gone through for each.
        let place = |at: usize| {
            let row = if every == 1 { 0 } else { number(parts[COLUMNS + 1], Dtype::U8, at) };
            (row, number(parts[COLUMNS], columns, at))
        };
        let (mut low, mut high) = (start(row / every), start(row / every + 1));
        while low < high {
            let middle = usize::midpoint(low, high);
            match place(middle).cmp(&(row % every, column)) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return self.codec.reference(1, &parts[..1], middle, 0),
                Ordering::Greater => high = middle,
            }
        }
        0.0
    }

    fn rounding(&self, row: &[f64]) -> f64 {
        self.codec.rounding(row)
    }

    fn shader(&self) -> Shader {
        Shader::plain(self.info.name, include_str!("../../shaders/codec/sparse.wgsl"))
    }

    fn turns(&self, _dim: u32) -> u32 {
        // 16 values, and up to 20 steps to find the first of them; in COO, twice as many to find the row.
        if self.has_rows() { 16 + 3 * 20 } else { 16 + 20 }
    }

    #[expect(clippy::cast_precision_loss, reason = "a few bytes")]
    fn constants(&self, dim: u32) -> Vec<(&'static str, f64)> {
        vec![
            ("VALUE_BYTES", self.dtype.bytes() as f64),
            ("COLUMN_BYTES", Self::column_dtype(dim).bytes() as f64),
            ("ROWS_EVERY", f64::from(self.every)),
        ]
    }
}

#[cfg(test)]
mod tests;
