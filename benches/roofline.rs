//! The headline: 65,536 random rows of 1,000,000 x 128, beside the fastest way there is to move as many bytes.
//!
//! On an adapter that is the best of several copy shaders, on the host a copy by all threads. Everything is measured in
//! turns within one run, so that what disturbs one disturbs all; the median is told. First calls, which compile, are apart.
//!
//! `cargo bench --bench roofline [-- ADAPTER]`; `ROWS`, `DIM`, `IDS` and `TURNS` change the sizes,
//! `SCHEMES="f32 int4:affine"` the schemes.
//! `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` gives software adapters large pages, without which they mostly wait for the TLB.

#![allow(
    missing_docs,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    unreachable_pub,
    dead_code,
    reason = "a bench: sizes are known, and it shares code with others"
)]

mod common;

use std::{collections::BTreeMap, time::Instant};

use gatherum::{
    EncodedTable, Engine, GatherStatus, IdBuffer, IdPolicy, IdType, OutputBuffer, OutputDtype, Scheme, Table, testing,
    wgpu,
};
use rayon::prelude::*;

struct Size {
    rows: u32,
    dim: usize,
    ids: usize,
    turns: usize,
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() {
    let size = Size {
        rows: number("ROWS", 1_000_000) as u32,
        dim: number("DIM", 128),
        ids: number("IDS", 65_536),
        turns: number("TURNS", 31),
    };
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut engines = common::engines();
    engines.retain(|(name, _)| name.contains(&wanted));
    common::announce(&engines);
    println!("{} random ids of {} x {}, f32 out, median of {} turns", size.ids, size.rows, size.dim, size.turns);
    let values = common::values(size.rows, size.dim);
    let ids = common::uniform(size.rows, size.ids);
    let tables: Vec<(Scheme, EncodedTable)> = common::schemes()
        .into_iter()
        .map(|scheme| {
            let table = EncodedTable::encode("bench", &values, size.dim, &scheme).expect("values are finite").0;
            (scheme, table)
        })
        .collect();
    drop(values);
    for (name, engine) in &engines {
        let mut times = Times::default();
        match engine.device() {
            Some(_) => on_device(engine, &size, &ids, &tables, &mut times),
            None => on_host(engine, &size, &ids, &tables, &mut times),
        }
        times.print(name);
    }
}

/// Milliseconds by name.
#[derive(Default)]
struct Times {
    first: BTreeMap<String, f64>,
    steady: BTreeMap<String, Vec<f64>>,
}

impl Times {
    fn add(&mut self, name: &str, milliseconds: f64) {
        if self.first.contains_key(name) {
            self.steady.entry(name.to_owned()).or_default().push(milliseconds);
        } else {
            self.first.insert(name.to_owned(), milliseconds);
        }
    }

    fn print(&self, backend: &str) {
        let median = |times: &[f64]| {
            let mut times = times.to_vec();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        let copies = self.steady.iter().filter(|(name, _)| name.starts_with("copy"));
        let roofline = copies.map(|(_, times)| median(times)).fold(f64::INFINITY, f64::min);
        println!("\n{backend:24} {:>9} {:>9} {:>8}", "first ms", "ms", "of copy");
        for (name, times) in &self.steady {
            println!("  {name:22} {:9.2} {:9.2} {:8.2}", self.first[name], median(times), roofline / median(times));
        }
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

fn on_host(engine: &Engine, size: &Size, ids: &[u32], encoded: &[(Scheme, EncodedTable)], times: &mut Times) {
    let values = size.ids * size.dim;
    let (source, mut out) = (vec![1f32; values], vec![0f32; values]);
    let tables: Vec<(String, Table)> = encoded
        .iter()
        .map(|(scheme, table)| {
            let placed = engine.load_blocking(table).expect("host memory is enough");
            placed.gather_into_blocking(ids, IdPolicy::Error, &mut out).expect("the ids are good");
            common::assert_rows(table, ids, size.dim, &out);
            (scheme.to_string(), placed)
        })
        .collect();
    let piece = values.div_ceil(rayon::current_num_threads() * 4);
    for _ in 0..=size.turns {
        let copy =
            || out.par_chunks_mut(piece).zip(source.par_chunks(piece)).for_each(|(to, from)| to.copy_from_slice(from));
        times.add("copy, all threads", timed(copy));
        for (name, table) in &tables {
            let gather = || {
                table.gather_into_blocking(ids, IdPolicy::Error, &mut out).expect("the ids are good");
            };
            times.add(name, timed(gather));
        }
    }
    let mut row = vec![0f32; size.dim];
    for (name, table) in &tables {
        let calls = 10_000;
        let all = timed(|| {
            for id in ids.iter().cycle().take(calls) {
                table
                    .gather_into_blocking(std::slice::from_ref(id), IdPolicy::Error, &mut row)
                    .expect("the id is good");
            }
        });
        println!("host, one random id a call, {name}: {:.2} microseconds", all * 1e3 / calls as f64);
    }
}

fn on_device(engine: &Engine, size: &Size, ids: &[u32], encoded: &[(Scheme, EncodedTable)], times: &mut Times) {
    let (Some(device), Some(queue)) = (engine.device(), engine.queue()) else { return };
    let buffer = |bytes: usize, usage| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes as u64,
            usage,
            mapped_at_creation: false,
        })
    };
    let storage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
    let id_buffer = buffer(size.ids * 4, storage);
    queue.write_buffer(&id_buffer, 0, bytemuck::cast_slice(ids));
    let bytes = size.ids * size.dim * 4;
    let out = buffer(bytes, storage);
    let run = |record: &mut dyn FnMut(&mut wgpu::CommandEncoder)| {
        timed(|| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            record(&mut encoder);
            let submission = queue.submit([encoder.finish()]);
            let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
            device.poll(wait).expect("the device works");
        })
    };
    let copies: Vec<_> = [1, 4, 8, 16, 32]
        .into_iter()
        .filter_map(|span| Some((format!("copy, {span} x 16 B"), testing::roofline(engine, bytes as u64, span)?)))
        .collect();
    let mut tables: Vec<(String, Table)> = Vec::new();
    for (scheme, table) in encoded {
        match engine.load_blocking(table) {
            Ok(placed) => {
                let rows = placed.gather_blocking(ids, IdPolicy::Error).expect("the ids are good");
                common::assert_rows(table, ids, size.dim, &rows.values);
                let shards = placed.shards();
                let name = if shards == 1 { scheme.to_string() } else { format!("{scheme} ({shards} shards)") };
                tables.push((name, placed));
            }
            Err(error) => println!("{scheme}: left out: {error}"),
        }
    }
    for _ in 0..=size.turns {
        for (name, copy) in &copies {
            times.add(name, run(&mut |encoder| copy.encode(encoder)));
        }
        for (name, table) in &tables {
            let ids = IdBuffer { buffer: &id_buffer, offset: 0, count: size.ids as u32, id_type: IdType::U32 };
            let output = OutputBuffer { buffer: &out, offset: 0, dtype: OutputDtype::F32 };
            let mut status: Option<GatherStatus> = None;
            let gather = run(&mut |encoder| {
                status = Some(table.encode_gather(encoder, ids, IdPolicy::Error, output).expect("the buffers fit"));
            });
            times.add(name, gather);
        }
    }
}
