//! From rows to parts, block by block, on all cores.

use std::sync::Arc;

use super::{
    encode_block::{Block, START, refuse_not_finite},
    report::Tally,
};
use crate::{
    error::EncodeError,
    scheme::{Band, Rows, Scheme, TableSpec},
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
            None => self.encode(&spec, source, sink, |_, _, _| ())?,
            Some(stored) => self.encode_stored(&spec, stored, source, sink)?,
        };
        Ok(tally.report(spec))
    }

    /// Encodes all of `source`, whose rows are those that `spec` stores, and measures the error. `each` gets the first row of
    /// a block, the number of its rows, and what they became.
    pub(super) fn encode(
        &mut self,
        spec: &TableSpec,
        source: &mut dyn RowSource,
        sink: &mut dyn PartSink,
        mut each: impl FnMut(u32, u32, &[&[u8]]),
    ) -> Result<Tally, EncodeError> {
        let shape = source.shape();
        let dim = shape.dim() as usize;
        let mut tally = Tally::default();
        let mut values = Vec::new();
        for band in spec.bands() {
            let mut block = Block::new(&band.spec);
            let mut written = Written::new(&band, sink);
            written.shared(&block)?;
            let band_rows = band.spec.stored_rows();
            let block_rows = block.whole_starts(BLOCK_VALUES / dim).min(band_rows.max(1) as usize);
            for done in (0..band_rows).step_by(block_rows) {
                let rows = (band_rows - done).min(u32::try_from(block_rows).unwrap_or(u32::MAX));
                values.resize(rows as usize * dim, 0f32);
                let first = band.first_row + done;
                source.read_rows(first, &mut values)?;
                tally = tally.merge(block.encode(first, &values)?);
                written.block(&block)?;
                each(first, rows, &block.parts());
                if let Some(progress) = &mut self.progress {
                    progress(Progress { done: first + rows, rows: shape.rows() });
                }
            }
            written.finish(&block)?;
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

/// How much of a band's parts has been written.
struct Written<'a> {
    band: &'a Band,
    sink: &'a mut dyn PartSink,
    bytes: Vec<u64>,
}

impl<'a> Written<'a> {
    fn new(band: &'a Band, sink: &'a mut dyn PartSink) -> Self {
        Self { band, sink, bytes: vec![0; band.spec.parts().len()] }
    }

    fn write(&mut self, number: usize, bytes: &[u8]) -> Result<(), EncodeError> {
        let written = &mut self.bytes[number];
        let needed = self.band.spec.parts()[number].bytes().0;
        if needed - *written < bytes.len() as u64 {
            return Err(self.other_rows());
        }
        self.sink.write_part(self.band.parts.start + number, *written, bytes)?;
        *written += bytes.len() as u64;
        Ok(())
    }

    /// The parts that all rows share.
    fn shared(&mut self, block: &Block<'_>) -> Result<(), EncodeError> {
        let parts = self.band.spec.parts().iter().enumerate().filter(|(_, part)| part.is_shared());
        parts.map(|(number, _)| number).try_for_each(|number| self.write(number, block.parts()[number]))
    }

    fn block(&mut self, block: &Block<'_>) -> Result<(), EncodeError> {
        for (number, (part, bytes)) in self.band.spec.parts().iter().zip(block.parts()).enumerate() {
            if part.starts_every().is_some() {
                // Its last item is the first of the next block.
                self.write(number, &bytes[..bytes.len() - START])?;
            } else if !part.is_shared() {
                self.write(number, bytes)?;
            }
        }
        Ok(())
    }

    /// What comes behind the last row.
    fn finish(&mut self, block: &Block<'_>) -> Result<(), EncodeError> {
        for number in 0..self.bytes.len() {
            let part = &self.band.spec.parts()[number];
            if part.starts_every().is_some() {
                let bytes = block.parts()[number];
                self.write(number, &bytes[bytes.len() - START..])?;
            }
            if self.bytes[number] != part.bytes().0 {
                return Err(self.other_rows());
            }
        }
        Ok(())
    }

    fn other_rows(&self) -> EncodeError {
        EncodeError::Unfit {
            scheme: self.band.spec.scheme().to_string(),
            dim: self.band.spec.shape().dim(),
            reason: "the rows have other values to store than when it was fitted to them".to_owned(),
        }
    }
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
