//! Encoding rows that others share: those are stored, and measured is every row of the table.

use rayon::prelude::*;

use super::{Encoder, report::Tally};
use crate::{
    error::EncodeError,
    scheme::{NO_ROW, Scheme, Stored, TableSpec},
    source::{PartSink, RowSource, SliceSource},
};

/// Rows that one task compares.
const TASK_ROWS: usize = 256;

impl Encoder<'_> {
    /// Encodes `stored`, and compares the rows of `source` with what their numbers find.
    pub(super) fn encode_stored(
        &mut self,
        spec: &TableSpec,
        stored: &Stored,
        source: &mut dyn RowSource,
        sink: &mut dyn PartSink,
    ) -> Result<Tally, EncodeError> {
        let (dim, join) = (spec.shape().dim() as usize, spec.scheme().codec().join());
        let width = join.width(dim);
        let Some(codec) = spec.scheme().codec().stores_by() else { unreachable!("rows that others share") };
        let unfit =
            |reason: String| EncodeError::Unfit { scheme: spec.scheme().to_string(), dim: spec.shape().dim(), reason };
        if (stored.shape.rows(), stored.shape.dim() as usize) != (spec.stored_rows(), width) {
            return Err(unfit(format!("it was fitted to a table whose stored rows are {}", stored.shape)));
        }
        let mut decoded = Vec::new();
        decoded
            .try_reserve_exact(stored.values.len())
            .map_err(|_| unfit(format!("no host memory for {} decoded rows", stored.shape)))?;
        decoded.resize(stored.values.len(), 0f32);
        // A table of their own, of the same parts.
        let own = Scheme::of(codec.clone()).spec(stored.shape)?;
        let encoded = self.encode(&own, &mut SliceSource::new(&stored.values, width)?, sink, |first, rows, parts| {
            let numbers: Vec<u32> = (0..rows).collect();
            let at = first as usize * width;
            codec.decode_rows(width, parts, &numbers, &mut decoded[at..at + rows as usize * width]);
        });
        encoded.map_err(|error| of_the_table(error, spec, stored))?;
        let Some(buckets) = spec.buckets() else {
            // No rows.
            return Ok(Tally::default());
        };
        let (mut tally, mut first) = (Tally::default(), 0u32);
        self.pass(source, &mut |values| {
            let count = u32::try_from(values.len() / dim).unwrap_or(u32::MAX);
            let tasks: Vec<Tally> = values
                .par_chunks(TASK_ROWS * dim)
                .zip((first..first + count).into_par_iter().step_by(TASK_ROWS))
                .map(|(values, first)| {
                    let mut found = vec![0.0; buckets.each() * width];
                    let mut joined = vec![0.0; dim];
                    let rows = (first..).zip(values.chunks_exact(dim)).map(|(row, values)| {
                        for (table, found) in found.chunks_exact_mut(width).enumerate() {
                            let at = buckets.row(row.into(), table) as usize * width;
                            found.copy_from_slice(&decoded[at..at + width]);
                        }
                        join.join(&found, &mut joined);
                        Tally::of(row, dim, values, &joined)
                    });
                    rows.fold(Tally::default(), Tally::merge)
                })
                .collect();
            tally = tasks.into_iter().fold(tally, Tally::merge);
            first += count;
        })?;
        Ok(tally)
    }
}

/// An error about a stored row as one about the first row that it is stored for.
fn of_the_table(error: EncodeError, spec: &TableSpec, stored: &Stored) -> EncodeError {
    let first =
        |row: u64| usize::try_from(row).ok().and_then(|row| stored.firsts.get(row)).filter(|row| **row != NO_ROW);
    match error {
        EncodeError::Precision { row, column, value, reason, .. } => {
            let row = first(row).map_or(row, |first| u64::from(*first));
            EncodeError::Precision { row, column, value, scheme: spec.scheme().to_string(), reason }
        }
        other => other,
    }
}
