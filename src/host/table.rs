//! A table in host memory.

use super::memory::PartBytes;
use crate::{
    error::SourceError,
    memory::Shard,
    scheme::{BaggedRows, Band, Codec, MOST_PARTS, TableSpec},
    source::TableSource,
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
    /// Memory for all parts, as zeros.
    ///
    /// # Errors
    /// [`SourceError`] where memory is short.
    pub(crate) fn empty(name: &str, spec: &TableSpec) -> Result<Self, SourceError> {
        let parts = spec.parts().iter().map(|part| {
            let bytes = part.bytes();
            let short = || format!("{name}: no host memory for part `{}` of {bytes:#}", part.name());
            PartBytes::zeroed(bytes).ok_or_else(|| SourceError::Invalid(short()))
        });
        let parts = parts.collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), spec: spec.clone(), parts })
    }

    /// Reads the rows of one shard, all of the same bytes, as a table of its own whose rows count from 0.
    ///
    /// # Errors
    /// [`SourceError`] where a part cannot be read, or memory is short.
    pub(crate) async fn read_shard(source: &impl TableSource, shard: &Shard, band: &Band) -> Result<Self, SourceError> {
        let mut table = Self::empty(source.name(), &band.spec.with_rows(shard.rows))?;
        for (own, part) in band.spec.parts().iter().enumerate() {
            let start = shard.part_range(part).start;
            source.read_part(band.parts.start + own, start, &mut table.parts[own]).await?;
        }
        Ok(table)
    }

    /// Reads all parts of `source`.
    ///
    /// # Errors
    /// [`SourceError`] where a part cannot be read.
    pub(crate) async fn read(&mut self, source: &impl TableSource) -> Result<(), SourceError> {
        for (number, memory) in self.parts.iter_mut().enumerate() {
            source.read_part(number, 0, memory).await?;
        }
        self.check()
    }

    /// Checks what finds values in rows of different lengths: decoders trust it.
    pub(crate) fn check(&self) -> Result<(), SourceError> {
        let parts: Vec<&[u8]> = self.parts.iter().map(|part| &**part).collect();
        match self.spec.malformed(&parts) {
            None => Ok(()),
            Some(problem) => Err(SourceError::Invalid(format!("{}: {problem}", self.name))),
        }
    }

    /// The bytes of a part, to be filled.
    pub(crate) fn part_mut(&mut self, part: usize) -> &mut [u8] {
        &mut self.parts[part]
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

    /// Decodes `rows` ([`NO_ROW`](crate::scheme::NO_ROW) gives zeros), on the calling thread. `out: [rows.len(), dim]`; where an id
    /// reads several rows, there are as many numbers for each.
    pub(crate) fn decode(&self, rows: &[u32], out: &mut [f32]) {
        debug_assert_eq!(rows.len() * self.dim(), out.len() * self.spec.each(), "a place for each row");
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
        let each = self.spec.each();
        let block = (SCRATCH_VALUES / self.dim()).clamp(1, (rows.len() / each).max(1));
        let mut scratch = vec![0f32; block * self.dim()];
        for (rows, first) in rows.chunks(block * each).zip((0..).step_by(block)) {
            let values = &mut scratch[..rows.len() / each * self.dim()];
            self.decode(rows, values);
            visit(first, values);
        }
    }
}
