//! Rows that come and go, beside `std::collections::HashMap` with rows in a `Vec`: ids a second that are found and copied, that are
//! written, and that make others go.
//!
//! `cargo bench --bench dynamic [-- FILTER]`. Names are `map/WHAT/ROWS/WHOSE`; rows have 16 columns of f32, batches 65,536 ids.
//! `map/device` is the search on each adapter, with ids and rows that stay there. Answers are asserted before anything is timed.

#![allow(
    missing_docs,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    unreachable_pub,
    dead_code,
    reason = "a bench: sizes are known, and it shares code with others"
)]

mod common;

use std::{collections::HashMap, hint::black_box};

use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, measurement::WallTime};
use gatherum::{
    DynamicOptions, DynamicTable, Engine, Eviction, IdBuffer, IdType, Initializer, Missing, OutputDtype, wgpu,
};

const DIM: usize = 16;
const BATCH: usize = 1 << 16;
const SIZES: [usize; 2] = [100_000, 1_000_000];

fn main() {
    let (mut criterion, engines) = common::criterion(200, 800);
    for rows in SIZES {
        find(&mut criterion, rows);
        write(&mut criterion, rows);
        go(&mut criterion, rows);
    }
    for (name, engine) in engines.iter().filter(|(_, engine)| engine.device().is_some()) {
        on_device(&mut criterion, name, engine);
    }
    criterion.final_summary();
}

/// The id of a row: no pattern, all 64 bits.
fn id(row: u32) -> u64 {
    (u64::from(row) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn table(engine: &Engine, rows: usize, eviction: Eviction) -> DynamicTable {
    let initializer = Initializer::Uniform { seed: 1, low: -1.0, high: 1.0 };
    let options = DynamicOptions {
        capacity: rows as u64,
        initializer,
        eviction,
        report_evicted: false,
        ..DynamicOptions::default()
    };
    let table = engine.dynamic_table_blocking("bench", DIM as u32, &options).expect("memory");
    let ids: Vec<u64> = (0..rows as u32).map(id).collect();
    for ids in ids.chunks(BATCH) {
        table.gather_blocking(ids).expect("room");
    }
    table
}

/// Batches of ids, drawn evenly.
fn batches(rows: usize) -> Vec<Vec<u64>> {
    let drawn = common::uniform(rows as u32, 8 * BATCH);
    drawn.chunks(BATCH).map(|rows| rows.iter().map(|row| id(*row)).collect()).collect()
}

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(BATCH as u64));
    group
}

/// What std has: slots by id, and rows by slot.
fn of_std(rows: usize) -> (HashMap<u64, u32>, Vec<f32>) {
    ((0..rows as u32).map(|row| (id(row), row)).collect(), vec![0.5; rows * DIM])
}

fn find(criterion: &mut Criterion, rows: usize) {
    let batches = batches(rows);
    let mut group = group(criterion, "map/find");
    for eviction in [Eviction::Refuse, Eviction::Lru, Eviction::Lfu] {
        let table = table(&Engine::host(), rows, eviction);
        let found = table.lookup_blocking(&batches[0], Missing::Error).expect("rows").values;
        assert_eq!(
            found[DIM..2 * DIM],
            table.lookup_blocking(&batches[0][1..2], Missing::Error).expect("a row").values
        );
        let mut next = batches.iter().cycle();
        group.bench_function(BenchmarkId::new(rows.to_string(), format!("{eviction:?}")), |bench| {
            bench.iter(|| table.lookup_blocking(next.next().expect("a cycle"), Missing::Zero));
        });
    }
    let (slots, values) = of_std(rows);
    let mut next = batches.iter().cycle();
    group.bench_function(BenchmarkId::new(rows.to_string(), "std"), |bench| {
        bench.iter(|| {
            let mut out = vec![0f32; BATCH * DIM];
            for (id, out) in next.next().expect("a cycle").iter().zip(out.chunks_exact_mut(DIM)) {
                if let Some(slot) = slots.get(id) {
                    out.copy_from_slice(&values[*slot as usize * DIM..][..DIM]);
                }
            }
            black_box(out)
        });
    });
    group.finish();
}

fn write(criterion: &mut Criterion, rows: usize) {
    let (batches, new) = (batches(rows), vec![0.25; BATCH * DIM]);
    let mut group = group(criterion, "map/upsert");
    for eviction in [Eviction::Refuse, Eviction::Lru] {
        let table = table(&Engine::host(), rows, eviction);
        let mut next = batches.iter().cycle();
        group.bench_function(BenchmarkId::new(rows.to_string(), format!("{eviction:?}")), |bench| {
            bench.iter(|| table.upsert_blocking(next.next().expect("a cycle"), &new));
        });
        let written = table.lookup_blocking(&batches[0][..1], Missing::Error).expect("a row").values;
        assert!(next.next().is_some() && written.iter().all(|value| *value == 0.25 || value.abs() <= 1.0));
    }
    let (mut slots, mut values) = of_std(rows);
    let mut next = batches.iter().cycle();
    group.bench_function(BenchmarkId::new(rows.to_string(), "std"), |bench| {
        bench.iter(|| {
            for (id, new) in next.next().expect("a cycle").iter().zip(new.chunks_exact(DIM)) {
                let free = slots.len() as u32;
                let slot = *slots.entry(*id).or_insert(free);
                values[slot as usize * DIM..][..DIM].copy_from_slice(new);
            }
        });
    });
    group.finish();
}

/// Every id is new, and makes another go.
fn go(criterion: &mut Criterion, rows: usize) {
    let mut group = group(criterion, "map/evict");
    for eviction in [Eviction::Lru, Eviction::Lfu] {
        let table = table(&Engine::host(), rows, eviction);
        let mut first = rows as u32;
        group.bench_function(BenchmarkId::new(rows.to_string(), format!("{eviction:?}")), |bench| {
            bench.iter(|| {
                let ids: Vec<u64> = (first..first + BATCH as u32).map(id).collect();
                first += BATCH as u32;
                table.gather_blocking(&ids)
            });
        });
        assert_eq!(table.len(), rows as u64);
        assert!(table.stats().evictions >= BATCH as u64);
    }
    group.finish();
}

fn on_device(criterion: &mut Criterion, name: &str, engine: &Engine) {
    let (Some(device), Some(queue)) = (engine.device(), engine.queue()) else { return };
    let rows = SIZES[0];
    let table = table(engine, rows, Eviction::Lru);
    let ids = batches(rows).swap_remove(0);
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 8 * BATCH as u64,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    queue.write_buffer(&buffer, 0, &ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>());
    let on_device = IdBuffer { buffer: &buffer, offset: 0, count: BATCH as u32, id_type: IdType::U64 };
    let want = table.lookup_blocking(&ids, Missing::Error).expect("rows").values;
    assert_eq!(table.lookup_blocking(on_device, Missing::Error).expect("rows").values, want);
    let mut group = group(criterion, "map/device");
    group.bench_function(BenchmarkId::new(rows.to_string(), name), |bench| {
        bench.iter(|| {
            let rows = table.lookup_buffer_blocking(on_device, Missing::Zero, OutputDtype::F32).expect("rows");
            black_box(rows.bad())
        });
    });
    group.finish();
}
