//! The host backend: gather, bags and encoding for each scheme, beside a parallel copy of the same size.
//!
//! `cargo bench --bench host` takes a few minutes; `cargo bench --bench host -- 'gather/int8/128/65536'` runs a part of it.
//! Names are `gather/SCHEME/COLUMNS/IDS/DISTRIBUTION`, `bag/SCHEME/COLUMNS/IDS/OPERATION` (bags of 32; the throughput is in
//! ids) and `encode/SCHEME/THREADS`. Ids move on from call to call, outputs
//! are warm.

#![expect(clippy::cast_possible_truncation, reason = "numbers made here, of known size")]

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput, measurement::WallTime};
use gatherum::{
    BagMode, Bags, EncodedTable, Encoder, Engine, IdPolicy, PartSink, Scheme, SliceSource, SourceError, Table,
};
use rayon::prelude::*;

/// Columns and rows. The first is the headline; the others are kept small for the sake of time.
const TABLES: [(usize, usize); 3] = [(128, 1_000_000), (100, 100_000), (768, 100_000)];
/// Ids of a batch.
const BATCHES: [usize; 3] = [1, 1_024, 65_536];
/// Ids drawn before the first call; a power of two, many times the largest batch.
const IDS: usize = 1 << 20;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .configure_from_args();
    for (dim, rows) in TABLES {
        let values = values(rows * dim);
        for scheme in Scheme::all().iter().flat_map(|info| info.variants) {
            gather(&mut criterion, scheme, &values, dim);
        }
        if dim == TABLES[0].0 {
            for scheme in Scheme::all().iter().flat_map(|info| info.variants) {
                bag(&mut criterion, scheme, &values, dim);
            }
        }
    }
    let values = values(100_000 * 128);
    for scheme in Scheme::all().iter().flat_map(|info| info.variants) {
        encode(&mut criterion, scheme, &values, 128);
    }
    criterion.final_summary();
}

fn gather(criterion: &mut Criterion, text: &str, values: &[f32], dim: usize) {
    let scheme: Scheme = text.parse().expect("a variant of the registry");
    let (encoded, _) = EncodedTable::encode("bench", values, dim, &scheme).expect("finite values");
    let table = Engine::host().load_blocking(&encoded).expect("host memory");
    let rows = values.len() / dim;
    let mut random = Random(7);
    let uniform: Vec<u32> = (0..IDS).map(|_| random.below(rows)).collect();
    let zipf: Vec<u32> = (0..IDS).map(|_| random.zipf(rows)).collect();
    let mut out = vec![f32::NAN; BATCHES[2] * dim];
    assert_answers(&table, &encoded, &uniform[..1_024], &mut out[..1_024 * dim]);
    assert_answers(&table, &encoded, &zipf[..1_024], &mut out[..1_024 * dim]);

    let mut group = criterion.benchmark_group(format!("gather/{text}"));
    group.sampling_mode(SamplingMode::Flat);
    for batch in BATCHES {
        group.throughput(Throughput::Bytes((batch * dim * 4) as u64));
        let out = &mut out[..batch * dim];
        copy(&mut group, BenchmarkId::new(format!("{dim}/{batch}"), "memcpy"), values, out);
        for (name, ids) in [("uniform", &uniform), ("zipf", &zipf)] {
            let mut at = 0;
            group.bench_function(BenchmarkId::new(format!("{dim}/{batch}"), name), |bencher| {
                bencher.iter(|| {
                    at = (at + batch) % IDS;
                    table.gather_into_blocking(&ids[at..at + batch], IdPolicy::Error, out)
                });
            });
        }
    }
}

/// Bags of 32, sums but for the last kind: as many ids as fill 2,048 bags, and twice as many as there are rows.
fn bag(criterion: &mut Criterion, text: &str, values: &[f32], dim: usize) {
    const BAG: usize = 32;
    let scheme: Scheme = text.parse().expect("a variant of the registry");
    let (encoded, _) = EncodedTable::encode("bench", values, dim, &scheme).expect("finite values");
    let table = Engine::host().load_blocking(&encoded).expect("host memory");
    let rows = values.len() / dim;
    let mut random = Random(7);
    let uniform: Vec<u32> = (0..2 * IDS).map(|_| random.below(rows)).collect();
    let zipf: Vec<u32> = (0..2 * IDS).map(|_| random.zipf(rows)).collect();
    let weights: Vec<f32> = (0..2 * IDS).map(|_| random.unit() as f32).collect();
    let lengths = vec![BAG as u32; 2 * IDS / BAG];
    let mut out = vec![f32::NAN; lengths.len() * dim];
    assert_sums(&table, &encoded, &uniform[..BAG]);
    let mut group = criterion.benchmark_group(format!("bag/{text}"));
    group.sampling_mode(SamplingMode::Flat);
    for batch in [65_536, 2 * IDS] {
        group.throughput(Throughput::Elements(batch as u64));
        let lengths = &lengths[..batch / BAG];
        let out = &mut out[..batch / BAG * dim];
        for (name, ids, mode, weighted) in [
            ("sum", &uniform, BagMode::Sum, false),
            ("zipf", &zipf, BagMode::Sum, false),
            ("weighted", &uniform, BagMode::Sum, true),
            ("max", &uniform, BagMode::Max, false),
        ] {
            let mut at = 0;
            group.bench_function(BenchmarkId::new(format!("{dim}/{batch}"), name), |bencher| {
                bencher.iter(|| {
                    at = (at + batch) % (2 * IDS);
                    let bags = Bags::lengths(lengths, mode);
                    let bags = if weighted { bags.weights(&weights[at..at + batch]) } else { bags };
                    table.bag_into_blocking(&ids[at..at + batch], &bags, IdPolicy::Error, out)
                });
            });
        }
    }
}

/// Compares one bag with the definition of the format: of values under 1, 32 additions are off by 32^2 half units at most.
fn assert_sums(table: &Table, encoded: &EncodedTable, ids: &[u32]) {
    let bags = Bags::lengths(&[32_u32], BagMode::Sum);
    let sums = table.bag_blocking(ids, &bags, IdPolicy::Error).expect("good ids").values;
    for (column, sum) in (0..).zip(sums) {
        let exact: f64 = ids.iter().map(|id| encoded.reference(*id, column)).sum();
        assert!((f64::from(sum) - exact).abs() <= 2f64.powi(-13), "column {column}: {sum} for {exact}");
    }
}

/// The roofline: a copy of as many bytes as the output has, on as many threads, and on one where the batch is small.
fn copy(group: &mut BenchmarkGroup<'_, WallTime>, id: BenchmarkId, values: &[f32], out: &mut [f32]) {
    let values = &values[..out.len()];
    let part = 1 << 17;
    group.bench_function(id, |bencher| {
        bencher.iter(|| {
            if out.len() <= part {
                out.copy_from_slice(values);
            } else {
                out.par_chunks_mut(part).zip(values.par_chunks(part)).for_each(|(out, values)| {
                    out.copy_from_slice(values);
                });
            }
            black_box(&mut *out);
        });
    });
}

fn encode(criterion: &mut Criterion, text: &str, values: &[f32], dim: usize) {
    struct Discard;
    impl PartSink for Discard {
        fn write_part(&mut self, _part: usize, _offset: u64, bytes: &[u8]) -> Result<(), SourceError> {
            black_box(bytes);
            Ok(())
        }
    }
    let scheme: Scheme = text.parse().expect("a variant of the registry");
    let mut group = criterion.benchmark_group(format!("encode/{text}"));
    group.throughput(Throughput::Bytes(size_of_val(values) as u64)).sampling_mode(SamplingMode::Flat);
    for threads in [1, rayon::current_num_threads()] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let run = || {
            let mut source = SliceSource::new(values, dim).expect("whole rows");
            Encoder::new(&scheme).run(&mut source, &mut Discard).expect("finite values")
        };
        let report = pool.install(run);
        assert!(report.relative_error < 0.01 && report.max_error < 0.01, "{report}");
        group.bench_function(BenchmarkId::from_parameter(threads), |bencher| {
            pool.install(|| bencher.iter(run));
        });
    }
}

/// Compares a batch with the definition of the format, within what two roundings of a value under 2 make.
fn assert_answers(table: &Table, encoded: &EncodedTable, ids: &[u32], out: &mut [f32]) {
    let dim = out.len() / ids.len();
    out.fill(f32::NAN);
    table.gather_into_blocking(ids, IdPolicy::Error, out).expect("good ids");
    for (id, row) in ids.iter().zip(out.chunks_exact(dim)) {
        for (column, value) in (0..).zip(row) {
            let exact = encoded.reference(*id, column);
            assert!((f64::from(*value) - exact).abs() <= 2f64.powi(-23), "[{id}, {column}]: {value} for {exact}");
        }
    }
}

/// Values in -1..1.
fn values(count: usize) -> Vec<f32> {
    let mut random = Random(1);
    (0..count).map(|_| random.unit() as f32 * 2.0 - 1.0).collect()
}

/// SplitMix64: the same numbers in each run.
struct Random(u64);

impl Random {
    /// A number in 0..1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mixed = mixed ^ mixed >> 31;
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A row, each as likely.
    #[expect(clippy::cast_sign_loss, reason = "a share of a 32-bit number of rows")]
    fn below(&mut self, rows: usize) -> u32 {
        (self.unit() * rows as f64) as u32
    }

    /// A row by Zipf's law of exponent 1, as in text: ranks are log-uniform, and spread over the table.
    #[expect(clippy::cast_sign_loss, reason = "a rank under a 32-bit number of rows")]
    fn zipf(&mut self, rows: usize) -> u32 {
        let rank = ((rows as f64).powf(self.unit()) - 1.0) as u64;
        (rank * 2_654_435_761 % rows as u64) as u32
    }
}
