//! From rows to parts, block by block, on all cores.

use std::sync::Arc;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::report::Tally;
use crate::{
    error::EncodeError,
    scheme::{Band, Codec, Rows, Scheme, TableSpec, simd::fold},
    source::{PartSink, RowSource},
    table::{EncodeReport, EncodedTable},
    units::Shape,
};

/// How far an encoding has come. Where a scheme learns of the rows first, each pass over them counts from 0.
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
/// Memory: one block of 4 MiB of rows (or one row, where that is larger) and its codes, beside what the sink keeps, and what a
/// scheme says that its fit takes.
/// The result does not depend on the number of cores or their instruction set.
pub struct Encoder<'a> {
    scheme: Scheme,
    frequencies: Option<Arc<[f32]>>,
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
        Self { scheme: scheme.clone(), frequencies: None, progress: None }
    }

    /// How often each row is asked for, in any unit: `[rows]`. Where rows share what is stored (`hash`, `multihash`, `qr`), the
    /// error of each then weighs as much, unless the scheme has `weights=equal`, and the report's shares of traffic are of
    /// these. Without them rows are taken to be in the order of Zipf's law. Other schemes make no use of them.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{EncodedTable, Encoder, SliceSource};
    /// // Rows 0 and 2 share a stored row, as do rows 1 and 3.
    /// let mut rows = SliceSource::new(&[1.0, 2.0, 5.0, 4.0], 1)?;
    /// let encoder = Encoder::new(&"hash:rows=2/f32".parse()?).frequencies([3.0, 1.0, 1.0, 0.0]);
    /// let (table, _) = encoder.table("shared", &mut rows)?;
    /// assert_eq!([table.reference(0, 0), table.reference(1, 0)], [2.0, 2.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn frequencies(mut self, frequencies: impl Into<Arc<[f32]>>) -> Self {
        self.frequencies = Some(frequencies.into());
        self
    }

    /// Calls `progress` after each block.
    #[must_use]
    pub fn on_progress(mut self, progress: impl FnMut(Progress) + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Lets the scheme look through the rows, where it has something to learn of them. [`Encoder::run`] does so by itself;
    /// this is for schemes whose size follows from the rows, such as `lowrank:energy=0.95/f32`.
    ///
    /// # Errors
    /// [`EncodeError::NotFinite`] for the first NaN or infinity, [`EncodeError::Unfit`] where the scheme does not take such
    /// rows, [`EncodeError::Frequencies`], [`EncodeError::Frequency`] and [`EncodeError::NoTraffic`] for frequencies
    /// that are none of these rows, [`EncodeError::Source`] where the source fails.
    pub fn fit(mut self, source: &mut dyn RowSource) -> Result<Self, EncodeError> {
        if let Some(frequencies) = &self.frequencies {
            check_frequencies(frequencies, source.shape().rows())?;
        }
        let mut rows = Passes { source, frequencies: self.frequencies.clone(), progress: self.progress.as_deref_mut() };
        if let Some(codec) = self.scheme.codec().fit(&mut rows)? {
            self.scheme = Scheme::of(codec);
        }
        Ok(self)
    }

    /// The scheme that rows are encoded by: after [`Encoder::fit`], the one that has learnt of them.
    #[must_use]
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Encodes `source` into host memory.
    ///
    /// # Errors
    /// As [`Encoder::run`].
    pub fn table(
        mut self,
        name: &str,
        source: &mut dyn RowSource,
    ) -> Result<(EncodedTable, EncodeReport), EncodeError> {
        self = self.fit(source)?;
        let spec = self.scheme.spec(source.shape())?;
        let mut table = EncodedTable::zeroed(name, spec.without_rows())?;
        let report = self.run(source, &mut table)?;
        Ok((table, report))
    }

    /// Encodes `source` into `sink`.
    ///
    /// # Errors
    /// [`EncodeError::NotFinite`] for the first NaN or infinity, [`EncodeError::Precision`] for the first value the scheme
    /// cannot hold, [`EncodeError::Unfit`] and those of frequencies as [`Encoder::fit`], [`EncodeError::Source`] where source or sink fail. The sink may then have taken some parts' first bytes.
    pub fn run(mut self, source: &mut dyn RowSource, sink: &mut dyn PartSink) -> Result<EncodeReport, EncodeError> {
        self = self.fit(source)?;
        let spec = self.scheme.spec(source.shape())?;
        let tally = match spec.scheme().codec().stored() {
            None => self.encode(&spec, source, sink, |_, _, _, _| ())?,
            Some(stored) => self.encode_stored(&spec, stored, source, sink)?,
        };
        Ok(tally.report(spec))
    }

    /// Encodes all of `source`, whose rows are those that `spec` stores, and measures the error. `each` gets the first row of
    /// a block, the number of its rows, and what they became: parts that all rows share, and the others.
    pub(super) fn encode(
        &mut self,
        spec: &TableSpec,
        source: &mut dyn RowSource,
        sink: &mut dyn PartSink,
        mut each: impl FnMut(u32, u32, &[Vec<u8>], &[Vec<u8>]),
    ) -> Result<Tally, EncodeError> {
        let shape = source.shape();
        let dim = shape.dim() as usize;
        let block_rows = (BLOCK_VALUES / dim).max(1).min(shape.rows().max(1) as usize);
        let mut values = vec![0f32; block_rows * dim];
        let mut tally = Tally::default();
        for band in spec.bands() {
            let shared = write_shared(&band, sink)?;
            let mut parts: Vec<Vec<u8>> = row_widths(&band.spec).map(|width| vec![0; block_rows * width]).collect();
            let band_rows = band.spec.stored_rows();
            for done in (0..band_rows).step_by(block_rows) {
                let rows = (band_rows - done).min(u32::try_from(block_rows).unwrap_or(u32::MAX));
                let values = &mut values[..rows as usize * dim];
                let first = band.first_row + done;
                source.read_rows(first, values)?;
                tally = tally.merge(encode_block(&band.spec, &shared, first, values, &mut parts)?);
                for (number, (part, width)) in parts.iter().zip(row_widths(&band.spec)).enumerate() {
                    // Of a part that all rows share, rows have nothing.
                    if width > 0 {
                        let bytes = &part[..rows as usize * width];
                        sink.write_part(band.parts.start + number, u64::from(done) * width as u64, bytes)?;
                    }
                }
                each(first, rows, &shared, &parts);
                if let Some(progress) = &mut self.progress {
                    progress(Progress { done: first + rows, rows: shape.rows() });
                }
            }
        }
        Ok(tally)
    }

    /// Calls `visit` with all rows of `source` in order, some at a time; they are finite.
    pub(super) fn pass(
        &mut self,
        source: &mut dyn RowSource,
        visit: &mut dyn FnMut(&[f32]),
    ) -> Result<(), EncodeError> {
        Passes { source, frequencies: None, progress: self.progress.as_deref_mut() }.pass(visit)
    }
}

/// Writes the parts that all rows of a band share, and gives their bytes; no bytes for the other parts.
fn write_shared(band: &Band, sink: &mut dyn PartSink) -> Result<Vec<Vec<u8>>, EncodeError> {
    let mut shared = Vec::new();
    for (number, part) in band.spec.parts().iter().enumerate() {
        let mut bytes = Vec::new();
        if part.is_shared() {
            bytes = band.spec.scheme().codec().shared_part(number);
            sink.write_part(band.parts.start + number, 0, &bytes)?;
        }
        shared.push(bytes);
    }
    Ok(shared)
}

/// Bytes of a row in each part.
fn row_widths(spec: &TableSpec) -> impl Iterator<Item = usize> {
    #[expect(clippy::cast_possible_truncation, reason = "a row has at most 2^20 columns of a few bytes")]
    spec.parts().iter().map(|part| part.row_bytes() as usize)
}

/// Encodes rows from `first` on into the beginning of `parts`, and measures the error.
fn encode_block(
    spec: &TableSpec,
    shared: &[Vec<u8>],
    first: u32,
    values: &[f32],
    parts: &mut [Vec<u8>],
) -> Result<Tally, EncodeError> {
    let dim = spec.shape().dim() as usize;
    let task_rows = (TASK_VALUES / dim).max(1);
    let mut tasks: Vec<Task<'_>> = values
        .chunks(task_rows * dim)
        .zip((first..).step_by(task_rows))
        .map(|(values, first)| Task { first, values, parts: Vec::new() })
        .collect();
    for (part, width) in parts.iter_mut().zip(row_widths(spec)) {
        // Nothing of a part that all rows share.
        let mut rest = part.as_mut_slice();
        for task in &mut tasks {
            let (bytes, behind) = rest.split_at_mut(task.values.len() / dim * width);
            task.parts.push(bytes);
            rest = behind;
        }
    }
    // Collected before they are merged: the first error in row order is the one that is told.
    let tallies: Vec<_> =
        tasks.into_par_iter().map_init(Vec::new, |stored, task| task.run(spec, shared, stored)).collect();
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
    fn run(mut self, spec: &TableSpec, shared: &[Vec<u8>], stored: &mut Vec<f32>) -> Result<Tally, EncodeError> {
        let dim = spec.shape().dim() as usize;
        refuse_not_finite(self.first, dim, self.values)?;
        let codec: &dyn Codec = &**spec.scheme().codec();
        codec.encode_rows(dim, self.values, &mut self.parts).map_err(|misfit| {
            let (row, column) = place(self.first, misfit.index, dim);
            EncodeError::Precision {
                row,
                column,
                value: self.values[misfit.index],
                scheme: spec.scheme().to_string(),
                reason: misfit.reason,
            }
        })?;
        Ok(self.measure(codec, dim, shared, stored))
    }

    /// Decodes what was encoded and compares.
    fn measure(&self, codec: &dyn Codec, dim: usize, shared: &[Vec<u8>], stored: &mut Vec<f32>) -> Tally {
        // Of a part that all rows share, the task has nothing.
        let parts: Vec<&[u8]> = self
            .parts
            .iter()
            .zip(shared)
            .map(|(part, shared)| if shared.is_empty() { &**part } else { shared })
            .collect();
        let rows: Vec<u32> = (0..).take(self.values.len() / dim).collect();
        stored.resize(self.values.len(), 0.0);
        codec.decode_rows(dim, &parts, &rows, stored);
        Tally::of(self.first, dim, self.values, stored)
    }
}

/// Row and column of the value at `index` of rows from `first` on.
fn place(first: u32, index: usize, dim: usize) -> (u64, u32) {
    (u64::from(first) + (index / dim) as u64, u32::try_from(index % dim).unwrap_or(u32::MAX))
}

/// A source as schemes see it that learn of its rows.
struct Passes<'a, 'b> {
    source: &'a mut dyn RowSource,
    frequencies: Option<Arc<[f32]>>,
    progress: Option<&'a mut (dyn FnMut(Progress) + 'b)>,
}

impl Rows for Passes<'_, '_> {
    fn shape(&self) -> Shape {
        self.source.shape()
    }

    fn frequencies(&self) -> Option<Arc<[f32]>> {
        self.frequencies.clone()
    }

    fn pass(&mut self, visit: &mut dyn FnMut(&[f32])) -> Result<(), EncodeError> {
        let (rows, dim) = (self.source.shape().rows(), self.source.shape().dim() as usize);
        let block = (BLOCK_VALUES / dim).max(1).min(rows.max(1) as usize);
        let mut values = vec![0f32; block * dim];
        for first in (0..rows).step_by(block) {
            let values = &mut values[..block.min((rows - first) as usize) * dim];
            self.source.read_rows(first, values)?;
            refuse_not_finite(first, dim, values)?;
            visit(values);
            if let Some(progress) = &mut self.progress {
                progress(Progress { done: first + u32::try_from(values.len() / dim).unwrap_or(u32::MAX), rows });
            }
        }
        Ok(())
    }
}

/// Refuses frequencies that are not those of so many rows.
fn check_frequencies(frequencies: &[f32], rows: u32) -> Result<(), EncodeError> {
    if frequencies.len() as u64 != u64::from(rows) {
        return Err(EncodeError::Frequencies { got: frequencies.len() as u64, rows });
    }
    if let Some(row) = frequencies.iter().position(|frequency| !frequency.is_finite() || *frequency < 0.0) {
        return Err(EncodeError::Frequency { row: row as u64, value: frequencies[row] });
    }
    if rows > 0 && frequencies.iter().all(|frequency| *frequency == 0.0) {
        return Err(EncodeError::NoTraffic { rows });
    }
    Ok(())
}

/// Refuses rows, from `first` on, that hold a NaN or an infinity.
fn refuse_not_finite(first: u32, dim: usize, values: &[f32]) -> Result<(), EncodeError> {
    if all_finite(values) {
        return Ok(());
    }
    let index = values.iter().position(|value| !value.is_finite()).unwrap_or(0);
    let (row, column) = place(first, index, dim);
    Err(EncodeError::NotFinite { row, column, value: values[index] })
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
