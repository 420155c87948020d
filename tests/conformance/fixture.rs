//! Tables for tests, what is in them by the reference, and large tables made of small ones.

use std::ops::Range;

use crate::names::{Names, Read, resized};
use gatherum::{EncodedTable, Part, Scheme, Shape, SourceError, TableSource, TableSpec};

/// A number that looks random and depends on `seed` alone (splitmix64).
pub(crate) fn hash(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `count` values in -1..1, by `seed`.
pub(crate) fn values(count: usize, seed: u64) -> Vec<f32> {
    let value = |at: u64| {
        // 24 bits, which an f32 holds exactly.
        let bits = u32::try_from(hash(seed << 32 | at) >> 40).expect("24 bits");
        f64::from(bits) / f64::from(1 << 23) - 1.0
    };
    (0..count as u64).map(|at| narrow(value(at))).collect()
}

/// The nearest f32.
#[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
pub(crate) fn narrow(value: f64) -> f32 {
    value as f32
}

/// A table, and its stored elements by the reference.
pub(crate) struct Fixture {
    pub(crate) encoded: EncodedTable,
    /// The same parts as a table of the rows that are stored.
    stored: EncodedTable,
    reference: Vec<f64>,
}

impl Fixture {
    /// Rows of values in -1..1; rows differ in size by powers of ten, as those of real tables do.
    pub(crate) fn new(scheme: &Scheme, rows: usize, dim: usize) -> Self {
        let mut values = values(rows * dim, (rows * 8192 + dim) as u64);
        for (row, values) in values.chunks_mut(dim).enumerate() {
            let size = [1.0, 0.01, 30.0][row % 3];
            values.iter_mut().for_each(|value| *value *= size);
        }
        Self::of(&format!("t{rows}x{dim}"), &values, dim, scheme)
    }

    /// A table of these values.
    pub(crate) fn of(name: &str, values: &[f32], dim: usize, scheme: &Scheme) -> Self {
        let (encoded, _) = EncodedTable::encode(name, values, dim, scheme).expect("these values can be encoded");
        Self::from_encoded(encoded)
    }

    pub(crate) fn from_encoded(encoded: EncodedTable) -> Self {
        let (shape, names) = (encoded.spec().shape(), Names::of(encoded.spec()));
        let (codec, _) = resized(encoded.spec().scheme(), names.stored_rows());
        let width = names.width(shape.dim() as usize) as u64;
        let spec = Shape::new(names.stored_rows().into(), width).map(|shape| codec.spec(shape));
        let parts = encoded.parts().map(<[u8]>::to_vec).collect();
        let stored = EncodedTable::from_parts(encoded.name(), spec.expect("a shape").expect("such rows"), parts);
        let stored = stored.expect("the parts are those of the stored rows");
        let columns = 0..stored.spec().shape().dim();
        let places = (0..names.stored_rows()).flat_map(|row| columns.clone().map(move |column| (row, column)));
        let reference = places.map(|(row, column)| stored.reference(row, column)).collect();
        let fixture = Self { encoded, stored, reference };
        if !fixture.encoded.spec().scheme().bounds_rows() {
            for row in 0..shape.rows() {
                let want = names.join(names.stored(row), fixture.dim(), true, |row| fixture.stored_row(row));
                for (column, want) in (0..).zip(want) {
                    let got = fixture.encoded.reference(row, column);
                    assert_eq!(got.to_bits(), want.to_bits(), "row {row} reads other stored rows");
                }
            }
        }
        fixture
    }

    /// How its ids are read.
    pub(crate) fn names(&self) -> Names {
        Names::of(self.encoded.spec())
    }

    /// Stored rows by the bands that they are of.
    pub(crate) fn bands(&self) -> Vec<Range<u32>> {
        gatherum::testing::bands(self.stored.spec()).into_iter().map(|(rows, _)| rows).collect()
    }

    /// All stored rows, as the host decodes them.
    pub(crate) fn decoded(&self) -> Vec<f32> {
        let host = gatherum::Engine::host().load_blocking(&self.stored).expect("host memory");
        let all: Vec<u32> = (0..self.stored.spec().shape().rows()).collect();
        host.gather_blocking(&all, gatherum::IdPolicy::Error).expect("good ids").values
    }

    pub(crate) fn rows(&self) -> u32 {
        self.encoded.spec().shape().rows()
    }

    pub(crate) fn dim(&self) -> usize {
        self.encoded.spec().shape().dim() as usize
    }

    /// A stored row by the reference.
    fn stored_row(&self, row: u32) -> &[f64] {
        let width = self.stored.spec().shape().dim() as usize;
        &self.reference[row as usize * width..][..width]
    }

    /// What is read, by the reference.
    pub(crate) fn row(&self, read: Read) -> Vec<f64> {
        self.names().join(read, self.dim(), false, |row| self.stored_row(row))
    }

    /// How far a decoded f32 of what is read may be from the reference: as [`Fixture::compare`] has it, or half a unit.
    pub(crate) fn slack(&self, read: Read) -> f64 {
        let slack = |row: &[f64]| {
            let largest = row.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
            gatherum::testing::rounding(self.stored.spec(), row).max(largest * 2f64.powi(-24))
        };
        let rows: Vec<_> = read.rows().iter().map(|row| self.stored_row(*row)).collect();
        self.names().slack(&rows.iter().map(|row| (*row, slack(row))).collect::<Vec<_>>())
    }

    /// Says where a row is not what the reference says: as f32 to the bit, or within what the scheme rounds.
    pub(crate) fn compare(&self, read: impl Into<Read>, got: &[f32]) -> Result<(), String> {
        let read = read.into();
        let rounds = |row: &u32| gatherum::testing::rounding(self.stored.spec(), self.stored_row(*row)) > 0.0;
        let slack = if read.rows().iter().any(rounds) { self.slack(read) } else { 0.0 };
        let want = self.names().join(read, self.dim(), slack == 0.0, |row| self.stored_row(row));
        assert_eq!(got.len(), want.len(), "columns of a row");
        for (column, (&got, want)) in got.iter().zip(want).enumerate() {
            let same = if slack == 0.0 {
                got.to_bits() == narrow(want).to_bits()
            } else {
                (f64::from(got) - want).abs() <= slack
            };
            if !same {
                let scheme = self.encoded.spec().scheme();
                return Err(format!("{scheme}: {read:?}, column {column} is {got:e}, not {want:e} (+- {slack:e})"));
            }
        }
        Ok(())
    }
}

/// A large table that repeats the rows of a small one, in an order that no shard or chunk has: it takes no memory.
pub(crate) struct Repeated<'a> {
    name: String,
    base: &'a EncodedTable,
    spec: TableSpec,
    /// Rows and parts of the bands, and of those of the small table.
    bands: Vec<(Range<u32>, Range<usize>)>,
    base_bands: Vec<(Range<u32>, Range<usize>)>,
    sparse: Option<Sparse>,
}

/// Rows of different numbers of values.
struct Sparse {
    /// Rows to an item of the part that tells where rows begin.
    every: u32,
    /// Which of the small table's values are those of each of its rows.
    base: Vec<Range<usize>>,
    /// Where rows of the large table begin, and the last ends.
    starts: Vec<u32>,
}

impl Sparse {
    /// Where the values of the small table's rows are, by the definition of the formats.
    fn of(base: &EncodedTable) -> Option<Self> {
        let parts: Vec<&[u8]> = base.parts().collect();
        let number = base.spec().parts().iter().position(|part| part.starts_every().is_some())?;
        let every = base.spec().parts()[number].starts_every().expect("it is that part");
        let starts: Vec<u32> = parts[number].as_chunks().0.iter().map(|start| u32::from_le_bytes(*start)).collect();
        let range = |row: u32| {
            let block = (row / every) as usize;
            let block = starts[block] as usize..starts[block + 1] as usize;
            let of_row = |at: &usize| every == 1 || u32::from(parts[number - 1][*at]) == row % every;
            let begin =
                block.start + block.clone().take_while(|at| u32::from(parts[number - 1][*at]) < row % every).count();
            let begin = if every == 1 { block.start } else { begin };
            begin..begin + (begin..block.end).take_while(of_row).count()
        };
        Some(Self { every, base: (0..base.spec().shape().rows()).map(range).collect(), starts: vec![0] })
    }
}

/// Bytes that rows of a table take, those that all share left out: in the mean, where rows have different numbers of values.
pub(crate) fn row_bytes(table: &EncodedTable) -> u64 {
    let parts = table.spec().parts().iter().filter(|part| part.counts_values() || part.starts_every().is_some());
    let sparse = parts.map(|part| part.bytes().0).sum::<u64>();
    table.spec().row_bytes() + sparse / u64::from(table.spec().shape().rows())
}

impl<'a> Repeated<'a> {
    /// A table of the base's scheme.
    pub(crate) fn new(name: &str, base: &'a EncodedTable, rows: u64) -> Self {
        Self::of(base.spec().scheme(), name, base, rows, base.spec().shape().dim().into())
    }

    /// A table of so many rows, and as many stored ones, by a scheme whose stored rows are stored as the base's.
    pub(crate) fn of(scheme: &Scheme, name: &str, base: &'a EncodedTable, rows: u64, dim: u64) -> Self {
        let shape = Shape::new(rows, dim).expect("a shape");
        Self::as_is(&resized(scheme, shape.rows()).1, name, base, shape)
    }

    /// A table of the scheme as it is.
    pub(crate) fn as_is(scheme: &Scheme, name: &str, base: &'a EncodedTable, shape: Shape) -> Self {
        let spec = |scheme: &Scheme| scheme.spec(shape).expect("the base has such rows");
        let [bands, base_bands] = [&spec(scheme), base.spec()].map(gatherum::testing::bands);
        let sparse = Sparse::of(base);
        let name = name.to_owned();
        let mut repeated = Self { name, base, spec: spec(scheme), bands, base_bands, sparse };
        if let Some(mut sparse) = repeated.sparse.take() {
            let mut end = 0;
            for row in 0..shape.rows() {
                end += u32::try_from(sparse.base[repeated.base_row(row) as usize].len()).expect("a number of columns");
                sparse.starts.push(end);
            }
            // The scheme of such a table says how many values there are.
            let text = base.spec().scheme().to_string();
            let values = format!("nonzeros={}/", base.spec().values());
            let text = text.replace(&values, &format!("nonzeros={end}/"));
            repeated.spec = spec(&text.parse().expect("the same scheme"));
            repeated.sparse = Some(sparse);
        }
        repeated
    }

    /// A small table whose rows are those that a scheme stores of rows of `dim` columns.
    pub(crate) fn base(scheme: &Scheme, rows: usize, dim: usize) -> EncodedTable {
        let shape = Shape::new(1, dim as u64).expect("a shape");
        let names = Names::of(&scheme.spec(shape).expect("such rows"));
        Fixture::new(&resized(scheme, 1).0, rows, names.width(dim)).encoded
    }

    /// The row of the small table that a stored row repeats: one of the same band.
    pub(crate) fn base_row(&self, row: u32) -> u32 {
        let number = self.bands.iter().position(|(rows, _)| rows.contains(&row)).expect("a row of the table");
        let base = &self.base_bands[number].0;
        base.start + u32::try_from(hash(u64::from(row)) % u64::from(base.end - base.start)).expect("a row number")
    }

    /// What is read, as f32, by all rows of the small table.
    pub(crate) fn read(&self, read: Read, base: &[f32]) -> Vec<f32> {
        let (names, dim) = (Names::of(&self.spec), self.spec.shape().dim() as usize);
        let width = self.base.spec().shape().dim() as usize;
        names.join_f32(read.map(|row| self.base_row(row)), dim, |row| &base[row as usize * width..][..width])
    }

    /// The same of rows of the table.
    pub(crate) fn rows(&self, rows: impl Iterator<Item = u32>, base: &[f32]) -> Vec<f32> {
        let names = Names::of(&self.spec);
        rows.flat_map(|row| self.read(names.stored(row), base)).collect()
    }
}

impl Repeated<'_> {
    /// As `read_part`, of a table whose rows have different numbers of values.
    fn read_sparse(&self, sparse: &Sparse, part: usize, offset: u64, out: &mut [u8]) {
        let info = &self.spec.parts()[part];
        let width = info.dtype().bytes();
        assert!(
            offset.is_multiple_of(width) && (out.len() as u64).is_multiple_of(width),
            "whole numbers are asked for"
        );
        let first = usize::try_from(offset / width).expect("a 64-bit machine");
        let width = usize::try_from(width).expect("a few bytes");
        if let Some(every) = info.starts_every() {
            for (at, out) in (first..).zip(out.chunks_exact_mut(width)) {
                let row = (at * every as usize).min(sparse.starts.len() - 1);
                out.copy_from_slice(&sparse.starts[row].to_le_bytes());
            }
            return;
        }
        let stored = self.base.parts().nth(part).expect("a part");
        let mut row = sparse.starts.partition_point(|start| *start as usize <= first) - 1;
        for (at, out) in (first..).zip(out.chunks_exact_mut(width)) {
            while sparse.starts[row + 1] as usize <= at {
                row += 1;
            }
            let number = u32::try_from(row).expect("a row number");
            let base = &sparse.base[self.base_row(number) as usize];
            let at = base.start + at - sparse.starts[row] as usize;
            // Coordinates are those of the large table.
            match info.name() {
                "rows" => out[0] = u8::try_from(number % sparse.every).expect("under 16"),
                _ => out.copy_from_slice(&stored[at * width..][..width]),
            }
        }
    }
}

impl TableSource for Repeated<'_> {
    fn spec(&self) -> &TableSpec {
        &self.spec
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn read_part(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let width = usize::try_from(Part::row_bytes(&self.spec.parts()[part])).expect("a row's bytes");
        if let Some(sparse) = &self.sparse {
            self.read_sparse(sparse, part, offset, out);
            return Ok(());
        }
        let stored = self.base.parts().nth(part).expect("a part");
        if self.spec.parts()[part].is_shared() {
            let start = usize::try_from(offset).expect("a 64-bit machine");
            out.copy_from_slice(&stored[start..][..out.len()]);
            return Ok(());
        }
        let number = self.bands.iter().position(|(_, parts)| parts.contains(&part)).expect("a part of a band");
        let (first, base_first) = (self.bands[number].0.start, self.base_bands[number].0.start);
        let mut at = usize::try_from(offset).expect("a 64-bit machine");
        let mut out = out;
        while !out.is_empty() {
            let (row, skip) = (first + u32::try_from(at / width).expect("a row number"), at % width);
            let length = (width - skip).min(out.len());
            let (head, rest) = out.split_at_mut(length);
            let base = (self.base_row(row) - base_first) as usize;
            head.copy_from_slice(&stored[base * width + skip..][..length]);
            (out, at) = (rest, at + length);
        }
        Ok(())
    }
}
