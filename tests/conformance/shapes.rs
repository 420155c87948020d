//! A05 to A07: columns, rows, and batches of any number.

use std::collections::BTreeMap;

use gatherum::{Engine, IdPolicy, IdType, OutputDtype, Scheme, Table};

use crate::{
    backend::{Backend, Tuning},
    case::{Case, Stamp, is_plain, leads},
    fixture::{Fixture, hash},
    lookup::{Answer, Batch, Lookup, Way, compare, verify},
    names::{Names, Read},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a05_dimensions", operation: "gather", stamp: Stamp::Schemes(a05_dimensions) },
    Case { name: "a05_long_rows", operation: "gather", stamp: Stamp::Schemes(a05_long_rows) },
    Case { name: "a06_row_counts", operation: "gather", stamp: Stamp::Schemes(a06_row_counts) },
    Case { name: "a07_large_grids", operation: "gather", stamp: Stamp::Leading(a07_large_grids) },
    Case { name: "a07_over_one_binding", operation: "gather", stamp: Stamp::DeviceLeading(a07_over_one_binding) },
    Case { name: "a07_over_one_buffer", operation: "gather", stamp: Stamp::Devices(a07_over_one_buffer) },
];

/// Every number of columns that went wrong somewhere, on both grains; some of them with wgpu's checks too.
fn a05_dimensions(scheme: &Scheme, backend: &Backend) {
    let all: &[usize] = &[1, 2, 3, 5, 7, 13, 63, 100, 257, 1023, 1024, 1025, 2048, 4096];
    // Each costs software adapters some pipelines: where another variant has had them all, some are enough.
    let some: &[usize] = &[1, 3, 13, 100, 257, 1025];
    for dim in if leads(scheme) { all } else { some }.iter().copied() {
        let fixture = Fixture::new(scheme, 7, dim);
        let batch = Batch::U32(vec![6, 0, 3, 3, 5, 1, 2, 4, 6]);
        let mut lookups = Lookup::kernels(backend);
        // Rows at odd offsets are other cases' to see: each pipeline costs a software adapter its time.
        lookups.retain(|lookup| lookup.way != Way::Recorded { offset: 276 });
        for tuning in backend.tunings() {
            let wanted = match tuning {
                Tuning::Own | Tuning::Coarse => true,
                // Of 16 columns or less, both grains are one.
                Tuning::Fine => [63, 100, 257, 1024, 4096].contains(&dim),
                Tuning::FineChecked => dim == 63,
                Tuning::CoarseChecked => [5, 1025].contains(&dim),
            };
            if wanted {
                let engine = backend.tuned(*tuning);
                let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
                verify(&lookups, engine, &table, &fixture, &batch, IdPolicy::Error);
            }
        }
    }
}

/// Rows longer than a thread of coarse grain takes, and than software adapters count loops.
fn a05_long_rows(scheme: &Scheme, backend: &Backend) {
    for dim in [4097, 131_073].into_iter().take(if leads(scheme) { 2 } else { 1 }) {
        let fixture = Fixture::new(scheme, 3, dim);
        let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
        let batch = Batch::U32(vec![2, 0, 1, 1]);
        verify(&Lookup::kernels(backend), backend.engine(), &table, &fixture, &batch, IdPolicy::Error);
    }
}

/// Numbers of rows that are no multiple of 4, and one row: all of them right, the last one too.
fn a06_row_counts(scheme: &Scheme, backend: &Backend) {
    for (rows, dim) in [(1, 1), (1, 3), (1, 17), (2, 1), (3, 3), (5, 1), (6, 17), (7, 3), (63, 17), (65, 3), (1021, 1)]
    {
        let fixture = Fixture::new(scheme, rows, dim);
        let table = backend.engine().load_blocking(&fixture.encoded).expect("the table fits");
        let ids = (0..fixture.rows()).rev().collect();
        verify(&Lookup::kernels(backend), backend.engine(), &table, &fixture, &Batch::U32(ids), IdPolicy::Error);
    }
}

/// What each row that a batch reads must come back as: judged by the reference once, so that millions can be compared.
struct Stamps {
    /// Where what is read stands among those.
    places: BTreeMap<Read, usize>,
    f32s: Answer,
    halves: Answer,
    dim: usize,
}

impl Stamps {
    fn new(engine: &Engine, table: &Table, fixture: &Fixture, batch: &Batch) -> Self {
        let mut places = BTreeMap::new();
        let mut ids = Vec::new();
        for (at, read) in batch.rows(fixture.names(), IdPolicy::Zero).into_iter().enumerate() {
            if let Some(read) = read {
                places.entry(read).or_insert_with(|| {
                    ids.push(batch.ids().get(at).expect("an id"));
                    ids.len() - 1
                });
            }
        }
        let all = Batch::of(IdType::U64, &ids);
        let f32s = Lookup::HOST_F32.run(engine, table, &all, IdPolicy::Error).expect("an answer");
        compare(fixture, &all.rows(fixture.names(), IdPolicy::Error), &f32s.f32s(), "all rows");
        Self { places, halves: f32s.halved(), f32s, dim: fixture.dim() }
    }

    /// Looks a batch up and compares every row.
    fn check(&self, lookup: Lookup, engine: &Engine, table: &Table, batch: &Batch) {
        let answer =
            lookup.run(engine, table, batch, IdPolicy::Zero).unwrap_or_else(|error| panic!("{lookup:?}: {error}"));
        let want = if lookup.dtype == OutputDtype::F32 { &self.f32s } else { &self.halves };
        let rows = batch.rows(Names::of(table.spec()), IdPolicy::Zero);
        let bad: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].is_none()).collect();
        assert_eq!(answer.bad.count, bad.len() as u64, "{lookup:?}");
        assert_eq!(answer.bad.first, bad.first().map(|at| *at as u64), "{lookup:?}");
        assert_eq!(answer.bits.len(), rows.len() * self.dim);
        for (position, (row, got)) in rows.iter().zip(answer.bits.chunks_exact(self.dim)).enumerate() {
            let right = match row {
                Some(row) => got == &want.bits[self.places[row] * self.dim..][..self.dim],
                None => got.iter().all(|bits| *bits == 0),
            };
            assert!(right, "{lookup:?}: position {position}, row {row:?}: {got:x?}");
        }
    }
}

/// Row numbers without an order, two of them bad.
fn ids(count: usize, rows: u32) -> Batch {
    let mut ids: Vec<u32> =
        (0..count as u64).map(|at| u32::try_from(hash(at) % u64::from(rows)).expect("a row number")).collect();
    ids[count - 2] = rows;
    ids[count / 2] = u32::MAX;
    Batch::U32(ids)
}

/// One workgroup more than a dimension of the grid has: with 3 columns for f32 rows, and for two f16 elements a thread.
fn a07_large_grids(scheme: &Scheme, backend: &Backend) {
    let fixture = Fixture::new(scheme, 1021, 3);
    let engine = backend.engine();
    let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
    let batch = ids(65_535 * 64 + 1, fixture.rows());
    let stamps = Stamps::new(engine, &table, &fixture, &batch);
    // What differs between the ways is the same for all schemes; one way each covers the kernels.
    let way = if backend.is_host() { Way::Host } else { Way::Recorded { offset: 256 } };
    stamps.check(Lookup { way, dtype: OutputDtype::F32 }, engine, &table, &batch);
    if is_plain(scheme) && !backend.is_host() {
        stamps.check(Lookup { way, dtype: OutputDtype::F16 }, engine, &table, &batch);
    }
}

const MIB: u64 = 1 << 20;

/// Ids and outputs larger than the device binds: whole rows, words that rows share, and the words around them.
fn a07_over_one_binding(scheme: &Scheme, backend: &Backend) {
    let engine = backend.narrow(16 * MIB, 64 * MIB);
    let shapes = [
        (65, OutputDtype::F32, 70_000),
        (65, OutputDtype::F16, 140_001),
        (64, OutputDtype::F32, 70_000),
        (64, OutputDtype::F16, 140_000),
        (66, OutputDtype::F16, 140_000),
    ];
    // How outputs are cut is the same for all schemes.
    for (dim, dtype, count) in shapes.into_iter().take(if is_plain(scheme) { 5 } else { 2 }) {
        let fixture = Fixture::new(scheme, 251, dim);
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        let batch = ids(count, fixture.rows());
        let stamps = Stamps::new(&engine, &table, &fixture, &batch);
        stamps.check(Lookup { way: Way::Recorded { offset: 272 }, dtype }, &engine, &table, &batch);
    }
}

/// Batches whose ids and rows pass the device's largest buffer, on a device of the least limits.
fn a07_over_one_buffer(backend: &Backend) {
    let engine = backend.narrow(16 * MIB, 16 * MIB);
    let scheme = "int8".parse().expect("a scheme");
    // Rows that fill a buffer to the byte, rows that do not, and ids that are eight times as many bytes as rows.
    for (dim, dtype, count) in
        [(64, OutputDtype::F32, 140_000), (65, OutputDtype::F16, 140_001), (1, OutputDtype::F16, 2_500_001)]
    {
        let fixture = Fixture::new(&scheme, 251, dim);
        let table = engine.load_blocking(&fixture.encoded).expect("the table fits");
        let batch = ids(count, fixture.rows());
        let stamps = Stamps::new(&engine, &table, &fixture, &batch);
        let Batch::U32(narrow) = batch else { unreachable!("u32 ids") };
        let wide: Vec<i128> = narrow.iter().copied().map(i128::from).collect();
        for batch in [Batch::U32(narrow), Batch::of(IdType::I64, &wide)] {
            stamps.check(Lookup { way: Way::Host, dtype }, &engine, &table, &batch);
        }
        // Where one buffer has to hold them all, it says so; or holds them.
        let result = table.gather_buffer_blocking(&wide_ids(&wide), IdPolicy::Zero, dtype);
        let bytes = count as u64 * dim as u64 * dtype.bytes();
        assert_eq!(result.is_ok(), bytes <= 16 * MIB, "{result:?}");
    }
}

fn wide_ids(ids: &[i128]) -> Vec<u64> {
    ids.iter().map(|id| u64::try_from(*id).expect("no negative one")).collect()
}
