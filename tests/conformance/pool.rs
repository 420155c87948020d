//! Blocks that small tables share: the same rows wherever a table lies, also while it is moved, and no byte lost.

use std::sync::atomic::{AtomicBool, Ordering};

use gatherum::{
    BagMode, Bags, Bytes, Category, Engine, IdBuffer, IdPolicy, IdType, Metric, OutputBuffer, OutputDtype, PoolReport,
    Scheme, Table, TopKOptions, wgpu,
};

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::{Fixture, values},
    lookup::{Batch, Lookup, device, filled, queue, read_back, verify},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "p01_small_tables_share", operation: "load", stamp: Stamp::Devices(p01_small_tables_share) },
    Case {
        name: "p02_lookups_while_tables_move",
        operation: "gather",
        stamp: Stamp::Devices(p02_lookups_while_tables_move),
    },
    Case { name: "p03_recorded_lookups", operation: "gather", stamp: Stamp::Devices(p03_recorded_lookups) },
    Case { name: "p04_within_the_budget", operation: "load", stamp: Stamp::Devices(p04_within_the_budget) },
    Case { name: "p05_steady_work", operation: "gather", stamp: Stamp::Devices(p05_steady_work) },
    Case { name: "p06_churn", operation: "load", stamp: Stamp::Devices(p06_churn) },
];

fn scheme(text: &str) -> Scheme {
    text.parse().expect("a scheme")
}

/// Tables of the first variant of every scheme.
fn every_scheme() -> Vec<Fixture> {
    let variants = Scheme::all().iter().filter_map(|info| info.variants.first());
    variants.enumerate().map(|(number, variant)| Fixture::new(&scheme(variant), 300 + number, 16 + number)).collect()
}

fn load(engine: &Engine, fixtures: &[Fixture]) -> Vec<Table> {
    fixtures.iter().map(|fixture| engine.load_blocking(&fixture.encoded).expect("the table fits")).collect()
}

fn right(engine: &Engine, table: &Table, fixture: &Fixture) {
    verify(&[Lookup::HOST_F32], engine, table, fixture, &Batch::I64(vec![0, 299, -1, 7, 300 << 32]), IdPolicy::Wrap);
}

/// Bytes of tables, without what their blocks have free.
fn of_tables(engine: &Engine) -> u64 {
    let memory = engine.memory();
    memory.rows.iter().filter(|row| row.label.starts_with("table.")).map(|row| row.live.0).sum()
}

/// Tables of every scheme beside each other; some go, the others move together, and all give their rows.
fn p01_small_tables_share(backend: &Backend) {
    let engine = backend.fresh();
    let fixtures = every_scheme();
    let tables = load(&engine, &fixtures);
    let pool = engine.pool();
    assert!(pool.blocks > 0 && pool.blocks < tables.len(), "{pool:?}");
    let bytes: u64 = tables.iter().map(|table| table.bytes().0).sum();
    assert_eq!((of_tables(&engine), engine.memory().live), (bytes, pool.bytes));
    tables.iter().zip(&fixtures).for_each(|(table, fixture)| right(&engine, table, fixture));
    engine.trim();
    let mut kept = Vec::new();
    for (number, (table, fixture)) in tables.into_iter().zip(&fixtures).enumerate() {
        if number % 4 == 1 {
            kept.push((table, fixture));
        }
    }
    let before = engine.pool();
    let compaction = engine.compact_blocking().expect("the device is there");
    let after = engine.pool();
    assert_eq!(before.bytes.0 - after.bytes.0, compaction.freed.0, "{before:?} before, {after:?} after");
    assert!(after.bytes.0 < pool.bytes.0 && after.filled() >= 0.4, "{pool:?} before, {after:?} after");
    assert_eq!(engine.memory().live, after.bytes);
    kept.iter().for_each(|(table, fixture)| right(&engine, table, fixture));
    drop(kept);
    engine.trim();
    assert_eq!((engine.pool(), engine.memory().live), (PoolReport::default(), Bytes(0)));
}

/// Threads look up without a pause while tables beside theirs come and go, and theirs are moved.
fn p02_lookups_while_tables_move(backend: &Backend) {
    let engine = backend.fresh();
    let fixtures: Vec<Fixture> = ["f32", "int8:affine", "int4"].map(|text| Fixture::new(&scheme(text), 400, 24)).into();
    let tables = load(&engine, &fixtures);
    let other = Fixture::new(&scheme("f32"), 1500, 32);
    let done = AtomicBool::new(false);
    let mut moved = 0;
    std::thread::scope(|scope| {
        for (table, fixture) in tables.iter().zip(&fixtures) {
            let (engine, done) = (&engine, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    right(engine, table, fixture);
                }
            });
        }
        for _ in 0..12 {
            let beside: Vec<Table> = (0..5).map(|_| engine.load_blocking(&other.encoded).expect("it fits")).collect();
            // A copy of each in a block that gets emptier than theirs, or theirs does.
            drop(beside);
            moved += engine.compact_blocking().expect("the device is there").moved.0;
        }
        done.store(true, Ordering::Relaxed);
    });
    // All of it once more, with nobody's lookups in between.
    moved += engine.compact_blocking().expect("the device is there").moved.0;
    tables.iter().zip(&fixtures).for_each(|(table, fixture)| right(&engine, table, fixture));
    assert!(moved > 0, "no table was moved: {:?}", engine.pool());
}

/// Commands that were recorded read the table that they were recorded for, whatever became of it and its place until they were
/// submitted.
fn p03_recorded_lookups(backend: &Backend) {
    let engine = backend.fresh();
    let [first, second] = [11, 12].map(|dim| Fixture::new(&scheme("f32"), 400, dim));
    let beside = engine.load_blocking(&second.encoded).expect("it fits");
    let table = engine.load_blocking(&first.encoded).expect("it fits");
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let ids = filled(device(&engine), usage, bytemuck::cast_slice(&[3_u32, 399]));
    let record = |table: &Table| {
        let out = filled(device(&engine), usage, &[0xff; 88]);
        let mut encoder = device(&engine).create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let ids = IdBuffer { buffer: &ids, offset: 0, count: 2, id_type: IdType::U32 };
        let output = OutputBuffer { buffer: &out, offset: 0, dtype: OutputDtype::F32 };
        // Its status is nobody's concern.
        drop(table.encode_gather(&mut encoder, ids, IdPolicy::Error, output).expect("recorded"));
        (encoder, out)
    };
    let check = |(encoder, out): (wgpu::CommandEncoder, wgpu::Buffer)| {
        queue(&engine).submit([encoder.finish()]);
        let bytes = read_back(&engine, &out, 0, 88);
        let values: Vec<f32> = bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect();
        first.compare(3, &values[..11]).expect("the first row");
        first.compare(399, &values[11..]).expect("the second row");
    };
    let [dropped, kept, gone] = [(); 3].map(|()| record(&table));
    drop(dropped);
    drop(beside);
    engine.compact_blocking().expect("the device is there");
    check(kept);
    let moved = record(&table);
    drop(table);
    // What lies where it was.
    let others: Vec<Table> = (0..4).map(|_| engine.load_blocking(&second.encoded).expect("it fits")).collect();
    check(gone);
    check(moved);
    right(&engine, &others[3], &second);
    drop(others);
    engine.trim();
    let live = engine.memory().live;
    assert_eq!(live, Bytes(0), "what was recorded has run: {}", engine.memory());
}

/// A budget is never passed by blocks, and what they have free is given back before a table is refused.
fn p04_within_the_budget(backend: &Backend) {
    // 64,000 bytes.
    let fixture = Fixture::new(&scheme("f32"), 500, 32);
    let budget = Bytes(1 << 20);
    let engine = backend.builder().memory_budget(budget).build_blocking().expect("an engine");
    let mut tables = Vec::new();
    while let Ok(table) = engine.load_blocking(&fixture.encoded) {
        tables.push(table);
        assert!(engine.memory().live <= budget);
    }
    // As many as there would be in buffers of their own, but for what the blocks cannot hold at their ends.
    assert!(tables.len() >= 14, "{} tables\n{}", tables.len(), engine.memory());
    // One of three stays, in each block.
    let mut number = 0;
    tables.retain(|_| {
        number += 1;
        number % 3 == 0
    });
    let held = engine.memory().live;
    let large = Fixture::new(&scheme("f32"), 4000, 32);
    let table = engine.load_blocking(&large.encoded).expect("blocks give way");
    assert!(engine.memory().peak <= budget && held > Bytes(budget.0 - 512_000), "{held} before\n{}", engine.memory());
    tables.iter().for_each(|table| right(&engine, table, &fixture));
    drop((table, tables));
    engine.trim();
    assert_eq!(engine.memory().live, Bytes(0));
}

/// After the first turn, no buffer is made.
fn p05_steady_work(backend: &Backend) {
    let engine = backend.fresh();
    let fixture = Fixture::new(&scheme("int8"), 500, 32);
    let table = engine.load_blocking(&fixture.encoded).expect("it fits");
    let ids: Vec<u32> = (0..200).map(|id| id * 7 % 500).collect();
    let offsets: Vec<u32> = (0..200).step_by(8).collect();
    let query = values(32, 9);
    let callers = filled(device(&engine), wgpu::BufferUsages::STORAGE, bytemuck::cast_slice(&ids));
    let out = filled(device(&engine), wgpu::BufferUsages::STORAGE, &[0; 200 * 128]);
    let turn = || {
        table.gather_blocking(&ids, IdPolicy::Error).expect("rows");
        drop(table.gather_buffer_blocking(&ids, IdPolicy::Error, OutputDtype::F16).expect("rows"));
        table.bag_blocking(&ids, &Bags::offsets(&offsets, BagMode::Sum), IdPolicy::Error).expect("bags");
        table.top_k_blocking(&query, 5, Metric::Cosine, TopKOptions::default()).expect("rows");
        let mut encoder = device(&engine).create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let ids = IdBuffer { buffer: &callers, offset: 0, count: 200, id_type: IdType::U32 };
        let output = OutputBuffer { buffer: &out, offset: 0, dtype: OutputDtype::F32 };
        let status = table.encode_gather(&mut encoder, ids, IdPolicy::Error, output).expect("recorded");
        queue(&engine).submit([encoder.finish()]);
        assert_eq!(status.read_blocking().expect("good ids").count, 0);
    };
    // What the second has of the first's encoder goes when that has run.
    turn();
    turn();
    let (made, live) = (engine.memory().made, engine.memory().live);
    (0..20).for_each(|_| turn());
    assert_eq!((engine.memory().made, engine.memory().live), (made, live), "{}", engine.memory());
    assert!(engine.memory().live_of(Category::Payload) == Bytes(16_000));
}

/// Hundreds of loads and drops of tables of all sizes: what is free of blocks stays within bounds, and nothing is left.
fn p06_churn(backend: &Backend) {
    let engine = backend.fresh();
    let sizes = [1, 3, 10, 40, 200, 900, 2500, 7000];
    let fixtures = sizes.map(|rows| Fixture::new(&scheme("int8"), rows, 20));
    let mut tables: Vec<(usize, Table)> = Vec::new();
    for turn in 0..400_usize {
        let pick = turn * 7919 % 8;
        if tables.len() < 24 || turn % 3 == 0 {
            tables.push((pick, engine.load_blocking(&fixtures[pick].encoded).expect("it fits")));
        } else {
            tables.swap_remove(turn * 104_729 % tables.len());
        }
        if turn % 100 == 99 {
            engine.compact_blocking().expect("the device is there");
            let (pool, used) = (engine.pool(), of_tables(&engine));
            assert!(pool.filled() >= 0.5, "{pool:?} of {used} bytes of tables");
            assert_eq!(engine.memory().live, pool.bytes);
        }
    }
    for (pick, table) in &tables {
        let batch = Batch::U32(vec![0, u32::try_from(sizes[*pick] - 1).expect("a row")]);
        verify(&[Lookup::HOST_F32], &engine, table, &fixtures[*pick], &batch, IdPolicy::Error);
    }
    drop(tables);
    engine.trim();
    assert_eq!((engine.pool(), engine.memory().live), (PoolReport::default(), Bytes(0)));
}
