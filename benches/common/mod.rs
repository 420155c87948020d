//! What the benches share: data from a fixed seed, the adapters there are, and how a run is named.

#[cfg(feature = "files")]
pub mod stored;

use std::time::Duration;

use criterion::Criterion;
use gatherum::{AdapterReport, BackendChoice, EncodedTable, Engine, Scheme, TableSource};

/// Criterion for that many milliseconds of warming up and of measuring, and the engines there are, which it announces.
pub fn criterion(warm: u64, measure: u64) -> (Criterion, Vec<(String, Engine)>) {
    let criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(warm))
        .measurement_time(Duration::from_millis(measure))
        .without_plots()
        .configure_from_args();
    let engines = engines();
    announce(&engines);
    (criterion, engines)
}

/// A small generator, so that every run has the same data. Knuth's MMIX constants.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 31 random bits.
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        f64::from(self.next()) / f64::from(1u32 << 31)
    }
}

/// Ids drawn evenly from `rows`.
pub fn uniform(rows: u32, count: usize) -> Vec<u32> {
    let mut random = Random::new(7);
    (0..count).map(|_| random.next() % rows).collect()
}

/// Ids drawn by Zipf's law of exponent 1 from `rows`: row `r` about as often as `1 / (r + 1)`.
pub fn zipf(rows: u32, count: usize) -> Vec<u32> {
    let mut random = Random::new(8);
    // The inverse of the integral of 1 / x, which is close enough to the sum.
    (0..count).map(|_| (((f64::from(rows) + 1.0).powf(random.unit()) - 1.0) as u32).min(rows - 1)).collect()
}

/// The same by exponent `s`, which is not 1, with the rows spread over the table: those of like traffic are no neighbours.
pub fn zipf_by(s: f64, rows: u32, count: usize) -> Vec<u32> {
    let mut random = Random::new(10);
    let top = (f64::from(rows) + 1.0).powf(1.0 - s) - 1.0;
    let rank = |unit: f64| ((top * unit + 1.0).powf(1.0 / (1.0 - s)) - 1.0) as u64;
    let row = |rank: u64| (rank.min(u64::from(rows) - 1) * 2_654_435_761 % u64::from(rows)) as u32;
    (0..count).map(|_| row(rank(random.unit()))).collect()
}

/// Values between -1 and 1.
pub fn values(rows: u32, dim: usize) -> Vec<f32> {
    let mut random = Random::new(9);
    (0..rows as usize * dim).map(|_| random.next() as f32 / (1u32 << 30) as f32 - 1.0).collect()
}

/// The examples of all schemes, or those that the variable `SCHEMES` lists, with blanks between them.
pub fn schemes() -> Vec<Scheme> {
    let wanted = std::env::var("SCHEMES").ok();
    let texts: Vec<&str> = match &wanted {
        Some(wanted) => wanted.split_whitespace().collect(),
        None => Scheme::all().iter().flat_map(|info| info.examples).copied().collect(),
    };
    texts.into_iter().map(|text| text.parse().expect("a scheme")).collect()
}

/// An engine on the host and one on each adapter that serves, with short names.
pub fn engines() -> Vec<(String, Engine)> {
    let mut engines = vec![("host".to_owned(), Engine::host())];
    for report in Engine::adapters_blocking().iter().filter(|report| report.verdict.is_ok()) {
        let words = format!("{} {}", report.backend.interface, first_words(report));
        match Engine::builder().backend(BackendChoice::Adapter(words)).build_blocking() {
            Ok(engine) => engines.push((short_name(report), engine)),
            Err(error) => println!("{}: left out: {error}", report.backend),
        }
    }
    engines
}

fn first_words(report: &AdapterReport) -> &str {
    report.backend.name.split('(').next().unwrap_or_default().trim()
}

fn short_name(report: &AdapterReport) -> String {
    let name = first_words(report).split_whitespace().next().unwrap_or("adapter").to_lowercase();
    format!("{name}-{}", report.backend.interface)
}

/// The first line of a run: commit, adapters and drivers.
pub fn announce(engines: &[(String, Engine)]) {
    let git = std::process::Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let commit = std::env::var("GATHERUM_COMMIT").ok().or_else(|| {
        git.ok().filter(|git| git.status.success()).map(|git| String::from_utf8_lossy(&git.stdout).trim().to_owned())
    });
    println!("commit {}", commit.as_deref().unwrap_or("unknown"));
    for (name, engine) in engines {
        println!("{name}: {}", engine.backend());
    }
}

/// Asserts a sample of rows against the definition of the format.
pub fn assert_rows(table: &EncodedTable, ids: &[u32], dim: usize, rows: &[f32]) {
    for (position, id) in ids.iter().enumerate().step_by(ids.len().div_ceil(64)) {
        let row: Vec<f64> = (0..dim as u32).map(|column| table.reference(*id, column)).collect();
        let rounding = gatherum::testing::rounding(table.spec(), &row);
        for (column, want) in row.iter().enumerate() {
            let got = f64::from(rows[position * dim + column]);
            assert!(
                (got - want).abs() <= rounding.max(want.abs() * 2f64.powi(-24)),
                "row {id}, column {column}: {got}, not {want}"
            );
        }
    }
}
