//! Rows encoded on all cores, and measured.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::report::Tally;
use crate::{
    error::EncodeError,
    scheme::{Codec, Part, TableSpec, simd::fold},
};

/// f32 values that one task encodes: 64 KiB of them, which stay in a core's cache with what they become.
const TASK_VALUES: usize = 1 << 14;

/// Bytes of an item of a part that tells where rows begin.
pub(super) const START: usize = 4;

/// Rows that are encoded at a time, as they become parts.
pub(super) struct Block<'a> {
    spec: &'a TableSpec,
    /// What rows became. A part that all rows share is whole.
    parts: Vec<Vec<u8>>,
    /// Where rows begin among the values of the table, and the last ends, where they have different numbers of those.
    starts: Vec<u8>,
    /// Values before the block, and at its end.
    values: (u64, u64),
    /// Values of each row.
    lengths: Vec<u32>,
}

impl<'a> Block<'a> {
    pub(super) fn new(spec: &'a TableSpec) -> Self {
        let codec = spec.scheme().codec();
        let shared =
            |(number, part): (usize, &Part)| if part.is_shared() { codec.shared_part(number) } else { Vec::new() };
        let parts = spec.parts().iter().enumerate().map(shared).collect();
        Self { spec, parts, starts: vec![0; START], values: (0, 0), lengths: Vec::new() }
    }

    /// Rows to an item that tells where they begin.
    fn every(&self) -> Option<usize> {
        self.spec.parts().iter().find_map(Part::starts_every).map(|every| every as usize)
    }

    /// The number of rows, or more, that begin and end where an item tells; at least one.
    pub(super) fn whole_starts(&self, rows: usize) -> usize {
        rows.max(1).next_multiple_of(self.every().unwrap_or(1))
    }

    /// Bytes of all parts, as decoders of the block's rows take them.
    pub(super) fn parts(&self) -> Vec<&[u8]> {
        let parts = self.spec.parts().iter().zip(&self.parts);
        parts.map(|(part, bytes)| if part.starts_every().is_some() { &*self.starts } else { &**bytes }).collect()
    }

    /// Encodes rows from `first` on in place of those before, and measures the error.
    pub(super) fn encode(&mut self, first: u32, values: &[f32]) -> Result<Tally, EncodeError> {
        let dim = self.spec.shape().dim() as usize;
        let (task_rows, every) = (self.whole_starts(TASK_VALUES / dim), self.every());
        self.count(dim, values, task_rows);
        let mut shared: Vec<&[u8]> = Vec::new();
        let mut own: Vec<(&Part, &mut [u8])> = Vec::new();
        for (part, bytes) in self.spec.parts().iter().zip(&mut self.parts) {
            if part.is_shared() {
                shared.push(bytes);
                own.push((part, &mut []));
                continue;
            }
            let rows = (values.len() / dim) as u64 * part.row_bytes();
            let of_values = if part.counts_values() { (self.values.1 - self.values.0) * part.item_bytes() } else { 0 };
            bytes.resize(usize::try_from(rows + of_values).unwrap_or(usize::MAX), 0);
            shared.push(&[]);
            own.push((part, bytes));
        }
        let mut tasks = Vec::new();
        for (number, values) in values.chunks(task_rows * dim).enumerate() {
            let rows = number * task_rows..number * task_rows + values.len() / dim;
            let mut task = Task { first: first + narrow(rows.start), values, parts: Vec::new(), starts: &[] };
            let mut length = 0;
            if let Some(every) = every {
                task.starts = &self.starts[rows.start / every * START..][..(rows.len().div_ceil(every) + 1) * START];
                length = self.lengths[rows.clone()].iter().map(|length| *length as usize).sum();
            }
            for (part, rest) in &mut own {
                let bytes = rows.len() * wide(part.row_bytes());
                let of_values = if part.counts_values() { length * wide(part.item_bytes()) } else { 0 };
                let (bytes, behind) = std::mem::take(rest).split_at_mut(bytes + of_values);
                task.parts.push(bytes);
                *rest = behind;
            }
            tasks.push(task);
        }
        // Collected before they are merged: the first error in row order is the one that is told.
        let spec = self.spec;
        let tallies: Vec<_> =
            tasks.into_par_iter().map_init(Vec::new, |stored, task| task.run(spec, &shared, stored)).collect();
        tallies.into_iter().try_fold(Tally::default(), |sum, tally| Ok(sum.merge(tally?)))
    }

    /// Counts the values that are stored of each row, where rows have different numbers of them.
    fn count(&mut self, dim: usize, values: &[f32], task_rows: usize) {
        let Some(every) = self.every() else { return };
        let codec = self.spec.scheme().codec();
        self.lengths.resize(values.len() / dim, 0);
        self.lengths
            .par_chunks_mut(task_rows)
            .zip(values.par_chunks(task_rows * dim))
            .for_each(|(lengths, values)| codec.lengths(dim, values, lengths));
        self.values.0 = self.values.1;
        self.starts.clear();
        for rows in self.lengths.chunks(every) {
            // Numbers of values fit: the scheme was fitted to the rows, and says how many there are.
            self.starts.extend_from_slice(&self.values.1.to_le_bytes()[..START]);
            self.values.1 += rows.iter().map(|length| u64::from(*length)).sum::<u64>();
        }
        self.starts.extend_from_slice(&self.values.1.to_le_bytes()[..START]);
    }
}

/// Rows that one thread encodes at a time.
struct Task<'a> {
    first: u32,
    values: &'a [f32],
    parts: Vec<&'a mut [u8]>,
    starts: &'a [u8],
}

impl Task<'_> {
    /// Encodes and measures; `stored` is scratch.
    fn run(mut self, spec: &TableSpec, shared: &[&[u8]], stored: &mut Vec<f32>) -> Result<Tally, EncodeError> {
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
        Ok(self.measure(spec, dim, shared, stored))
    }

    /// Decodes what was encoded and compares.
    fn measure(&self, spec: &TableSpec, dim: usize, shared: &[&[u8]], stored: &mut Vec<f32>) -> Tally {
        let whole = spec.parts().iter().zip(&self.parts).zip(shared).map(|((part, own), shared)| match part {
            part if part.is_shared() => *shared,
            part if part.starts_every().is_some() => self.starts,
            _ => &**own,
        });
        let parts: Vec<&[u8]> = whole.collect();
        let rows: Vec<u32> = (0..).take(self.values.len() / dim).collect();
        stored.resize(self.values.len(), 0.0);
        spec.scheme().codec().decode_rows(dim, &parts, &rows, stored);
        Tally::of(self.first, dim, self.values, stored)
    }
}

/// Row and column of the value at `index` of rows from `first` on.
fn place(first: u32, index: usize, dim: usize) -> (u64, u32) {
    (u64::from(first) + (index / dim) as u64, narrow(index % dim))
}

fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn wide(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Refuses rows, from `first` on, that hold a NaN or an infinity.
pub(super) fn refuse_not_finite(first: u32, dim: usize, values: &[f32]) -> Result<(), EncodeError> {
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
