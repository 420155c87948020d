//! Rows of stored values, on the host.

use std::ops::Range;

use super::{COLUMNS, Sparse, VALUES};
use crate::scheme::{BaggedRows, Dtype, NO_ROW, f16::widen};

/// The parts of a table, or of some rows of it that follow one another.
pub(super) struct Stored<'a> {
    pub(super) dim: usize,
    values: &'a [u8],
    dtype: Dtype,
    pub(super) columns: Numbers<'a>,
    /// Of COO: numbers of rows among `every`.
    pub(super) rows: Option<&'a [u8]>,
    pub(super) starts: Numbers<'a>,
    pub(super) every: usize,
}

/// Whole numbers, little endian.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    bytes: &'a [u8],
    dtype: Dtype,
}

impl Numbers<'_> {
    #[inline(always)]
    pub(super) fn get(self, at: usize) -> usize {
        match self.dtype {
            Dtype::U32 => u32::from_le_bytes(self.bytes.as_chunks().0[at]) as usize,
            Dtype::U16 => usize::from(u16::from_le_bytes(self.bytes.as_chunks().0[at])),
            _ => usize::from(self.bytes[at]),
        }
    }

    pub(super) fn len(self) -> usize {
        self.bytes.len() / usize::from(self.dtype.bytes().to_le_bytes()[0])
    }
}

impl Sparse {
    pub(super) fn stored<'a>(&self, dim: usize, parts: &[&'a [u8]]) -> Stored<'a> {
        let columns = Self::column_dtype(u32::try_from(dim).unwrap_or(u32::MAX));
        Stored {
            dim,
            values: parts[VALUES],
            dtype: self.dtype,
            columns: Numbers { bytes: parts[COLUMNS], dtype: columns },
            rows: self.has_rows().then(|| parts[COLUMNS + 1]),
            starts: Numbers { bytes: parts[parts.len() - 1], dtype: Dtype::U32 },
            every: self.every as usize,
        }
    }
}

impl Stored<'_> {
    /// The values that begin with item `block` of `starts`.
    #[inline(always)]
    pub(super) fn block(&self, block: usize) -> Range<usize> {
        // A part of a table's starts count from that of the table.
        let first = self.starts.get(0);
        self.starts.get(block) - first..self.starts.get(block + 1) - first
    }

    /// The values of a row.
    #[inline(always)]
    fn row(&self, row: usize) -> Range<usize> {
        let block = self.block(row / self.every);
        let Some(rows) = self.rows else { return block };
        let rows = &rows[block.clone()];
        let among = row % self.every;
        let begin = rows.partition_point(|row| usize::from(*row) < among);
        let length = rows[begin..].partition_point(|row| usize::from(*row) == among);
        block.start + begin..block.start + begin + length
    }

    /// Calls `visit` with the columns and values of a row, in order.
    #[inline(always)]
    fn visit(&self, row: usize, mut visit: impl FnMut(usize, f32)) {
        let range = self.row(row);
        match self.dtype {
            Dtype::F32 => {
                let values = &self.values.as_chunks().0[range.clone()];
                range.zip(values).for_each(|(at, value)| visit(self.columns.get(at), f32::from_le_bytes(*value)));
            }
            _ => {
                let values = &self.values.as_chunks().0[range.clone()];
                range
                    .zip(values)
                    .for_each(|(at, value)| visit(self.columns.get(at), widen(u16::from_le_bytes(*value))));
            }
        }
    }

    /// As [`Codec::decode_rows`](crate::scheme::Codec::decode_rows).
    pub(super) fn decode(&self, rows: &[u32], out: &mut [f32]) {
        out.fill(0.0);
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(self.dim)) {
            if *row != NO_ROW {
                self.visit(*row as usize, |column, value| out[column] = value);
            }
        }
    }

    /// As [`Codec::pool_rows`](crate::scheme::Codec::pool_rows) of a sum with finite weights.
    pub(super) fn sum(&self, bags: &BaggedRows<'_>, out: &mut [f32]) {
        let mut begin = 0;
        for (end, out) in bags.ends.iter().zip(out.chunks_exact_mut(self.dim)) {
            for at in begin..*end {
                if bags.rows[at] == NO_ROW {
                    continue;
                }
                let row = bags.rows[at] as usize;
                match bags.weights {
                    None => self.visit(row, |column, value| out[column] += value),
                    Some(weights) => self.visit(row, |column, value| out[column] += value * weights[at]),
                }
            }
            begin = *end;
        }
    }
}
