//! Which buffer each row is in, and how many bytes that takes.

use std::ops::Range;

use super::cuts::{self, Cuts};
use crate::{
    error::TableError,
    scheme::{Band, Category, Part, RowSpan, TableSpec},
    source::TableSource,
    units::{Bytes, round_up},
};

/// Bytes that parts begin on, and shards end on.
pub(super) const LANE: u64 = 16;

/// Bytes behind the first part's last row that a shader may read without using them: a lane of 16, and a word after it.
pub(super) const OVERRUN: u64 = 20;

/// Rows in one buffer: all parts of them, one part behind the other. What all rows share is in each shard.
///
/// ```text
/// byte 0                    offset 1               offset 2          bytes
///      | part 0 of all rows | part 1 of all rows | ... | padding |
/// ```
/// Offsets are multiples of 16.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shard {
    /// The band of the table that its rows are of; 0 where all rows are stored alike.
    pub band: usize,
    /// Its first row.
    pub first_row: u32,
    /// How many rows it has.
    pub rows: u32,
    /// Its rows in their band, with their values where rows have different numbers of those.
    pub span: RowSpan,
    /// Where each part begins.
    pub offsets: Vec<u64>,
    /// Size of the buffer.
    pub bytes: Bytes,
    /// Its bytes by category; they sum up to `bytes`.
    pub by_category: Vec<(Category, u64)>,
}

/// The shards of a table, and their sizes: pure arithmetic, needing no device.
///
/// # Examples
/// ```
/// use gatherum::{Bytes, Placement, Scheme, Shape};
/// let spec = "f32".parse::<Scheme>()?.spec(Shape::new(341_479, 100)?)?;
/// let placement = Placement::plan(&spec, Bytes(128 << 20))?;
/// assert_eq!(placement.shards().len(), 2);
/// assert!(placement.shards().iter().all(|shard| shard.bytes.0 <= 128 << 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    shards: Vec<Shard>,
}

/// A row that no binding holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a row takes {row:#} and the device binds {binding:#} at a time")]
pub struct RowTooLarge {
    /// Bytes of a row with its padding.
    pub row: Bytes,
    /// The most one binding may have.
    pub binding: Bytes,
}

impl Shard {
    /// The bytes of a part of its band that it has: those of its rows, or all where all rows share the part.
    pub(crate) fn part_range(&self, part: &Part) -> Range<u64> {
        part.span(&self.span)
    }
}

impl Placement {
    /// Splits a table into row-aligned shards of at most `binding` bytes each; no rows, no shards.
    ///
    /// All shards but the last, of each band of rows that are stored alike, have the same number of rows. Where rows have
    /// different numbers of values, this is the plan for values that are spread evenly; a table itself is split by its
    /// own.
    ///
    /// # Errors
    /// [`RowTooLarge`] where not even one row fits.
    pub fn plan(spec: &TableSpec, binding: Bytes) -> Result<Self, RowTooLarge> {
        let mut shards = Vec::new();
        for (number, band) in spec.bands().iter().enumerate() {
            let mut cuts = Cuts::new(&band.spec, binding);
            if let Some(every) = cuts.every {
                // Products of 32 bits each.
                let (rows, values) = (u64::from(band.spec.stored_rows()), band.spec.values());
                let ends = (0..rows).step_by(every as usize).map(|first| rows.min(first + u64::from(every)));
                ends.map(|end| values * end / rows).try_for_each(|end| cuts.start(end))?;
            }
            Self::push(&mut shards, number, band, &cuts.finish()?);
        }
        Ok(Self { shards })
    }

    /// The placement of a table, by its own rows: as [`Placement::plan`], but where rows have different numbers of values. Those
    /// are read once, without the values themselves, and what finds them is checked.
    ///
    /// # Errors
    /// [`TableError::RowTooLarge`] where not even one row fits; [`TableError::Source`] where the source fails, or values cannot be
    /// found as the format says.
    pub async fn read(source: &impl TableSource, binding: Bytes) -> Result<Self, TableError> {
        let mut shards = Vec::new();
        for (number, band) in source.spec().bands().iter().enumerate() {
            let spans = cuts::read(source, band, binding).await?;
            Self::push(&mut shards, number, band, &spans);
        }
        Ok(Self { shards })
    }

    fn push(shards: &mut Vec<Shard>, number: usize, band: &Band, spans: &[RowSpan]) {
        shards.extend(spans.iter().map(|span| shard(number, band, span.clone())));
    }

    /// The shards, in the order of their rows.
    #[must_use]
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The shards.
    pub(crate) fn into_shards(self) -> Vec<Shard> {
        self.shards
    }

    /// Bytes of all shards.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.shards.iter().map(|shard| shard.bytes.0).sum())
    }
}

/// Bytes that rows take of a part.
fn part_bytes(part: &Part, span: &RowSpan) -> u64 {
    let bytes = part.span(span);
    bytes.end - bytes.start
}

pub(super) fn shard_bytes(spec: &TableSpec, span: &RowSpan) -> u64 {
    let mut end = 0;
    for part in spec.parts() {
        end = round_up(end, LANE) + part_bytes(part, span);
    }
    let first = &spec.parts()[0];
    let overrun = if first.row_bytes().is_multiple_of(LANE) { 0 } else { OVERRUN };
    round_up(end.max(part_bytes(first, span) + overrun), LANE)
}

fn shard(number: usize, band: &Band, span: RowSpan) -> Shard {
    let spec = &*band.spec;
    let bytes = shard_bytes(spec, &span);
    let mut offsets = Vec::new();
    let mut by_category: Vec<(Category, u64)> = Vec::new();
    let mut end = 0;
    for part in spec.parts() {
        let size = part_bytes(part, &span);
        offsets.push(round_up(end, LANE));
        end = round_up(end, LANE) + size;
        match by_category.iter_mut().find(|(category, _)| *category == part.category()) {
            Some((_, sum)) => *sum += size,
            None => by_category.push((part.category(), size)),
        }
    }
    let used: u64 = by_category.iter().map(|(_, bytes)| bytes).sum();
    by_category.push((Category::Padding, bytes - used));
    let (first_row, rows) = (band.first_row + span.rows.start, span.len());
    Shard { band: number, first_row, rows, span, offsets, bytes: Bytes(bytes), by_category }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scheme, Shape};

    #[test]
    fn shards_hold_every_row_once_and_stay_under_the_binding() {
        for text in Scheme::all().iter().flat_map(|info| info.variants) {
            let scheme: Scheme = text.parse().unwrap();
            for (rows, dim, binding) in
                [(0, 3, 96), (1, 1, 96), (1000, 5, 4096), (999, 100, 30_000), (77, 13, 1 << 20), (1001, 16, 16_384)]
            {
                let spec = scheme.spec(Shape::new(rows, dim).unwrap()).unwrap();
                let placement = Placement::plan(&spec, Bytes(binding)).unwrap();
                let mut next = 0;
                for shard in placement.shards() {
                    assert_eq!(shard.first_row, next);
                    assert!(shard.rows > 0 && shard.bytes.0 <= binding && shard.bytes.0 % 16 == 0);
                    assert_eq!(shard.by_category.iter().map(|(_, bytes)| bytes).sum::<u64>(), shard.bytes.0);
                    assert!(shard.offsets.iter().all(|offset| offset % 16 == 0));
                    next += shard.rows;
                }
                assert_eq!(next, spec.stored_rows());
                let stored: u64 = placement
                    .shards()
                    .iter()
                    .flat_map(|shard| &shard.by_category)
                    .filter(|(category, _)| *category != Category::Padding)
                    .map(|(_, bytes)| bytes)
                    .sum();
                // Every shard has a copy of what all rows share, and a start at both ends.
                let mut all = spec.bytes().0;
                if let Some(further) = placement.shards().len().checked_sub(1) {
                    let repeated = |part: &Part| {
                        if part.is_shared() { part.bytes().0 } else { 4 * u64::from(part.starts_every().is_some()) }
                    };
                    all += further as u64 * spec.parts().iter().map(repeated).sum::<u64>();
                } else {
                    all = 0;
                }
                assert_eq!(stored, all, "{text}");
            }
        }
    }

    #[test]
    fn a15_int8_of_a_million_rows_to_the_byte() {
        let spec = "int8".parse::<Scheme>().unwrap().spec(Shape::new(1_000_000, 128).unwrap()).unwrap();
        let placement = Placement::plan(&spec, Bytes(1 << 30)).unwrap();
        assert_eq!(placement.bytes(), Bytes(128_000_000 + 4_000_000));
        let [shard] = placement.shards() else { panic!("one shard") };
        assert_eq!(
            shard.by_category,
            [(Category::Payload, 128_000_000), (Category::Scales, 4_000_000), (Category::Padding, 0)]
        );
    }

    #[test]
    fn a_row_over_the_binding_is_refused_with_the_numbers() {
        let spec = "f32".parse::<Scheme>().unwrap().spec(Shape::new(10, 1024).unwrap()).unwrap();
        let error = Placement::plan(&spec, Bytes(4095)).unwrap_err();
        assert_eq!(error, RowTooLarge { row: Bytes(4096), binding: Bytes(4095) });
    }
}
