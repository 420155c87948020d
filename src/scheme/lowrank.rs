//! `lowrank:k=K/CODEC`: a table `W [rows, dim]` as the product of `U [rows, K]`, stored by any codec, and a basis
//! `B [K, dim]`, which all rows share. `lowrank:energy=E/CODEC` takes the least `K` that keeps the share `E` of the energy.
//!
//! ```text
//! parts of U by its codec, K columns a row        basis: F32 [K, dim]
//!                                                 byte 0    4           4*dim
//!                                                      |B00 |B01 | ... |B10 | ...       x = sum over j of u_j * B_j
//! ```
//!
//! `K` is never more than `dim`. Decoding begins at 0 and adds `u_j * B_j` for `j` from 0 up, in f32, each product rounded
//! before it is added.
//!
//! **Fitting.** `B` are the `K` leading right singular vectors of `W`, so that `U = W B^T` has the least squared error of all
//! factors of that rank (Eckart and Young 1936). The energy kept is the share of `W`'s squared values that is in the product.
//! `fit.rs` says how the vectors are found in one or a few passes over the rows.
//!
//! **Error bound.** The product is the projection of a row on the basis, which is off by at most the row's norm `n`; `U`'s codec
//! adds at most its own bound `e` a column, hence `e sqrt(K)`; sums of `K` and `dim` products round by `2^-22 (K + dim) n`, and
//! lose `2^-125 (K + dim)` where a driver flushes subnormal products. That holds for any table; how near the product comes depends on the table, and the report of the fit tells it.
//!
//! **Rounding of the decoders.** `K` products, each rounded and added with another rounding, and the rounding of `U`'s own
//! decoder before: at most `2^-24 (K + 3)` of the sum of their magnitudes. That sum is at most `|u| |B_c|`. The basis has rows
//! of length 1 at right angles, so that `|B_c| <= 1`, and `|u|` is the row's norm; 1.01 covers what f32 leaves of that.
//! Products under `2^-126` may be flushed.

mod decode;
#[cfg(feature = "lowrank")]
mod fit;

use std::{borrow::Cow, fmt, sync::Arc};

use super::{Build, Category, Codec, Dtype, FitFigure, Misfit, Part, Rows, SchemeInfo, Shader, options::Options};
use crate::{
    error::{EncodeError, SchemeError},
    units::Shape,
};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "lowrank",
    summary: "a row of few columns by any codec, times a basis",
    options: "k=K or energy=E, then /CODEC",
    examples: &["lowrank:k=50/int8", "lowrank:k=25/int8"],
    variants: &["lowrank:k=12/int8"],
    build: Build::Factor(build),
};

/// The most that `k` may be: a column of a row is a sum of so many products.
const MOST_RANK: u32 = 1 << 14;

fn build(options: &mut Options<'_>, codec: Arc<dyn Codec>) -> Result<Arc<dyn Codec>, SchemeError> {
    let rank = match (options.number("k")?, options.decimal("energy")?) {
        (Some(k), None) if (1..=MOST_RANK).contains(&k) => Rank::Columns(k),
        (Some(_), None) => return Err(options.error("k", "takes a number from 1 to 16384")),
        (None, Some(share)) if share > 0.0 && share <= 1.0 => Rank::Energy(share),
        (None, Some(_)) => return Err(options.error("energy", "takes a share over 0 and up to 1, as in `energy=0.95`")),
        (Some(_), Some(_)) => return Err(options.error("energy", "and `k` exclude each other")),
        (None, None) => return Err(options.error("k", "or `energy` must be given, as in `lowrank:k=32/int8`")),
    };
    Ok(Arc::new(LowRank { rank, codec, fitted: None }))
}

/// How many columns `U` has.
#[derive(Clone, Copy, Debug)]
enum Rank {
    Columns(u32),
    /// As many as keep this share of the energy: known once the scheme is fitted.
    Energy(f64),
}

#[derive(Clone, Debug)]
struct LowRank {
    rank: Rank,
    /// How `U` is stored.
    codec: Arc<dyn Codec>,
    fitted: Option<Arc<Fitted>>,
}

/// What was learnt of a table.
#[derive(Debug)]
struct Fitted {
    /// Columns of `U`.
    rank: u32,
    /// `[K, dim]`; its rows are of length 1 and at right angles.
    basis: Vec<f32>,
    /// Share of the table's squared values that the basis keeps.
    energy: f64,
}

impl LowRank {
    /// Columns of `U` for rows of `dim` columns.
    fn columns(&self, dim: u32) -> u32 {
        match self.rank {
            Rank::Columns(k) => k.min(dim),
            // `check` has refused it.
            Rank::Energy(_) => dim,
        }
    }

    /// Parts of `U`; the basis comes behind them.
    fn factor_parts(&self, rows: u64, columns: u32) -> Vec<Part> {
        Shape::new(rows, u64::from(columns)).map(|shape| self.codec.parts(shape)).unwrap_or_default()
    }

    #[expect(clippy::cast_possible_truncation, reason = "a codec has few parts")]
    fn basis_part(&self) -> u32 {
        self.factor_parts(0, 1).len() as u32
    }
}

impl Codec for LowRank {
    fn fmt_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank {
            Rank::Columns(k) => write!(f, "lowrank:k={k}/")?,
            Rank::Energy(share) => write!(f, "lowrank:energy={share}/")?,
        }
        self.codec.fmt_scheme(f)
    }

    #[cfg(feature = "lowrank")]
    fn fit(&self, rows: &mut dyn Rows) -> Result<Option<Arc<dyn Codec>>, EncodeError> {
        if self.fitted.is_some() {
            return Ok(None);
        }
        let (rank, fitted) = fit::fit(self.rank, rows)?;
        Ok(Some(Arc::new(Self { rank, codec: self.codec.clone(), fitted: Some(Arc::new(fitted)) })))
    }

    #[cfg(not(feature = "lowrank"))]
    fn fit(&self, rows: &mut dyn Rows) -> Result<Option<Arc<dyn Codec>>, EncodeError> {
        Err(EncodeError::Unfit {
            scheme: super::Scheme::of(Arc::new(self.clone())).to_string(),
            dim: rows.shape().dim(),
            reason: "this build reads such tables and makes none; the feature `lowrank` fits them".to_owned(),
        })
    }

    fn figures(&self) -> Vec<FitFigure> {
        let Some(fitted) = &self.fitted else { return Vec::new() };
        vec![
            FitFigure { name: "rank", value: f64::from(fitted.rank) },
            FitFigure { name: "energy kept", value: fitted.energy },
        ]
    }

    fn shared_part(&self, _part: usize) -> Vec<u8> {
        self.fitted.iter().flat_map(|fitted| &fitted.basis).flat_map(|value| value.to_le_bytes()).collect()
    }

    fn check(&self, dim: u32) -> Result<(), String> {
        if let Rank::Energy(_) = self.rank {
            return Err("its rank depends on the rows: `Encoder::fit` finds it".to_owned());
        }
        self.codec.check(self.columns(dim))
    }

    fn parts(&self, shape: Shape) -> Vec<Part> {
        let columns = self.columns(shape.dim());
        let mut parts = self.factor_parts(u64::from(shape.rows()), columns);
        let basis = vec![u64::from(columns), u64::from(shape.dim())];
        parts.push(Part::shared("basis", Dtype::F32, Category::Payload, basis));
        parts
    }

    fn encode_rows(&self, dim: usize, values: &[f32], parts: &mut [&mut [u8]]) -> Result<(), Misfit> {
        let Some(fitted) = &self.fitted else {
            return Err(Misfit { index: 0, reason: "the scheme was not fitted to the table" });
        };
        let Some((_, parts)) = parts.split_last_mut() else { unreachable!("a basis") };
        let columns = fitted.basis.len() / dim;
        let factor = decode::project(dim, &fitted.basis, values);
        if let Some(index) = factor.iter().position(|value| !value.is_finite()) {
            return Err(Misfit {
                index: index / columns * dim,
                reason: "the row's product with the basis is over f32's range",
            });
        }
        // What does not fit the codec is a value of `U`: the row's first is named.
        let misfit = |misfit: Misfit| Misfit { index: misfit.index / columns * dim, ..misfit };
        self.codec.encode_rows(columns, &factor, parts).map_err(misfit)
    }

    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]) {
        let Some((basis, parts)) = parts.split_last() else { unreachable!("a basis") };
        let basis: Cow<'_, [f32]> = match bytemuck::try_cast_slice(basis) {
            Ok(basis) if cfg!(target_endian = "little") => Cow::Borrowed(basis),
            _ => basis.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
        };
        decode::decode(dim, &basis, rows, out, |columns, rows, factor| {
            self.codec.decode_rows(columns, parts, rows, factor);
        });
    }

    fn error_bound(&self, row: &[f32]) -> f64 {
        let dim = u32::try_from(row.len()).unwrap_or(u32::MAX);
        let columns = self.columns(dim.max(1));
        let norm = row.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
        // No value of `U` is over the norm: a row of both ends has the widest range there may be.
        #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
        let end = (norm as f32).next_up().min(f32::MAX);
        let factor: Vec<f32> = (0..columns).map(|column| if column % 2 == 0 { end } else { -end }).collect();
        let codec = self.codec.error_bound(&factor) * f64::from(columns).sqrt();
        norm + codec + f64::from(columns + dim) * (2f64.powi(-22) * norm + 2f64.powi(-125))
    }

    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64 {
        let Some((basis, parts)) = parts.split_last() else { unreachable!("a basis") };
        let columns = basis.len() / 4 / dim;
        let number =
            |at: usize| f64::from(f32::from_le_bytes([basis[at], basis[at + 1], basis[at + 2], basis[at + 3]]));
        let term = |j: usize| self.codec.reference(columns, parts, row, j) * number((j * dim + column) * 4);
        (0..columns).map(term).sum()
    }

    fn rounding(&self, row: &[f64]) -> f64 {
        let columns = f64::from(self.columns(u32::try_from(row.len()).unwrap_or(u32::MAX)));
        let norm = row.iter().map(|value| value * value).sum::<f64>().sqrt();
        let codec = self.codec.rounding(&[norm]) * columns.sqrt();
        codec + 1.01 * (columns + 3.0) * (2f64.powi(-24) * norm + 2f64.powi(-126))
    }

    fn shader(&self) -> Shader {
        let factor = include_str!("../../shaders/factor/lowrank.wgsl");
        Shader { stem: "lowrank", factor, ..self.codec.shader() }
    }

    fn turns(&self, dim: u32) -> u32 {
        // A turn a column of `U`, one for each 16 of them, and those of their decoder.
        let columns = self.columns(dim);
        columns + columns.div_ceil(16) * (1 + self.codec.turns(columns))
    }

    fn constants(&self, dim: u32) -> Vec<(&'static str, f64)> {
        let columns = self.columns(dim);
        let mut constants = self.codec.constants(columns);
        constants.push(("CODEC_DIM", f64::from(columns)));
        constants.push(("BASIS_PART", f64::from(self.basis_part())));
        constants
    }
}

#[cfg(all(test, feature = "lowrank"))]
mod tests;
