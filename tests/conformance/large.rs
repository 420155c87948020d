//! A08: tables larger than one binding, and than the device.

use std::sync::{Mutex, PoisonError};

use gatherum::{
    BadIds, Bytes, EncodedTable, Engine, IdPolicy, OutputDtype, Placement, Scheme, Table, TableError, TableSource, io,
    wgpu,
};

use crate::{
    backend::Backend,
    case::{Case, Stamp, leads},
    fixture::{Fixture, Repeated, row_bytes},
    lookup::{Answer, Batch, Lookup, Way, same},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a08_the_265_mb_table", operation: "gather", stamp: Stamp::Backends(a08_the_265_mb_table) },
    Case { name: "a08_many_shards", operation: "gather", stamp: Stamp::DeviceSchemes(a08_many_shards) },
    Case { name: "a08_streamed", operation: "load", stamp: Stamp::DeviceLeading(a08_streamed) },
    Case { name: "a08_too_large", operation: "load", stamp: Stamp::Backends(a08_too_large) },
    Case { name: "a08_the_longest_rows", operation: "gather", stamp: Stamp::DeviceLeading(a08_the_longest_rows) },
];

const MIB: u64 = 1 << 20;

/// Looks `ids` up in a table of repeated rows and compares every bit with the rows of the small table.
fn check(engine: &Engine, table: &Table, source: &Repeated<'_>, base: &Rows, ids: Vec<u32>, lookup: Lookup) {
    let bits = source.rows(ids.iter().copied(), &base.values).into_iter().map(f32::to_bits).collect();
    let want = Answer { bits, bad: BadIds::default() };
    let want = if lookup.dtype == OutputDtype::F32 { want } else { want.halved() };
    let answer = lookup.run(engine, table, &Batch::U32(ids), IdPolicy::Error).expect("an answer");
    let dim = source.spec().shape().dim() as usize;
    same(&answer, &want, dim, &format!("{lookup:?} in {table:?}"));
}

/// All rows of a small table: as the host backend gives them, and as the reference says.
struct Rows {
    values: Vec<f32>,
    dim: usize,
}

impl Rows {
    fn new(base: &EncodedTable) -> Self {
        let engine = Engine::host();
        let table = engine.load_blocking(base).expect("the host takes it");
        let (rows, dim) = (base.spec().shape().rows(), base.spec().shape().dim() as usize);
        let f32s = Lookup::HOST_F32
            .run(&engine, &table, &Batch::U32((0..rows).collect()), IdPolicy::Error)
            .expect("an answer");
        let fixture = Fixture::from_encoded(base.clone());
        for (row, values) in (0..).zip(f32s.f32s().chunks_exact(dim)) {
            fixture.compare(row, values).unwrap_or_else(|error| panic!("{error}"));
        }
        Self { values: f32s.f32s(), dim }
    }
}

/// First and last row of each shard, and some of their neighbours.
fn edges(placement: &Placement) -> Vec<u32> {
    let edges = placement.shards().iter().flat_map(|shard| {
        let last = shard.first_row + shard.rows - 1;
        [shard.first_row, last, shard.first_row + shard.rows / 2, last.saturating_sub(1), shard.first_row + 1]
    });
    // The order of the ids is none that shards have.
    let mut ids: Vec<u32> = edges.filter(|row| *row < u32::MAX).collect();
    let middle = ids.len() / 2;
    ids.rotate_left(middle);
    ids
}

/// The table that other libraries panic at, on a device that binds 128 MiB.
fn a08_the_265_mb_table(backend: &Backend) {
    let scheme: Scheme = "f32".parse().expect("a scheme");
    let base = Fixture::new(&scheme, 127, 1280).encoded;
    let source = Repeated::new("large", &base, 51_865);
    assert_eq!(source.spec().bytes(), Bytes(265_548_800));
    let placement = Placement::plan(source.spec(), Bytes(128 * MIB)).expect("a placement");
    assert_eq!(placement.shards().len(), 2);
    let engine = match backend.is_host() {
        true => Engine::host(),
        false => {
            // The default limits bind 128 MiB.
            let (device, queue) = backend.device(wgpu::Limits::default());
            Engine::with_device(device, queue).expect("an engine on default limits")
        }
    };
    let table = engine.load_blocking(&source).expect("it is split");
    assert_eq!(table.shards(), if backend.is_host() { 1 } else { 2 });
    assert_eq!(engine.memory().live_at("table.large"), placement.bytes());
    let rows = Rows::new(&base);
    for lookup in Lookup::all(backend) {
        check(&engine, &table, &source, &rows, edges(&placement), lookup);
    }
}

/// More shards than a pass binds, whose rows are of every kind that kernels tell apart.
fn a08_many_shards(scheme: &Scheme, backend: &Backend) {
    let engine = backend.narrow(16 * MIB, 64 * MIB);
    // Whole lanes and none differ by a codec, not by its options.
    for dim in [63, 64].into_iter().take(if leads(scheme) { 2 } else { 1 }) {
        let base = Repeated::base(scheme, 127, dim);
        let row = row_bytes(&base);
        // An odd number over six shards, so that the last one is short.
        let source = Repeated::of(scheme, "many", &base, (6 * 16 * MIB / row + 20_000) | 1, dim as u64);
        let placement = pollster::block_on(Placement::read(&source, Bytes(16 * MIB))).expect("a placement");
        let bands = gatherum::testing::bands(source.spec()).len();
        match bands {
            1 => assert_eq!(placement.shards().len(), 7, "two passes"),
            bands => assert!(placement.shards().len() > bands, "several passes"),
        }
        let table = engine.load_blocking(&source).expect("it is split");
        assert_eq!(table.shards(), placement.shards().len());
        let rows = Rows::new(&base);
        let mut ids = edges(&placement);
        let count = source.spec().shape().rows();
        ids.extend((0..2000).map(|at| at * 7919 % count));
        // As with columns: which shard a row is in does not depend on how it is written.
        let ways = [Way::Host, Way::Recorded { offset: 276 }, Way::Recorded { offset: 272 }];
        let both = |way| [OutputDtype::F32, OutputDtype::F16].map(|dtype| Lookup { way, dtype });
        let lookups = ways.into_iter().flat_map(both).take(if leads(scheme) { 6 } else { 3 });
        lookups.for_each(|lookup| check(&engine, &table, &source, &rows, ids.clone(), lookup));
        bad_ids_are_counted_once(&engine, &table, &source, &rows, if leads(scheme) { 272 } else { 276 });
    }
}

/// Shards that are filled as the bytes of a file come, in pieces that end anywhere.
fn a08_streamed(scheme: &Scheme, backend: &Backend) {
    let engine = backend.narrow(16 * MIB, 64 * MIB);
    let base = Repeated::base(scheme, 127, 63);
    let source = Repeated::of(scheme, "streamed", &base, (2 * 16 * MIB / row_bytes(&base) * 51 / 50 + 1000) | 1, 63);
    let placement = pollster::block_on(Placement::read(&source, Bytes(16 * MIB))).expect("a placement");
    assert!(placement.shards().len() >= 3);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("streamed.safetensors");
    let whole = pollster::block_on(EncodedTable::read(&source)).expect("it fits host memory");
    io::save_table(&whole, None, &path).expect("a file");
    // Tests of other schemes have the same engine.
    let name = format!("streamed {scheme}");
    let mut stream = io::TableStream::new(&engine, &name);
    for piece in std::fs::read(&path).expect("its bytes").chunks(999_983) {
        pollster::block_on(stream.push(piece)).expect("room");
    }
    let (table, _) = stream.finish().expect("a table");
    assert_eq!((table.shards(), table.bytes()), (placement.shards().len(), placement.bytes()));
    assert_eq!(engine.memory().live_at(&format!("table.{name}")), placement.bytes());
    let rows = Rows::new(&base);
    let count = source.spec().shape().rows();
    let ids: Vec<u32> = edges(&placement).into_iter().chain((0..2000).map(|at| at * 7919 % count)).collect();
    check(&engine, &table, &source, &rows, ids, Lookup { way: Way::Host, dtype: OutputDtype::F32 });
}

/// Each pass sees every id; one of them answers for the bad ones. Recorded lookups write from `offset` on.
fn bad_ids_are_counted_once(engine: &Engine, table: &Table, source: &Repeated<'_>, rows: &Rows, offset: usize) {
    let count = source.spec().shape().rows();
    if !table.spec().scheme().bounds_rows() {
        // Unsigned ids are all good.
        return;
    }
    let batch = Batch::U32(vec![count - 1, count, 0, u32::MAX, 1]);
    for dtype in [OutputDtype::F32, OutputDtype::F16] {
        let lookup = Lookup { way: Way::Recorded { offset }, dtype };
        let answer = lookup.run(engine, table, &batch, IdPolicy::Zero).expect("an answer");
        assert_eq!((answer.bad.count, answer.bad.first), (2, Some(1)));
        let good = source.rows([count - 1, 0, 1].into_iter(), &rows.values).into_iter().map(f32::to_bits).collect();
        let good = Answer { bits: good, bad: BadIds::default() };
        let good = if dtype == OutputDtype::F32 { good } else { good.halved() };
        let dim = rows.dim;
        assert_eq!(answer.bits[..dim], good.bits[..dim]);
        assert!(answer.bits[dim..2 * dim].iter().all(|bits| *bits == 0));
        assert_eq!(answer.bits[2 * dim..3 * dim], good.bits[dim..2 * dim]);
        assert!(answer.bits[3 * dim..4 * dim].iter().all(|bits| *bits == 0));
        assert_eq!(answer.bits[4 * dim..], good.bits[2 * dim..]);
    }
}

/// Over the budget: refused with the numbers, before a byte of the source is read or of the device taken.
fn a08_too_large(backend: &Backend) {
    let budget = Bytes(10 * MIB);
    let engine = backend.builder().memory_budget(budget).build_blocking().expect("an engine");
    let scheme: Scheme = "int8".parse().expect("a scheme");
    let base = Fixture::new(&scheme, 3, 128).encoded;
    let kept = engine.load_blocking(&base).expect("a small one fits");
    let before = engine.memory();
    let source = Unread(Repeated::new("huge", &base, 100_000_000));
    let error = engine.load_blocking(&source).expect_err("13 GB do not fit 10 MiB");
    let TableError::OverBudget(error) = error else { panic!("{error}") };
    let needed = source.spec().bytes();
    let most = if backend.is_host() { needed } else { Bytes(backend.limits().max_storage_buffer_binding_size) };
    assert!(error.needed >= needed, "{error}");
    assert_eq!((error.budget, error.live), (budget, before.live));
    assert!(error.largest <= most && error.largest.0 >= 16 * MIB, "{error}");
    assert!(error.to_string().contains(&format!("{:#}", error.needed)), "{error}");
    assert_eq!(engine.memory(), before, "a refusal changes nothing");
    drop(kept);
}

/// A source that must not be read.
struct Unread<'a>(Repeated<'a>);

impl TableSource for Unread<'_> {
    fn spec(&self) -> &gatherum::TableSpec {
        self.0.spec()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    async fn read_part(&self, _part: usize, _offset: u64, _out: &mut [u8]) -> Result<(), gatherum::SourceError> {
        panic!("a table that is refused is not read")
    }
}

/// The longest rows there may be, of several shards, on a device of the least limits.
fn a08_the_longest_rows(scheme: &Scheme, backend: &Backend) {
    let engine = backend.narrow(64 * MIB, 64 * MIB);
    // Some schemes take a minute to fit rows so long: backends that follow one another share what came of it.
    static FITTED: Mutex<Option<(Scheme, EncodedTable)>> = Mutex::new(None);
    let mut fitted = FITTED.lock().unwrap_or_else(PoisonError::into_inner);
    let base = match &*fitted {
        Some((of, base)) if of == scheme => base.clone(),
        _ => Repeated::base(scheme, 5, gatherum::MAX_DIM as usize),
    };
    *fitted = Some((scheme.clone(), base.clone()));
    drop(fitted);
    let shared: u64 = base.spec().parts().iter().filter(|part| part.is_shared()).map(|part| part.bytes().0).sum();
    // Rows of different numbers of values may be shorter than in the mean.
    let uneven = 1 + 2 * u64::from(base.spec().values() > 0);
    let count = uneven * (64 * MIB - shared) / row_bytes(&base) + 1;
    let source = Repeated::of(scheme, "long rows", &base, count, gatherum::MAX_DIM.into());
    let table = engine.load_blocking(&source).expect("a row fits the least binding");
    assert!(table.shards() >= 2, "{table:?}");
    let rows = Rows::new(&base);
    let last = u32::try_from(count).expect("few rows") - 1;
    for dtype in [OutputDtype::F32, OutputDtype::F16] {
        check(&engine, &table, &source, &rows, vec![last, 0, 3, 4, last - 1], Lookup { way: Way::Host, dtype });
    }
    engine.trim();
}
