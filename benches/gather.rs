//! Gather by criterion: one group an adapter and the host, for each scheme at 1, 1,024 and 65,536 ids and 100, 128 and 768
//! columns, uniform and Zipf ids, with the results brought back to host memory; the copy of as many bytes beside it.
//!
//! The first call of each kind, cold, is told apart. Answers are asserted before anything is timed.
//!
//! `cargo bench --bench gather [-- FILTER]`, as in `cargo bench --bench gather -- llvmpipe-vulkan/int8/128`.

#![allow(
    missing_docs,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    unreachable_pub,
    dead_code,
    reason = "a bench: sizes are known, and it shares code with others"
)]

mod common;

use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput};
use gatherum::{EncodedTable, Engine, IdPolicy, testing, wgpu};

const ROWS: u32 = 50_000;
const DIMS: [usize; 3] = [100, 128, 768];
const BATCHES: [usize; 3] = [1, 1024, 65_536];

fn main() {
    let (mut criterion, engines) = common::criterion(50, 300);
    for dim in DIMS {
        let values = common::values(ROWS, dim);
        for scheme in common::schemes() {
            let table = EncodedTable::encode("bench", &values, dim, &scheme).expect("values are finite").0;
            for (name, engine) in &engines {
                gather(&mut criterion, &format!("{name}/{scheme}/{dim}"), engine, &table, dim);
            }
        }
        for (name, engine) in &engines {
            copy(&mut criterion, &format!("{name}/copy/{dim}"), engine, dim);
        }
    }
    criterion.final_summary();
}

fn gather(criterion: &mut Criterion, name: &str, engine: &Engine, encoded: &EncodedTable, dim: usize) {
    let mut group = criterion.benchmark_group(name);
    let table = engine.load_blocking(encoded).expect("the table fits");
    let start = Instant::now();
    drop(table.gather_blocking(&[0_u32], IdPolicy::Error));
    println!("{name}: first call {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
    for (law, draw) in [("uniform", common::uniform as fn(u32, usize) -> Vec<u32>), ("zipf", common::zipf)] {
        for batch in BATCHES {
            let ids = draw(ROWS, batch);
            let mut out = vec![f32::NAN; batch * dim];
            table.gather_into_blocking(&ids, IdPolicy::Error, &mut out).expect("the ids are good");
            common::assert_rows(encoded, &ids, dim, &out);
            group.throughput(Throughput::Elements(batch as u64));
            group.bench_function(BenchmarkId::new(law, batch), |bench| {
                bench.iter(|| table.gather_into_blocking(&ids, IdPolicy::Error, &mut out));
            });
        }
    }
    group.finish();
}

/// The copy roofline: on the device, without bringing anything back.
fn copy(criterion: &mut Criterion, name: &str, engine: &Engine, dim: usize) {
    let (Some(device), Some(queue)) = (engine.device(), engine.queue()) else { return };
    let mut group = criterion.benchmark_group(name);
    for batch in BATCHES {
        let Some(roofline) = testing::roofline(engine, (batch * dim * 4) as u64, 4) else { continue };
        group.throughput(Throughput::Elements(batch as u64));
        group.bench_function(BenchmarkId::new("device", batch), |bench| {
            bench.iter(|| {
                let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                roofline.encode(&mut encoder);
                let submission = queue.submit([encoder.finish()]);
                device.poll(wgpu::PollType::Wait { submission_index: Some(submission), timeout: None })
            });
        });
    }
    group.finish();
}
