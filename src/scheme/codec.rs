//! What a scheme has to say for the encoder, the host backend, the shaders and the tests.

use std::fmt;

use super::part::Part;
use crate::units::Shape;

/// A row number that names no row: decoded as zeros.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// A codec's half of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shader {
    /// Name of the scheme; labels carry it.
    pub(crate) stem: &'static str,
    /// Its text: `Row`, `open_row`, `touch`, `decode16` (the contract stands in `shaders/contract.wgsl`).
    pub(crate) source: &'static str,
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

    /// Whether rows of `dim` columns can be stored; the reason where not.
    fn check(&self, _dim: u32) -> Result<(), String> {
        Ok(())
    }

    /// The tensors of a table of that shape: at most four, the codes first.
    fn parts(&self, shape: Shape) -> Vec<Part>;

    /// Encodes whole rows of `dim` columns.
    fn encode_rows(&self, dim: usize, values: &[f32], parts: &mut [&mut [u8]]) -> Result<(), Misfit>;

    /// Decodes the listed rows ([`NO_ROW`] gives zeros) to `out: [rows.len(), dim]`.
    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]);

    /// The largest `|decoded - value|` in a row of these values.
    fn error_bound(&self, row: &[f32]) -> f64;

    /// One element by the definition of the format, in f64 and without the decoder's code: what tests believe.
    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64;

    /// The WGSL decoder.
    fn shader(&self) -> Shader;

    /// Values of the decoder's own `override` constants.
    fn constants(&self, _dim: u32) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}
