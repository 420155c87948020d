//! One table on one backend: its rows' bits, its word similarity, its speed.

use std::time::{Duration, Instant};

use gatherum::{BackendChoice, EncodeReport, EncodedTable, Engine, GatherError, IdPolicy, Scheme, Table};
use xxhash_rust::xxh3::Xxh3;

use super::load;
use crate::{backend::BackendArgs, failure::Outcome, wordsim::Found};

/// Ids of a call.
const BATCH: usize = 4096;
/// Calls before the clock runs: a driver may compile at the first.
const WARM_UP: usize = 3;
/// As long is measured, and at least [`LEAST_CALLS`] calls.
const TIME: Duration = Duration::from_millis(250);
const LEAST_CALLS: usize = 5;
/// Rows whose bits are compared at a time, in f32 values.
const BLOCK_VALUES: usize = 1 << 21;

/// What the demo runs on.
pub(super) struct Backends {
    pub(super) engines: Vec<Engine>,
    /// What was left out, and why: adapters that gave no engine, tables that one does not hold.
    pub(super) skipped: Vec<String>,
}

impl Backends {
    /// The one that is asked for; else the host and every adapter.
    pub(super) fn find(args: &BackendArgs) -> Outcome<Self> {
        if args.choice() != BackendChoice::Auto {
            return Ok(Self { engines: vec![args.engine()?], skipped: Vec::new() });
        }
        let mut found =
            Self { engines: vec![args.builder().backend(BackendChoice::Host).build_blocking()?], skipped: Vec::new() };
        for adapter in Engine::adapters_blocking() {
            // A line that names no other adapter; of two that are alike in all, one is enough.
            let choice = BackendChoice::Adapter(adapter.backend.to_string());
            match args.builder().backend(choice).build_blocking() {
                Ok(engine) if found.engines.iter().any(|other| other.backend() == engine.backend()) => {}
                Ok(engine) => found.engines.push(engine),
                Err(error) => found.skipped.push(error.to_string()),
            }
        }
        Ok(found)
    }
}

/// A scheme's figures.
pub(super) struct Measured {
    /// As it was asked for; what of it follows from the table is in the report's.
    pub(super) scheme: Scheme,
    pub(super) report: EncodeReport,
    /// In the order of the backends; `None` where one could not do it.
    pub(super) on: Vec<Option<OnBackend>>,
}

pub(super) struct OnBackend {
    /// XXH3 of all rows as f32.
    pub(super) hash: u64,
    /// None where the table lacks the words.
    pub(super) wordsim: Option<f64>,
    pub(super) lookups_per_second: f64,
}

impl Measured {
    pub(super) fn new(scheme: &Scheme, report: EncodeReport) -> Self {
        Self { scheme: scheme.clone(), report, on: Vec::new() }
    }

    pub(super) fn wordsim(&self) -> Option<f64> {
        self.on.iter().flatten().next()?.wordsim
    }

    /// Whether all rows are the same on all backends, bit by bit; `None` where there is one backend only.
    pub(super) fn same_bits(&self) -> Option<bool> {
        let mut hashes = self.on.iter().flatten().map(|on| on.hash);
        let first = hashes.next()?;
        let mut same = hashes.map(|hash| hash == first).peekable();
        same.peek().is_some().then(|| same.all(|same| same))
    }
}

impl OnBackend {
    pub(super) fn measure(engine: &Engine, table: &EncodedTable, found: Option<&Found>) -> Outcome<Self> {
        let table = load(engine, table)?;
        let wordsim = found.map(|found| found.evaluate(&table)).transpose()?.flatten();
        Ok(Self { hash: hash(&table)?, wordsim, lookups_per_second: speed(&table)? })
    }
}

/// Of all rows, in their order.
fn hash(table: &Table) -> Result<u64, GatherError> {
    let (rows, dim) = (table.spec().shape().rows(), table.spec().shape().dim() as usize);
    let block = (BLOCK_VALUES / dim).max(1);
    let (mut hash, mut values) = (Xxh3::new(), Vec::new());
    for first in (0..rows).step_by(block) {
        let ids: Vec<u32> = (first..rows).take(block).collect();
        values.resize(ids.len() * dim, 0f32);
        table.gather_into_blocking(&ids, IdPolicy::Error, &mut values)?;
        hash.update(bytemuck::cast_slice(&values));
    }
    Ok(hash.digest())
}

/// Lookups a second: of random ids, from host memory to host memory.
#[expect(clippy::cast_precision_loss, reason = "a batch is small")]
fn speed(table: &Table) -> Result<f64, GatherError> {
    let (rows, dim) = (table.spec().shape().rows(), table.spec().shape().dim() as usize);
    let mut random = Random(1);
    let batches: Vec<Vec<u32>> = (0..8).map(|_| (0..BATCH).map(|_| random.below(rows)).collect()).collect();
    let mut out = vec![0f32; BATCH * dim];
    let mut times = Vec::new();
    let mut start = Instant::now();
    for (call, ids) in batches.iter().cycle().enumerate() {
        if call == WARM_UP {
            start = Instant::now();
        }
        let began = Instant::now();
        table.gather_into_blocking(ids, IdPolicy::Error, &mut out)?;
        if call >= WARM_UP {
            times.push(began.elapsed());
            if times.len() >= LEAST_CALLS && start.elapsed() > TIME {
                break;
            }
        }
    }
    times.sort_unstable();
    Ok(BATCH as f64 / times[times.len() / 2].as_secs_f64().max(1e-9))
}

/// Numbers that are the same in every run: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, rows: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (((bits >> 32) * u64::from(rows)) >> 32) as u32
    }
}
