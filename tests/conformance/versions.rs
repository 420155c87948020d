//! Tables whose rows are written while they are served: each call reads one whole version, and none an old one.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use gatherum::{
    BagMode, Bags, Bytes, EncodedTable, Engine, GatherError, IdPolicy, IdType, Metric, OnDemand, OutputBuffer,
    OutputDtype, Table, Tiered, TopKOptions,
    io::{self, TableReader, Writable, WritableTable},
    wgpu,
};

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::hash,
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "v01_one_whole_version", operation: "gather", stamp: Stamp::Backends(v01_one_whole_version) },
    Case { name: "v02_what_is_held", operation: "gather", stamp: Stamp::Backends(v02_what_is_held) },
    Case { name: "v03_what_stays", operation: "gather", stamp: Stamp::Backends(v03_what_stays) },
];

const ROWS: u32 = 256;
const DIM: usize = 16;

/// A table of which all rows hold one value, on the disk.
struct Written {
    _folder: tempfile::TempDir,
    path: PathBuf,
    table: WritableTable,
}

impl Written {
    fn new(scheme: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table.safetensors");
        let zeros = vec![0.0; ROWS as usize * DIM];
        let encoded = EncodedTable::encode("table", &zeros, DIM, &scheme.parse().expect("a scheme")).expect("a table");
        io::save_table(&encoded.0, None, &path).expect("a file");
        let table = WritableTable::open(&path, &Writable::default()).expect("a table");
        Self { _folder: folder, path, table }
    }

    /// Has all rows hold `value`.
    fn publish(&mut self, value: f32) {
        let ids: Vec<u32> = (0..ROWS).collect();
        self.table.write(&ids, &vec![value; ROWS as usize * DIM]).expect("rows");
        self.table.publish_blocking().expect("a version");
    }
}

/// So many rows in each tier.
fn tiers(device: u64, host: u64) -> Tiered {
    let row = DIM as u64 * 4;
    Tiered { device: Bytes(device * row + 32), host: Bytes(host * row), ..Tiered::default() }
}

/// Shards of 16 rows, of which half are there.
fn shards() -> OnDemand {
    OnDemand { shard: Bytes(1200), budget: Some(Bytes(9 << 10)), ..OnDemand::default() }
}

fn served(engine: &Engine, reader: &TableReader) -> [Table; 2] {
    let tiered = engine.load_tiered_blocking(reader.clone(), &tiers(60, 100)).expect("tiers");
    [tiered, engine.load_on_demand(reader.clone(), &shards()).expect("shards")]
}

/// The one value that an answer of any kind has.
fn value(table: &Table, turn: u64) -> f32 {
    let ids: Vec<u32> =
        (0..30).map(|at| u32::try_from(hash(turn << 8 | at) % u64::from(ROWS)).expect("a row")).collect();
    let (values, factor) = match turn % 4 {
        0 | 1 => (table.gather_blocking(&ids, IdPolicy::Error).expect("rows").values, 1.0),
        2 => {
            let bags = Bags::offsets(&[0_u32, 10, 20], BagMode::Sum);
            (table.bag_blocking(&ids, &bags, IdPolicy::Error).expect("bags").values, 10.0)
        }
        _ => (table.score_blocking(&[1.0; DIM], Metric::Dot, ..).expect("scores").values, DIM as f32),
    };
    assert!(values.iter().all(|other| *other == values[0]), "one call has read several versions: {values:?}");
    values[0] / factor
}

fn v01_one_whole_version(backend: &Backend) {
    let engine = backend.fresh();
    let mut written = Written::new("f32");
    let tables = served(&engine, &written.table.reader());
    let lease = tables[0].lease_blocking(&[3_u32, 200]).expect("a lease");
    let (published, done, calls) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (table, published, done, calls) = (&tables[thread % 2], &published, &done, &calls);
            scope.spawn(move || {
                let mut turn = (thread as u64) << 32;
                while !done.load(Ordering::SeqCst) {
                    let least = published.load(Ordering::SeqCst) as f32;
                    let value = value(table, turn);
                    assert!(value >= least, "{value} was read after {least} had been published");
                    turn += 1;
                    calls.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        // A writer that fails must not leave the readers going on.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for version in 1..=40 {
                let before = calls.load(Ordering::SeqCst);
                written.publish(version as f32);
                published.store(version, Ordering::SeqCst);
                if version % 10 == 0 {
                    written.table.merge_blocking().expect("a merge");
                }
                while calls.load(Ordering::SeqCst) < before + 4 {
                    std::thread::yield_now();
                }
            }
        }));
        done.store(true, Ordering::SeqCst);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert_eq!(written.table.status().version, 40);
    drop(lease);
    tables.iter().for_each(|table| assert_eq!(value(table, 0), 40.0));
}

fn v02_what_is_held(backend: &Backend) {
    let engine = backend.fresh();
    for scheme in ["f32", "int8"] {
        let mut written = Written::new(scheme);
        for table in served(&engine, &written.table.reader()) {
            let version = written.table.status().version as f32;
            let ids = [7_u32, 8, 130];
            let lease = table.lease_blocking(&ids).expect("a lease");
            let whole = table.gather_blocking(&ids, IdPolicy::Error).expect("rows").values;
            assert!(whole.iter().all(|value| (value - version).abs() < 0.1), "{whole:?}");
            // One of the rows that are held changes, and one that is not.
            written.table.write(&[8_u32, 131], &[100.0; 2 * DIM]).expect("rows");
            written.table.flush().expect("a flush");
            let same = table.gather_blocking(&ids, IdPolicy::Error).expect("rows").values;
            assert_eq!(same, whole, "{scheme}: flushed is not published");
            written.table.publish_blocking().expect("a version");
            let now = table.gather_blocking(&[7_u32, 8, 130, 131], IdPolicy::Error).expect("rows").values;
            for (row, changed) in now.chunks(DIM).zip([false, true, false, true]) {
                let want = if changed { 100.0 } else { version };
                assert!(row.iter().all(|value| (value - want).abs() < 0.5), "{scheme}: {row:?}, and not {want}");
            }
            // What is held is there still: nothing is read for it.
            let misses = table.residency().misses;
            table.gather_blocking(&ids, IdPolicy::Error).expect("rows");
            assert_eq!(table.residency().misses, misses, "{scheme}");
            drop(lease);
            written.publish(version + 10.0);
            let all: Vec<u32> = (0..ROWS).collect();
            let rows = table.gather_blocking(&all, IdPolicy::Error).expect("rows").values;
            assert!(rows.iter().all(|value| (value - version - 10.0).abs() < 0.5), "{scheme}: {rows:?}");
            table.evict(..);
            assert_eq!(table.residency().resident_bytes, Bytes(0), "{scheme}: nothing is held");
            let best = table.top_k_blocking(&[1.0; DIM], 1, Metric::Dot, TopKOptions::default()).expect("a row");
            assert!((best.scores[0] / DIM as f32 - version - 10.0).abs() < 0.5, "{scheme}: {best:?}");
            // All rows hold the number of their version again.
            let next = written.table.status().version + 1;
            written.publish(next as f32);
        }
    }
    engine.trim();
    assert_eq!(engine.memory().live, Bytes(0));
}

fn v03_what_stays(backend: &Backend) {
    let engine = backend.fresh();
    let mut written = Written::new("f32");
    written.publish(1.0);
    let whole = engine.load_blocking(&written.table.reader()).expect("a table");
    let [tiered, _] = served(&engine, &written.table.reader());
    written.publish(2.0);
    assert_eq!((value(&whole, 0), value(&tiered, 0)), (1.0, 2.0), "a table that was loaded whole stays as it was");
    // The file is as it was, and its own source as well, until a merge.
    let file = io::TableFile::open(&written.path).expect("the table");
    assert_eq!(value(&engine.load_blocking(&file).expect("a table"), 0), 0.0);
    written.table.merge_blocking().expect("a merge");
    assert_eq!((value(&tiered, 0), value(&tiered, 3)), (2.0, 2.0));
    let file = io::TableFile::open(&written.path).expect("the table");
    assert_eq!(value(&engine.load_blocking(&file).expect("a table"), 0), 2.0);
    let Some(device) = engine.device() else { return };
    // What is recorded would run later, on rows of then.
    let usage = wgpu::BufferUsages::STORAGE;
    let buffer =
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 64, usage, mapped_at_creation: false });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let ids = gatherum::IdBuffer { buffer: &buffer, offset: 0, count: 1, id_type: IdType::U32 };
    let output = OutputBuffer { buffer: &buffer, offset: 0, dtype: OutputDtype::F32 };
    let error = tiered.encode_gather(&mut encoder, ids, IdPolicy::Zero, output).map(|_| ()).expect_err("rows change");
    assert!(matches!(error, GatherError::Changing { .. }), "{error}");
}
