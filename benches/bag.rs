//! Bags of 32 on the host, one call at a time: what `benches/pytorch_bag.py` runs beside PyTorch, in turns.
//!
//! `cargo bench --bench bag [-- SCHEME..]` prints medians and the best for sums of 65,536 and 2,097,152 random ids of
//! 1,000,000 x 128; `ROWS`, `DIM` and `TURNS` change the sizes. With `--serve` it makes the tables and says `ready`, and then
//! makes one call for each line `SCHEME IDS` of its input and answers with milliseconds. Ids move on from call to call, and
//! outputs are warm.

#![allow(
    missing_docs,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    unreachable_pub,
    dead_code,
    reason = "a bench: sizes are known, and it shares code with others"
)]

mod common;

use std::{io::BufRead, time::Instant};

use gatherum::{BagMode, Bags, EncodedTable, Engine, IdPolicy, Scheme, Table};

const BAG: usize = 32;
/// Ids of a call; those of all calls are drawn before the first.
const BATCHES: [usize; 2] = [1 << 16, 1 << 21];

fn main() {
    let number =
        |name: &str, default: usize| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (rows, dim, turns) = (number("ROWS", 1_000_000) as u32, number("DIM", 128), number("TURNS", 31));
    let (flags, schemes): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let schemes: Vec<&str> = match &schemes[..] {
        [] => vec!["f32", "f16", "int8", "int4"],
        schemes => schemes.iter().map(String::as_str).collect(),
    };
    let values = common::values(rows, dim);
    let tables: Vec<(&str, Table)> = schemes.iter().map(|text| (*text, table(text, &values, dim))).collect();
    drop(values);
    let mut calls = Calls::new(rows, dim);
    if flags.iter().any(|flag| flag == "--serve") {
        println!("ready");
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let (scheme, batch) = line.split_once(' ').expect("a scheme and a number of ids");
            let (_, table) = tables.iter().find(|(text, _)| *text == scheme).expect("a scheme that was asked for");
            println!("{:.5}", calls.time(table, batch.parse().expect("a number of ids")));
        }
        return;
    }
    println!("{rows} x {dim}, bags of {BAG}, {turns} turns, {} threads", rayon::current_num_threads());
    for batch in BATCHES {
        let mut times = vec![Vec::new(); tables.len()];
        for _ in 0..=turns {
            for ((_, table), times) in tables.iter().zip(&mut times) {
                times.push(calls.time(table, batch));
            }
        }
        for ((scheme, _), times) in tables.iter().zip(&mut times) {
            let times = &mut times[1..];
            times.sort_by(f64::total_cmp);
            let speed = |milliseconds: f64| batch as f64 / milliseconds / 1e3;
            let (median, best) = (times[times.len() / 2], times[0]);
            println!(
                "{scheme:24} {batch:8} ids {median:8.3} ms {:6.1} M rows/s, best {best:8.3} ms {:6.1} M rows/s",
                speed(median),
                speed(best)
            );
        }
    }
}

fn table(text: &str, values: &[f32], dim: usize) -> Table {
    let scheme: Scheme = text.parse().expect("a scheme");
    let (encoded, _) = EncodedTable::encode("bench", values, dim, &scheme).expect("finite values");
    Engine::host().load_blocking(&encoded).expect("host memory")
}

struct Calls {
    ids: Vec<u32>,
    lengths: Vec<u32>,
    out: Vec<f32>,
    dim: usize,
    at: usize,
}

impl Calls {
    fn new(rows: u32, dim: usize) -> Self {
        let bags = BATCHES[1] / BAG;
        let (ids, lengths) = (common::uniform(rows, BATCHES[1]), vec![BAG as u32; bags]);
        Self { ids, lengths, out: vec![f32::NAN; bags * dim], dim, at: 0 }
    }

    /// Milliseconds of a sum of the next `batch` ids.
    fn time(&mut self, table: &Table, batch: usize) -> f64 {
        let Self { ids, lengths, out, dim, at } = self;
        if *at + batch > ids.len() {
            *at = 0;
        }
        let ids = &ids[*at..*at + batch];
        *at += batch;
        let (lengths, out) = (&lengths[..batch / BAG], &mut out[..batch / BAG * *dim]);
        let bags = Bags::lengths(lengths, BagMode::Sum);
        let start = Instant::now();
        table.bag_into_blocking(ids, &bags, IdPolicy::Error, out).expect("good ids");
        start.elapsed().as_secs_f64() * 1e3
    }
}
