//! Blocks that small tables share: making tables in them beside a buffer each, and moving tables beside a plain copy.
//!
//! `cargo bench --bench pool [-- FILTER]`. Names are `pool/WHAT/ADAPTER`; tables have 1,000 rows of 16 columns by int8, 20 KB.
//! Answers are asserted before anything is timed.

#![allow(
    missing_docs,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    unreachable_pub,
    dead_code,
    reason = "a bench: sizes are known, and it shares code with others"
)]

mod common;

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use gatherum::{EncodedTable, Engine, IdPolicy, Table, wgpu};

const TABLES: usize = 256;
const ROWS: usize = 1000;
const DIM: usize = 16;

fn main() {
    let (mut criterion, engines) = common::criterion(200, 800);
    let values: Vec<f32> = (0..ROWS * DIM).map(|at| (at as f32).sin()).collect();
    let scheme = "int8".parse().expect("a scheme");
    let (encoded, _) = EncodedTable::encode("small", &values, DIM, &scheme).expect("a table");
    for (name, engine) in engines.iter().filter(|(_, engine)| engine.device().is_some()) {
        load(&mut criterion, name, engine, &encoded);
        compact(&mut criterion, name, engine, &encoded);
    }
    criterion.final_summary();
}

fn tables(engine: &Engine, encoded: &EncodedTable) -> Vec<Table> {
    (0..TABLES).map(|_| engine.load_blocking(encoded).expect("room")).collect()
}

fn right(table: &Table, encoded: &EncodedTable) {
    let host = Engine::host().load_blocking(encoded).expect("room");
    let ids = [0_u32, 500, 999];
    let [got, want] = [table, &host].map(|table| table.gather_blocking(&ids, IdPolicy::Error).expect("rows").values);
    assert_eq!(got, want);
}

/// A buffer for each, filled as tables are: what there would be without blocks.
fn buffers(device: &wgpu::Device, queue: &wgpu::Queue, bytes: &[u8]) -> Vec<wgpu::Buffer> {
    let make = |_| {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let size = bytes.len() as u64;
        let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let buffer = device.create_buffer(&descriptor);
        for half in 0..2 {
            let part = bytes.len() / 2;
            queue.write_buffer(&buffer, (half * part) as u64, &bytes[half * part..][..part]);
            queue.submit([]);
            device.poll(wgpu::PollType::wait_indefinitely()).expect("the work ends");
        }
        buffer
    };
    (0..TABLES).map(make).collect()
}

fn load(criterion: &mut Criterion, name: &str, engine: &Engine, encoded: &EncodedTable) {
    let (Some(device), Some(queue)) = (engine.device(), engine.queue()) else { return };
    let loaded = tables(engine, encoded);
    right(&loaded[TABLES - 1], encoded);
    println!("pool/{name}: {:?} for {TABLES} tables of {}", engine.pool(), loaded[0].bytes());
    drop(loaded);
    let mut group = criterion.benchmark_group("pool/load");
    group.throughput(Throughput::Elements(TABLES as u64));
    group.bench_function(BenchmarkId::new(name, "blocks"), |bench| {
        bench.iter_with_large_drop(|| tables(engine, encoded));
    });
    let bytes = vec![1; 20_000];
    group.bench_function(BenchmarkId::new(name, "a buffer each"), |bench| {
        bench.iter_with_large_drop(|| buffers(device, queue, &bytes));
    });
    group.finish();
}

fn compact(criterion: &mut Criterion, name: &str, engine: &Engine, encoded: &EncodedTable) {
    let mut group = criterion.benchmark_group("pool/compact");
    let mut moved = 0;
    group.bench_function(BenchmarkId::new(name, "a quarter of the tables stays"), |bench| {
        bench.iter_custom(|turns| {
            let mut time = Duration::ZERO;
            for _ in 0..turns {
                let mut number = 0;
                let mut kept = tables(engine, encoded);
                kept.retain(|_| {
                    number += 1;
                    number % 4 == 0
                });
                let start = Instant::now();
                moved = engine.compact_blocking().expect("the device is there").moved.0;
                right(&kept[0], encoded);
                time += start.elapsed();
            }
            time
        });
    });
    println!("pool/compact/{name}: {moved} B moved");
    group.finish();
}
