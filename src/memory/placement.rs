//! Which buffer each row is in, and how many bytes that takes.

use std::ops::Range;

use crate::{
    scheme::{Band, Category, Part, TableSpec},
    units::{Bytes, round_up},
};

/// Bytes that parts begin on, and shards end on.
const LANE: u64 = 16;

/// Bytes behind the first part's last row that a shader may read without using them: a lane of 16, and a word after it.
const OVERRUN: u64 = 20;

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
    pub(crate) fn part_range(&self, band: &Band, part: &Part) -> Range<u64> {
        // Of a part that all rows share, a row has no bytes: it begins at 0 in every shard.
        let begin = u64::from(self.first_row - band.first_row) * part.row_bytes();
        begin..begin + part.bytes_of(self.rows)
    }
}

impl Placement {
    /// Splits a table into row-aligned shards of at most `binding` bytes each; no rows, no shards.
    ///
    /// All shards but the last, of each band of rows that are stored alike, have the same number of rows.
    ///
    /// # Errors
    /// [`RowTooLarge`] where not even one row fits.
    pub fn plan(spec: &TableSpec, binding: Bytes) -> Result<Self, RowTooLarge> {
        let mut shards = Vec::new();
        for (number, band) in spec.bands().iter().enumerate() {
            let (spec, rows) = (&*band.spec, band.spec.stored_rows());
            let shard_rows = shard_rows(spec, binding)?;
            let firsts = (0..rows).step_by(shard_rows.max(1) as usize);
            shards.extend(firsts.map(|first| Shard {
                band: number,
                first_row: band.first_row + first,
                ..shard(spec, first, shard_rows.min(rows - first))
            }));
        }
        Ok(Self { shards })
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

/// The most rows of a shard.
fn shard_rows(spec: &TableSpec, binding: Bytes) -> Result<u32, RowTooLarge> {
    let rows = spec.stored_rows();
    let fits = |rows: u32| shard_bytes(spec, rows) <= binding.0;
    if rows == 0 || fits(rows) {
        return Ok(rows);
    }
    let slack = LANE * spec.parts().len() as u64 + OVERRUN + LANE;
    let shared: u64 = spec.parts().iter().map(|part| part.bytes_of(0)).sum();
    let estimate = binding.0.saturating_sub(slack + shared) / spec.row_bytes();
    let mut rows = u32::try_from(estimate).unwrap_or(u32::MAX);
    // The slack is the most padding there can be; a few rows more may fit.
    while fits(rows + 1) {
        rows += 1;
    }
    match rows {
        0 => Err(RowTooLarge { row: Bytes(shard_bytes(spec, 1)), binding }),
        rows => Ok(rows),
    }
}

fn shard_bytes(spec: &TableSpec, rows: u32) -> u64 {
    let mut end = 0;
    for part in spec.parts() {
        end = round_up(end, LANE) + part.bytes_of(rows);
    }
    let first = &spec.parts()[0];
    let overrun = if first.row_bytes().is_multiple_of(LANE) { 0 } else { OVERRUN };
    round_up(end.max(u64::from(rows) * first.row_bytes() + overrun), LANE)
}

fn shard(spec: &TableSpec, first_row: u32, rows: u32) -> Shard {
    let bytes = shard_bytes(spec, rows);
    let mut offsets = Vec::new();
    let mut by_category: Vec<(Category, u64)> = Vec::new();
    let mut end = 0;
    for part in spec.parts() {
        let size = part.bytes_of(rows);
        offsets.push(round_up(end, LANE));
        end = round_up(end, LANE) + size;
        match by_category.iter_mut().find(|(category, _)| *category == part.category()) {
            Some((_, sum)) => *sum += size,
            None => by_category.push((part.category(), size)),
        }
    }
    let used: u64 = by_category.iter().map(|(_, bytes)| bytes).sum();
    by_category.push((Category::Padding, bytes - used));
    Shard { band: 0, first_row, rows, offsets, bytes: Bytes(bytes), by_category }
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
                let shared: u64 = spec.parts().iter().map(|part| part.bytes_of(0)).sum();
                let copies = placement.shards().len() as u64;
                assert_eq!(stored, spec.bytes().0 - shared + shared * copies, "{text}");
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
