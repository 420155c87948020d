//! Tables in tiers: how fast lookups are, beside the table that is loaded whole, and what each tier did.
//!
//! `cargo bench --bench tiers` makes a table file of 1,000,000 x 64 by f32 (`ROWS` and `DIM` change that, `SCHEME` the scheme, and
//! `TABLE` names one that is there), and looks up calls of `BATCH` (16,384) ids, by Zipf's law of exponent `ZIPF` (1.05), rows
//! spread over the table: in the table that is loaded whole, and in tiers on the device and in host memory of which the first takes
//! an eighth of the table, a quarter, a third and a half (or `DEVICE` bytes), the second as much again (or `HOST` bytes). Rows stay
//! on the device, and each call is waited for; turns of the two alternate. Answers are compared at the end. `BACKEND` chooses the
//! engine, `WARM` and `CALLS` how many calls go before and are counted (60 each); `TRACE` names a text file of row numbers that are looked up instead, and with `WHOLE=0` no table is loaded whole.
//!
//! Beside them are hit rates of exact policies for as many pages as the device takes: least recently and least often used, over
//! the same ids.

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

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use common::stored;
use gatherum::{BackendChoice, Bytes, Engine, IdPolicy, OutputDtype, Table, TableSource, TierStats, Tiered, wgpu};

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = stored::table(folder.path(), 1_000_000, 64);
    let choice = BackendChoice::parse(&stored::text("BACKEND", "auto"));
    let engine = Engine::builder().backend(choice).build_blocking().expect("an engine");
    let spec = stored::open(&path).spec().clone();
    let (rows, bytes) = (spec.shape().rows(), spec.bytes().0);
    let batch = stored::number("BATCH", 16_384) as usize;
    let warm = stored::number("WARM", 60) as usize;
    let exponent: f64 = stored::text("ZIPF", "1.05").parse().expect("an exponent");
    let ids = match std::env::var("TRACE") {
        Ok(path) => {
            let text = std::fs::read_to_string(path).expect("a trace");
            text.split_whitespace().map(|id| id.parse::<u32>().expect("a row number") % rows).collect()
        }
        Err(_) => common::zipf_by(exponent, rows, batch * (warm + stored::number("CALLS", 60) as usize)),
    };
    println!("{}", engine.backend());
    println!("{} of {}, {}; {} ids, {batch} a call", spec.scheme(), spec.shape(), Bytes(bytes), ids.len());
    let whole = (stored::number("WHOLE", 1) > 0).then(|| {
        let whole = engine.load_blocking(&stored::open(&path)).expect("the table fits");
        run(&engine, &whole, &ids[..ids.len().min(batch * 4)], batch);
        whole
    });
    let budgets: Vec<(u64, u64)> = match std::env::var("DEVICE") {
        Ok(_) => vec![(stored::number("DEVICE", 0), stored::number("HOST", 0))],
        Err(_) => [8, 4, 3, 2].map(|part| (bytes / part, bytes / part)).to_vec(),
    };
    for (device, host) in budgets {
        let options = Tiered { device: Bytes(device), host: Bytes(host), ..Tiered::default() };
        let start = Instant::now();
        let table = engine.load_tiered_blocking(stored::open(&path), &options).expect("tiers");
        table.gather_blocking(&ids[..1], IdPolicy::Error).expect("a row");
        let read = table.residency().read;
        println!("\n{} on the device, {} in host memory", options.device, options.host);
        println!("  first row {:.2} ms, {read} of rows read", start.elapsed().as_secs_f64() * 1e3);
        let warm = (warm * batch).min(ids.len() / 2 / batch * batch);
        run(&engine, &table, &ids[..warm], batch);
        let before = table.tiers().expect("tiers");
        // Turns of the two alternate, so that what else the machine does is done to both.
        let (mut in_tiers, mut resident) = (Duration::ZERO, Duration::ZERO);
        for calls in ids[warm..].chunks(batch * 6) {
            in_tiers += run(&engine, &table, calls, batch);
            if let Some(whole) = &whole {
                resident += run(&engine, whole, calls, batch);
            }
        }
        let after = table.tiers().expect("tiers");
        let rate = |time: Duration| (ids.len() - warm) as f64 / time.as_secs_f64();
        println!("  {:.0} rows/s", rate(in_tiers));
        if whole.is_some() {
            let ratio = resident.as_secs_f64() / in_tiers.as_secs_f64();
            println!("  {ratio:.3} of the {:.0} rows/s of the table that is loaded whole", rate(resident));
        }
        let share = |now: TierStats, then: TierStats| {
            let (hits, all) = (now.hits - then.hits, now.hits + now.misses - then.hits - then.misses);
            format!(
                "{:.1} % of {all} pages, {} came up",
                100.0 * hits as f64 / all.max(1) as f64,
                now.moved.0 - then.moved.0
            )
        };
        if let (Some(now), Some(then)) = (after.device, before.device) {
            println!("  device: {}", share(now, then));
            let pages = now.capacity.0 / (spec.row_bytes().max(1));
            let (recent, often) = exact(&ids, batch, warm, pages as usize);
            println!(
                "  exact policies: least recently used {:.1} %, least often used {:.1} %",
                recent * 100.0,
                often * 100.0
            );
        }
        println!("  host:   {}", share(after.host, before.host));
        println!(
            "  source: {} requests for {}, {:.2} of {:.2} s",
            after.requests - before.requests,
            Bytes(after.read.0 - before.read.0),
            (after.waited - before.waited).as_secs_f64(),
            in_tiers.as_secs_f64(),
        );
        if let Some(whole) = &whole {
            let last = &ids[ids.len() - batch.min(ids.len())..];
            let [one, other] = [whole, &table].map(|table| table.gather_blocking(last, IdPolicy::Error).expect("rows"));
            assert!(one.values.iter().zip(&other.values).all(|(one, other)| one.to_bits() == other.to_bits()));
        }
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM"));
        println!("\npeak of this process: {}", peak.unwrap_or_default());
    }
}

/// Looks ids up, call by call, each waited for; the rows stay on the device where there is one.
fn run(engine: &Engine, table: &Table, ids: &[u32], batch: usize) -> Duration {
    let mut out = vec![0.0; if engine.device().is_some() { 0 } else { batch * table.spec().shape().dim() as usize }];
    let start = Instant::now();
    for ids in ids.chunks(batch) {
        match engine.device() {
            Some(device) => {
                let rows = table.gather_buffer_blocking(ids, IdPolicy::Error, OutputDtype::F32).expect("rows");
                device.poll(wgpu::PollType::wait_indefinitely()).expect("the device works");
                drop(rows);
            }
            None => {
                let out = &mut out[..ids.len() * table.spec().shape().dim() as usize];
                table.gather_into_blocking(ids, IdPolicy::Error, out).expect("rows");
            }
        }
    }
    start.elapsed()
}

/// Shares of pages found by exact policies: the least recently used goes, or the least often used. Pages count once a call.
fn exact(ids: &[u32], batch: usize, warm: usize, pages: usize) -> (f64, f64) {
    let share = |often: bool| {
        let (mut kept, mut order) = (HashMap::<u32, (u64, u64)>::new(), BTreeSet::<(u64, u64, u32)>::new());
        let (mut clock, mut hits, mut all) = (0, 0_u64, 0_u64);
        for (call, ids) in ids.chunks(batch).enumerate() {
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids.dedup();
            for id in ids {
                clock += 1;
                let counted = u64::from(call * batch >= warm);
                all += counted;
                let mut uses = 1;
                if let Some((used, at)) = kept.remove(&id) {
                    hits += counted;
                    order.remove(&(used, at, id));
                    uses = if often { used + 1 } else { 1 };
                } else if kept.len() == pages
                    && let Some((_, _, gone)) = order.pop_first()
                {
                    kept.remove(&gone);
                }
                kept.insert(id, (uses, clock));
                order.insert((uses, clock, id));
            }
        }
        hits as f64 / all.max(1) as f64
    };
    (share(false), share(true))
}
