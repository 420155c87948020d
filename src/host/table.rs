//! A table in host memory.

use std::ops::Range;

use super::memory::PartBytes;
use crate::{
    error::SourceError,
    memory::Shard,
    scheme::{BaggedRows, Band, Codec, MOST_PARTS, TableSpec},
    source::TableSource,
    units::Bytes,
};

/// The parts of one table, where the host's operations read them.
#[derive(Debug)]
pub(crate) struct HostTable {
    name: String,
    spec: TableSpec,
    parts: Vec<PartBytes>,
}

/// The most f32 values that [`HostTable::visit`] decodes at a time, unless a row has more: 16 KiB, which leaves half of
/// the smallest L1 cache to codes and results.
const SCRATCH_VALUES: usize = 1 << 12;

impl HostTable {
    /// Reads all parts of `source`.
    ///
    /// # Errors
    /// [`SourceError`] where a part cannot be read, or memory is short.
    pub(crate) async fn read(source: &impl TableSource) -> Result<Self, SourceError> {
        let spec = source.spec().clone();
        let ranges = spec.parts().iter().map(|part| 0..part.bytes().0).enumerate().collect();
        Self::read_ranges(source, spec, ranges).await
    }

    /// Reads the rows of one shard, as a table of its own whose rows count from 0.
    ///
    /// # Errors
    /// As [`HostTable::read`].
    pub(crate) async fn read_shard(source: &impl TableSource, shard: &Shard, band: &Band) -> Result<Self, SourceError> {
        let parts = band.spec.parts().iter().zip(band.parts.clone());
        let ranges = parts.map(|(part, number)| (number, shard.part_range(band, part))).collect();
        Self::read_ranges(source, band.spec.with_rows(shard.rows), ranges).await
    }

    /// Reads those bytes of those parts, as the parts of a table of `spec`.
    async fn read_ranges(
        source: &impl TableSource,
        spec: TableSpec,
        ranges: Vec<(usize, Range<u64>)>,
    ) -> Result<Self, SourceError> {
        let name = source.name().to_owned();
        let mut parts = Vec::with_capacity(ranges.len());
        for ((number, range), part) in ranges.into_iter().zip(spec.parts()) {
            let bytes = Bytes(range.end - range.start);
            let mut memory = PartBytes::zeroed(bytes).ok_or_else(|| {
                SourceError::Invalid(format!("{name}: no host memory for part `{}` of {bytes:#}", part.name()))
            })?;
            source.read_part(number, range.start, &mut memory).await?;
            parts.push(memory);
        }
        Ok(Self { name, spec, parts })
    }

    /// Takes the parts of a table of `spec`, which have the lengths that it says.
    pub(crate) fn of_parts(name: &str, spec: TableSpec, parts: Vec<Vec<u8>>) -> Self {
        debug_assert!(spec.parts().iter().zip(&parts).all(|(part, bytes)| part.bytes().0 == bytes.len() as u64));
        Self { name: name.to_owned(), spec, parts: parts.into_iter().map(PartBytes::Heap).collect() }
    }

    /// Scheme, shape and parts.
    pub(crate) fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// The table's name, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Columns of a row.
    pub(super) fn dim(&self) -> usize {
        self.spec.shape().dim() as usize
    }

    /// Decodes `rows` ([`NO_ROW`](crate::scheme::NO_ROW) gives zeros), on the calling thread. `out: [rows.len(), dim]`.
    pub(crate) fn decode(&self, rows: &[u32], out: &mut [f32]) {
        debug_assert_eq!(rows.len() * self.dim(), out.len(), "a place for each row");
        self.with_codec(|codec, parts| codec.decode_rows(self.dim(), parts, rows, out));
    }

    /// Folds rows of bags into `out: [bags, dim]`, on the calling thread.
    pub(super) fn pool(&self, bags: &BaggedRows<'_>, out: &mut [f32]) {
        self.with_codec(|codec, parts| codec.pool_rows(self.dim(), parts, bags, out));
    }

    fn with_codec(&self, run: impl FnOnce(&dyn Codec, &[&[u8]])) {
        // No memory is asked for in a call that may be for one row.
        let mut parts: [&[u8]; MOST_PARTS] = [&[]; MOST_PARTS];
        for (slice, part) in parts.iter_mut().zip(&self.parts) {
            *slice = part;
        }
        run(&**self.spec.scheme().codec(), &parts[..self.parts.len()]);
    }

    /// Decodes `rows` in blocks that stay in the nearest cache, in order, on the calling thread: `visit` gets the
    /// number of rows before the block, and its values `[n, dim]`.
    pub(crate) fn visit(&self, rows: &[u32], mut visit: impl FnMut(usize, &[f32])) {
        let block = (SCRATCH_VALUES / self.dim()).clamp(1, rows.len().max(1));
        let mut scratch = vec![0f32; block * self.dim()];
        for (rows, first) in rows.chunks(block).zip((0..).step_by(block)) {
            let values = &mut scratch[..rows.len() * self.dim()];
            self.decode(rows, values);
            visit(first, values);
        }
    }
}
