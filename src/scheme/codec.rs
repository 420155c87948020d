//! What a scheme has to say for the encoder, the host backend, the shaders and the tests.

use std::{fmt, ops::Range, sync::Arc};

use super::{
    Buckets,
    part::Part,
    pool::{BaggedRows, pool_decoded},
};
use crate::{error::EncodeError, units::Shape};

/// A row number that names no row: decoded as zeros.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// A codec's half of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shader {
    /// Name of the scheme; labels carry it.
    pub(crate) stem: &'static str,
    /// The index's text: `row_of`.
    pub(crate) index: &'static str,
    /// The codec's text: `Row`, `open_row`, `touch`, `decode16` (the contract stands in `shaders/contract.wgsl`).
    pub(crate) codec: &'static str,
    /// The factor's text: `CODEC_DIM`, `load16`.
    pub(crate) factor: &'static str,
}

impl Shader {
    /// That of a codec whose stored columns are the table's.
    pub(super) fn plain(stem: &'static str, codec: &'static str) -> Self {
        let index = include_str!("../../shaders/index/direct.wgsl");
        Self { stem, index, codec, factor: include_str!("../../shaders/factor/none.wgsl") }
    }
}

/// The rows of a table, to be gone through as often as a fit needs. They are finite.
pub(crate) trait Rows {
    /// Rows and columns.
    fn shape(&self) -> Shape;

    /// Calls `visit` with all rows in order, some at a time: `[n, dim]`.
    fn pass(&mut self, visit: &mut dyn FnMut(&[f32])) -> Result<(), EncodeError>;
}

/// Rows that are stored in place of a table's own, as a fit has found them.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) shape: Shape,
    /// `[rows, dim]`, finite.
    pub(crate) values: Vec<f32>,
    /// The table's first row that each of them stands for; [`NO_ROW`] where it stands for none.
    pub(crate) firsts: Vec<u32>,
}

impl Rows for Stored {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn pass(&mut self, visit: &mut dyn FnMut(&[f32])) -> Result<(), EncodeError> {
        visit(&self.values);
        Ok(())
    }
}

/// A figure that a fit tells of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitFigure {
    /// What it is.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

/// A value that a scheme cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Index of the value among those given.
    pub(crate) index: usize,
    /// Why.
    pub(crate) reason: &'static str,
}

/// One way to store a row.
///
/// `parts` are always slices of the tensors that [`Codec::parts`] lists, in that order, little endian, row 0 first.
/// Values are finite: the encoder has checked. Slices have the lengths that follow from the parts: callers have checked.
pub(crate) trait Codec: fmt::Debug + Send + Sync {
    /// Writes the scheme as it parses.
    fn fmt_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Looks through the rows of a table before they are encoded, where the scheme has something to learn of them. The answer is
    /// the scheme that has learnt it; `None` where there is nothing to learn.
    fn fit(&self, _rows: &mut dyn Rows) -> Result<Option<Arc<dyn Codec>>, EncodeError> {
        Ok(None)
    }

    /// Which stored row an id reads, where ids are no row numbers. All methods but [`Codec::reference`] count stored rows.
    fn buckets(&self) -> Option<Buckets> {
        None
    }

    /// What stores the rows that [`Codec::buckets`] finds.
    fn behind_index(&self) -> Option<Arc<dyn Codec>> {
        None
    }

    /// The rows to encode, for a scheme that was fitted and stores others than the table's.
    fn stored(&self) -> Option<&Stored> {
        None
    }

    /// The scheme without [`Codec::stored`], which is one table's and of no use once it is encoded; `None` where it has
    /// none.
    fn without_rows(&self) -> Option<Arc<dyn Codec>> {
        None
    }

    /// What a fit found.
    fn figures(&self) -> Vec<FitFigure> {
        Vec::new()
    }

    /// The bytes of a part that all rows share, for a scheme that was fitted.
    fn shared_part(&self, _part: usize) -> Vec<u8> {
        Vec::new()
    }

    /// Whether rows of `dim` columns can be stored; the reason where not.
    fn check(&self, _dim: u32) -> Result<(), String> {
        Ok(())
    }

    /// The ranges of rows of a table that are stored each in its own way, with what stores them; nothing where all rows are
    /// stored alike. Their parts follow one another in [`Codec::parts`].
    fn bands(&self, _rows: u32) -> Vec<(Range<u32>, Arc<dyn Codec>)> {
        Vec::new()
    }

    /// The tensors of a table of that shape, or band: at most four, the codes first.
    fn parts(&self, shape: Shape) -> Vec<Part>;

    /// Encodes whole rows of `dim` columns; slices of shared parts are left alone.
    fn encode_rows(&self, dim: usize, values: &[f32], parts: &mut [&mut [u8]]) -> Result<(), Misfit>;

    /// Decodes the listed rows ([`NO_ROW`] gives zeros) to `out: [rows.len(), dim]`.
    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]);

    /// Folds the listed rows of each bag, in order, into that bag's row of `out: [bags, dim]`, which holds what was folded
    /// before: the same bits as decoding, multiplying by the weight if there is one, and then adding, one row after another.
    fn pool_rows(&self, dim: usize, parts: &[&[u8]], bags: &BaggedRows<'_>, out: &mut [f32]) {
        pool_decoded(self, dim, parts, bags, out);
    }

    /// The largest `|decoded - value|` in a row of these values, as it is encoded.
    fn error_bound(&self, row: &[f32]) -> f64;

    /// One element of a row of the table by the definition of the format, in f64 and without the decoder's code: what tests
    /// believe.
    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64;

    /// How far decoders, which compute in f32, may be from the reference; 0 where they give the reference rounded to f32.
    /// `row` is a row by the reference.
    fn rounding(&self, _row: &[f64]) -> f64 {
        0.0
    }

    /// The WGSL decoder.
    fn shader(&self) -> Shader;

    /// Turns of the shader's loops for 16 columns, about.
    fn turns(&self, _dim: u32) -> u32 {
        1
    }

    /// Values of the decoder's own `override` constants.
    fn constants(&self, _dim: u32) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}
