//! Tables on demand: what opening one and its first lookup read, and how fast lookups are within budgets.
//!
//! `cargo bench --bench on_demand` makes a table file of 1,000,000 x 64 by f32 (`ROWS` and `DIM` change that, `SCHEME` the scheme,
//! and `TABLE` names one that is there), opens it, looks one row up, and then calls of 1,024 ids, by
//! Zipf's law of exponent 1, in shards of 64 KiB, 256 KiB and 1 MiB, with budgets of an eighth of the table, a half, and all of
//! it, beside the table that is loaded whole. Every answer of a call is compared with that table's. `BACKEND` chooses the engine.

#![allow(
    missing_docs,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    unreachable_pub,
    dead_code,
    reason = "a bench: sizes are known, and it shares code with others"
)]

mod common;

use std::time::Instant;

use common::stored;
use gatherum::{BackendChoice, Bytes, Engine, IdPolicy, OnDemand, Table, TableSource};

const BATCH: usize = 1024;
const CALLS: usize = 200;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = stored::table(folder.path(), 1_000_000, 64);
    let engine = Engine::builder()
        .backend(BackendChoice::parse(&stored::text("BACKEND", "host")))
        .build_blocking()
        .expect("an engine");
    println!("{}", engine.backend());

    let start = Instant::now();
    let stored = stored::open(&path);
    let all = stored.file_bytes().0 as f64;
    let share = |bytes: Bytes| 100.0 * bytes.0 as f64 / all;
    let (opened, header) = (start.elapsed(), stored.read_so_far());
    let (spec, size) = (stored.spec().clone(), stored.file_bytes());
    println!("{} of {}, {size:#}", spec.scheme(), spec.shape());
    println!("opened    {:8.2} ms, {header:#} read, {:.4} %", opened.as_secs_f64() * 1e3, share(header));
    let rows = spec.shape().rows();
    let table = engine.load_on_demand(stored, &OnDemand::default()).expect("a table");
    let start = Instant::now();
    table.gather_blocking(&[rows / 3 * 2], IdPolicy::Error).expect("a row");
    let read = table.residency().read;
    println!("first row {:8.2} ms, {read:#} read in all, {:.4} %", start.elapsed().as_secs_f64() * 1e3, share(read));
    drop(table);

    let ids = common::zipf(rows, BATCH * CALLS);
    // Rows of like traffic are not neighbours: the numbers are spread over the table.
    let ids: Vec<u32> = ids.into_iter().map(|id| (u64::from(id) * 2_654_435_761 % u64::from(rows)) as u32).collect();
    let whole = engine.load_blocking(&stored::open(&path)).expect("the table fits");
    let resident = run(&whole, &ids, None);
    println!("loaded whole                        {:>12.0} rows/s", resident);
    for shard in [64 << 10, 256 << 10, 1 << 20] {
        for part in [8, 2, 1] {
            let budget = Some(Bytes(spec.bytes().0 / part * 5 / 4));
            let options = OnDemand { shard: Bytes(shard), budget, ..OnDemand::default() };
            let table = engine.load_on_demand(stored::open(&path), &options).expect("a table");
            if part == 1 {
                table.warm_blocking().expect("all of it");
            }
            let rate = run(&table, &ids, Some(&whole));
            let now = table.residency();
            let hits = 100.0 * now.hits as f64 / (now.hits + now.misses + now.joined).max(1) as f64;
            println!(
                "shards of {:>4} KiB, 1/{part} of the table {rate:>12.0} rows/s, {:6.3} of that; {hits:5.1} % of shards \
                 were there, {} read",
                shard >> 10,
                rate / resident,
                now.read,
            );
        }
    }
}

/// Rows a second, after a first quarter of the calls that is not counted.
fn run(table: &Table, ids: &[u32], whole: Option<&Table>) -> f64 {
    let mut out = vec![0.0; BATCH * table.spec().shape().dim() as usize];
    let mut start = Instant::now();
    for (call, ids) in ids.chunks(BATCH).enumerate() {
        if call == CALLS / 4 {
            start = Instant::now();
        }
        table.gather_into_blocking(ids, IdPolicy::Error, &mut out).expect("rows");
    }
    let seconds = start.elapsed().as_secs_f64();
    if let Some(whole) = whole {
        let want = whole.gather_blocking(&ids[ids.len() - BATCH..], IdPolicy::Error).expect("rows");
        assert!(want.values.iter().zip(&out).all(|(want, got)| want.to_bits() == got.to_bits()), "another answer");
    }
    (CALLS / 4 * 3 * BATCH) as f64 / seconds
}
