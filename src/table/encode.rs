//! From rows to parts, block by block, on all cores.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::report::Tally;
use crate::{
    error::EncodeError,
    scheme::{Codec, Scheme, TableSpec, simd::fold},
    source::{PartSink, RowSource},
    table::{EncodeReport, EncodedTable},
};

/// How far an encoding has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rows encoded so far.
    pub done: u32,
    /// Rows in all.
    pub rows: u32,
}

/// f32 values that are read at a time: 4 MiB of them.
const BLOCK_VALUES: usize = 1 << 20;
/// f32 values that one task encodes: 64 KiB of them, which stay in a core's cache with what they become.
const TASK_VALUES: usize = 1 << 14;

/// Encodes tables by one scheme.
///
/// Memory: one block of 4 MiB of rows (or one row, where that is larger) and its codes, beside what the sink keeps.
/// The result does not depend on the number of cores or their instruction set.
pub struct Encoder<'a> {
    scheme: Scheme,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
}

impl std::fmt::Debug for Encoder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl<'a> Encoder<'a> {
    /// An encoder by `scheme`.
    #[must_use]
    pub fn new(scheme: &Scheme) -> Self {
        Self { scheme: scheme.clone(), progress: None }
    }

    /// Calls `progress` after each block.
    #[must_use]
    pub fn on_progress(mut self, progress: impl FnMut(Progress) + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Encodes `source` into host memory.
    ///
    /// # Errors
    /// As [`Encoder::run`].
    pub fn table(self, name: &str, source: &mut dyn RowSource) -> Result<(EncodedTable, EncodeReport), EncodeError> {
        let spec = self.scheme.spec(source.shape())?;
        let mut table = EncodedTable::zeroed(name, spec)?;
        let report = self.run(source, &mut table)?;
        Ok((table, report))
    }

    /// Encodes `source` into `sink`.
    ///
    /// # Errors
    /// [`EncodeError::NotFinite`] for the first NaN or infinity, [`EncodeError::Precision`] for the first value the scheme
    /// cannot hold, [`EncodeError::Unfit`] where the scheme does not take such rows, [`EncodeError::Source`] where source
    /// or sink fail. The sink may then have taken some parts' first bytes.
    pub fn run(mut self, source: &mut dyn RowSource, sink: &mut dyn PartSink) -> Result<EncodeReport, EncodeError> {
        let shape = source.shape();
        let spec = self.scheme.spec(shape)?;
        let dim = shape.dim() as usize;
        let block_rows = (BLOCK_VALUES / dim).max(1).min(shape.rows().max(1) as usize);
        let mut values = vec![0f32; block_rows * dim];
        let mut parts: Vec<Vec<u8>> = row_widths(&spec).map(|width| vec![0; block_rows * width]).collect();
        let mut tally = Tally::default();
        let mut first = 0;
        while first < shape.rows() {
            let rows = (shape.rows() - first).min(u32::try_from(block_rows).unwrap_or(u32::MAX));
            let values = &mut values[..rows as usize * dim];
            source.read_rows(first, values)?;
            tally = tally.merge(encode_block(&spec, first, values, &mut parts)?);
            for (number, (part, width)) in parts.iter().zip(row_widths(&spec)).enumerate() {
                sink.write_part(number, u64::from(first) * width as u64, &part[..rows as usize * width])?;
            }
            first += rows;
            if let Some(progress) = &mut self.progress {
                progress(Progress { done: first, rows: shape.rows() });
            }
        }
        Ok(tally.report(spec))
    }
}

/// Bytes of a row in each part.
fn row_widths(spec: &TableSpec) -> impl Iterator<Item = usize> {
    #[expect(clippy::cast_possible_truncation, reason = "a row has at most 2^20 columns of a few bytes")]
    spec.parts().iter().map(|part| part.row_bytes() as usize)
}

/// Encodes rows from `first` on into the beginning of `parts`, and measures the error.
fn encode_block(spec: &TableSpec, first: u32, values: &[f32], parts: &mut [Vec<u8>]) -> Result<Tally, EncodeError> {
    let dim = spec.shape().dim() as usize;
    let task_rows = (TASK_VALUES / dim).max(1);
    let mut tasks: Vec<Task<'_>> = values
        .chunks(task_rows * dim)
        .zip((first..).step_by(task_rows))
        .map(|(values, first)| Task { first, values, parts: Vec::new() })
        .collect();
    for (part, width) in parts.iter_mut().zip(row_widths(spec)) {
        for (task, bytes) in tasks.iter_mut().zip(part.chunks_mut(task_rows * width)) {
            task.parts.push(&mut bytes[..task.values.len() / dim * width]);
        }
    }
    // Collected before they are merged: the first error in row order is the one that is told.
    let tallies: Vec<_> = tasks.into_par_iter().map_init(Vec::new, |stored, task| task.run(spec, stored)).collect();
    tallies.into_iter().try_fold(Tally::default(), |sum, tally| Ok(sum.merge(tally?)))
}

/// Rows that one thread encodes at a time.
struct Task<'a> {
    first: u32,
    values: &'a [f32],
    parts: Vec<&'a mut [u8]>,
}

impl Task<'_> {
    /// Encodes and measures; `stored` is scratch.
    fn run(mut self, spec: &TableSpec, stored: &mut Vec<f32>) -> Result<Tally, EncodeError> {
        let dim = spec.shape().dim() as usize;
        if !all_finite(self.values) {
            let index = self.values.iter().position(|value| !value.is_finite()).unwrap_or(0);
            let (row, column) = self.place(index, dim);
            return Err(EncodeError::NotFinite { row, column, value: self.values[index] });
        }
        let codec: &dyn Codec = &**spec.scheme().codec();
        codec.encode_rows(dim, self.values, &mut self.parts).map_err(|misfit| {
            let (row, column) = self.place(misfit.index, dim);
            EncodeError::Precision {
                row,
                column,
                value: self.values[misfit.index],
                scheme: spec.scheme().to_string(),
                reason: misfit.reason,
            }
        })?;
        Ok(self.measure(codec, dim, stored))
    }

    /// Decodes what was encoded and compares.
    fn measure(&self, codec: &dyn Codec, dim: usize, stored: &mut Vec<f32>) -> Tally {
        let parts: Vec<&[u8]> = self.parts.iter().map(|part| &**part).collect();
        let rows: Vec<u32> = (0..).take(self.values.len() / dim).collect();
        stored.resize(self.values.len(), 0.0);
        codec.decode_rows(dim, &parts, &rows, stored);
        Tally::of(self.first, dim, self.values, stored)
    }

    /// Row and column of the value at `index`.
    fn place(&self, index: usize, dim: usize) -> (u64, u32) {
        let column = u32::try_from(index % dim).unwrap_or(u32::MAX);
        (u64::from(self.first) + (index / dim) as u64, column)
    }
}

/// Whether no value is NaN or infinite.
fn all_finite(values: &[f32]) -> bool {
    struct Finite<'a>(&'a [f32]);
    impl WithSimd for Finite<'_> {
        type Output = bool;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _simd: S) -> bool {
            let largest = |bits: u32, value: f32| bits.max(value.to_bits() & 0x7fff_ffff);
            fold(self.0, 0, largest, u32::max) < f32::INFINITY.to_bits()
        }
    }
    Arch::new().dispatch(Finite(values))
}
