//! Where a table is cut into shards. Where rows have different numbers of values, that takes a look at all of it, in which
//! what finds values is checked too: kernels trust it.

use std::ops::Range;

use super::placement::{LANE, OVERRUN, RowTooLarge, shard_bytes};
use crate::{
    error::{SourceError, TableError},
    scheme::{Band, Category, Part, RowSpan, TableSpec},
    source::TableSource,
    units::Bytes,
};

/// Starts that are read at a time: 256 KiB.
const STARTS: u32 = 1 << 16;
/// About the most values whose places are read at a time.
const VALUES: u64 = 1 << 20;

/// Where a band is cut into shards: known from its sizes, or, where rows have different numbers of values, from their starts.
#[derive(Debug)]
pub(super) struct Cuts<'a> {
    spec: &'a TableSpec,
    binding: Bytes,
    /// Rows to a start, where there are starts.
    pub(super) every: Option<u32>,
    cut: Vec<RowSpan>,
    /// Rows and values that no cut has yet.
    open: RowSpan,
}

impl<'a> Cuts<'a> {
    pub(super) fn new(spec: &'a TableSpec, binding: Bytes) -> Self {
        let every = spec.parts().iter().find_map(Part::starts_every);
        Self { spec, binding, every, cut: Vec::new(), open: RowSpan::default() }
    }

    /// Takes the next start behind that of the first row: rows up to there have values up to `end`.
    pub(super) fn start(&mut self, end: u64) -> Result<(), RowTooLarge> {
        let first = self.open.rows.end;
        let row = first.saturating_add(self.every.unwrap_or(1)).min(self.spec.stored_rows());
        let longer = RowSpan { rows: self.open.rows.start..row, values: self.open.values.start..end };
        if self.fits(&longer) {
            self.open = longer;
            return Ok(());
        }
        let alone = RowSpan { rows: first..row, values: self.open.values.end..end };
        if !self.fits(&alone) {
            return Err(self.too_large(&alone));
        }
        self.cut.push(std::mem::replace(&mut self.open, alone));
        Ok(())
    }

    /// The shards' rows.
    pub(super) fn finish(mut self) -> Result<Vec<RowSpan>, RowTooLarge> {
        if self.every.is_none() {
            return self.even();
        }
        if !self.open.is_empty() {
            self.cut.push(self.open);
        }
        Ok(self.cut)
    }

    /// As many rows a shard as fit.
    fn even(&self) -> Result<Vec<RowSpan>, RowTooLarge> {
        let rows = self.spec.stored_rows();
        let span = |rows: Range<u32>| RowSpan { rows, values: 0..0 };
        let mut shard = rows;
        if rows > 0 && !self.fits(&span(0..rows)) {
            let parts = self.spec.parts();
            let slack = LANE * parts.len() as u64 + OVERRUN + LANE;
            let shared: u64 = shard_bytes(self.spec, &span(0..0));
            let estimate = self.binding.0.saturating_sub(slack + shared) / self.spec.row_bytes();
            shard = u32::try_from(estimate).unwrap_or(u32::MAX);
            // The slack is the most padding there can be; a few rows more may fit.
            while self.fits(&span(0..shard + 1)) {
                shard += 1;
            }
            if shard == 0 {
                return Err(self.too_large(&span(0..1)));
            }
        }
        Ok((0..rows).step_by(shard.max(1) as usize).map(|first| span(first..first + shard.min(rows - first))).collect())
    }

    fn fits(&self, span: &RowSpan) -> bool {
        shard_bytes(self.spec, span) <= self.binding.0
    }

    fn too_large(&self, span: &RowSpan) -> RowTooLarge {
        RowTooLarge { row: Bytes(shard_bytes(self.spec, span)), binding: self.binding }
    }
}

/// The rows of a band's shards.
pub(super) async fn read(source: &impl TableSource, band: &Band, binding: Bytes) -> Result<Vec<RowSpan>, TableError> {
    let too_large = |error: RowTooLarge| TableError::RowTooLarge {
        table: source.name().to_owned(),
        row: error.row,
        binding: error.binding,
    };
    let mut cuts = Cuts::new(&band.spec, binding);
    let (rows, values) = (band.spec.stored_rows(), band.spec.values());
    let parts = band.spec.parts();
    let starts = parts.iter().position(|part| part.starts_every().is_some());
    if let (Some(starts), Some(every)) = (starts, cuts.every) {
        let fault = |row: u32, problem: String| {
            SourceError::Invalid(format!("{}: row {}: {problem}", source.name(), band.first_row + row))
        };
        let most = u64::from(every) * u64::from(band.spec.shape().dim());
        let mut open = RowSpan::default();
        let blocks = rows.div_ceil(every);
        for first in (0..blocks).step_by(STARTS as usize) {
            let count = STARTS.min(blocks - first) as usize + 1;
            let mut bytes = vec![0; count * 4];
            source.read_part(band.parts.start + starts, u64::from(first) * 4, &mut bytes).await?;
            let numbers: Vec<u64> =
                bytes.as_chunks().0.iter().map(|number| u64::from(u32::from_le_bytes(*number))).collect();
            if numbers[0] != open.values.end {
                return Err(fault(
                    open.rows.end,
                    format!("its values begin at {}, not {}", numbers[0], open.values.end),
                )
                .into());
            }
            let mut begin = 0;
            for (at, &end) in numbers.iter().enumerate().skip(1) {
                let next = open.rows.end.saturating_add(every).min(rows);
                if end < open.values.end || end > values || end - open.values.end > most {
                    let start = open.values.end;
                    return Err(fault(
                        open.rows.end,
                        format!("its values begin at {start} and end at {end}, of {values}"),
                    )
                    .into());
                }
                cuts.start(end).map_err(too_large)?;
                open.rows.end = next;
                open.values.end = end;
                if open.values.end - open.values.start >= VALUES || at + 1 == numbers.len() {
                    check(source, band, &open, &bytes[begin * 4..(at + 1) * 4]).await?;
                    begin = at;
                    open = RowSpan { rows: next..next, values: end..end };
                }
            }
        }
        if open.values.end != values {
            return Err(fault(rows, format!("values end at {}, of {values}", open.values.end)).into());
        }
    }
    cuts.finish().map_err(too_large)
}

/// Checks what finds the values of some rows; `starts` are theirs.
async fn check(source: &impl TableSource, band: &Band, rows: &RowSpan, starts: &[u8]) -> Result<(), SourceError> {
    let mut parts = Vec::new();
    for (number, part) in band.spec.parts().iter().enumerate() {
        let mut bytes = Vec::new();
        if part.starts_every().is_some() {
            bytes.extend_from_slice(starts);
        } else if part.category() == Category::Index {
            let span = part.span(rows);
            bytes.resize(usize::try_from(span.end - span.start).unwrap_or(usize::MAX), 0);
            source.read_part(band.parts.start + number, span.start, &mut bytes).await?;
        }
        parts.push(bytes);
    }
    let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let codec = band.spec.scheme().codec();
    match codec.malformed(rows.len(), band.spec.shape().dim() as usize, &slices) {
        None => Ok(()),
        Some((row, problem)) => {
            let row = band.first_row + rows.rows.start + row;
            Err(SourceError::Invalid(format!("{}: row {row}: {problem}", source.name())))
        }
    }
}
