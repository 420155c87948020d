//! A call for bags, what a plain loop makes of it, and what f64 says of that.

use std::ops::Range;

use gatherum::{BagMode, Bags, Engine, GatherError, IdPolicy, Table};

use crate::{
    backend::Backend,
    fixture::{Fixture, narrow},
    lookup::{Batch, read_back},
    names::{Names, Read},
};

/// A call, with bags by where they begin and where the last one ends.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) ids: Batch,
    pub(crate) starts: Vec<u64>,
    pub(crate) mode: BagMode,
    pub(crate) weights: Option<Vec<f32>>,
    pub(crate) padding: Option<i128>,
    pub(crate) normalised: bool,
    pub(crate) policy: IdPolicy,
}

impl Call {
    /// A sum of bags of these lengths.
    pub(crate) fn sum(ids: Batch, lengths: &[usize]) -> Self {
        let mut starts = vec![0];
        for length in lengths {
            starts.push(starts[starts.len() - 1] + *length as u64);
        }
        let policy = IdPolicy::Error;
        Self { ids, starts, mode: BagMode::Sum, weights: None, padding: None, normalised: false, policy }
    }

    pub(crate) fn bags(&self) -> Bags<'_> {
        let bags = Bags::offsets_with_last(&self.starts, self.mode);
        let bags = match &self.weights {
            Some(weights) => bags.weights(weights),
            None => bags,
        };
        let bags = match self.padding {
            Some(id) => bags.padding_id(id),
            None => bags,
        };
        if self.normalised { bags.l2_normalised() } else { bags }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Positions of a bag that are no padding.
    fn kept(&self, bag: usize) -> Vec<usize> {
        let at = |start: u64| usize::try_from(start).expect("a position");
        let all = at(self.starts[bag])..at(self.starts[bag + 1]);
        all.filter(|at| self.ids.ids().get(*at) != self.padding).collect()
    }

    /// Runs it, to an output that was full of NaN.
    pub(crate) fn run(&self, table: &Table) -> Result<Vec<f32>, GatherError> {
        let mut out = vec![f32::NAN; self.len() * table.spec().shape().dim() as usize];
        let result = table.bag_into_blocking(self.ids.ids(), &self.bags(), self.policy, &mut out);
        if result.is_err() {
            assert!(out.iter().all(|value| value.is_nan()), "an error has no output");
        }
        let bad = result?;
        let rows = self.ids.rows(Names::of(table.spec()), self.policy);
        let wrong = |at: &usize| rows[*at].is_none() && self.ids.ids().get(*at) != self.padding;
        let wrong: Vec<usize> = (0..rows.len()).filter(wrong).collect();
        assert_eq!((bad.count, bad.first), (wrong.len() as u64, wrong.first().map(|at| *at as u64)), "bad ids");
        Ok(out)
    }

    /// The same, left on the device.
    pub(crate) fn run_buffer(&self, engine: &Engine, table: &Table) -> Result<Vec<f32>, GatherError> {
        let rows = table.bag_buffer_blocking(self.ids.ids(), &self.bags(), self.policy)?;
        assert_eq!(rows.rows() as usize, self.len());
        let bytes = read_back(engine, rows.buffer(), 0, rows.bytes());
        Ok(bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect())
    }

    /// What the documented order gives in f32: in each stretch of 1,024 ids band by band, and ids in their order. Each band is
    /// of one pass. `decoded` are all rows of the table. No norms.
    pub(crate) fn naive(&self, decoded: &[f32], dim: usize, bands: &[Range<u32>]) -> Vec<f32> {
        let count = u32::try_from(decoded.len() / dim).expect("rows");
        self.naive_of(Names::direct(count), decoded, dim, bands)
    }

    /// The same where ids are read so, and `decoded` are all stored rows.
    fn naive_of(&self, names: Names, decoded: &[f32], dim: usize, bands: &[Range<u32>]) -> Vec<f32> {
        let rows = self.ids.rows(names, self.policy);
        let zeros = vec![0.0; dim];
        let width = names.width(dim);
        let stored = |row: u32| &decoded[row as usize * width..][..width];
        let read = |row: &Option<Read>| row.map(|row| names.join_f32(row, dim, stored));
        let values: Vec<Option<Vec<f32>>> = rows.iter().map(read).collect();
        let mut out = Vec::new();
        for bag in 0..self.len() {
            let mut kept = self.kept(bag);
            // Bad ids are answered for with the first band.
            let within =
                |at: usize| bands.iter().position(|band| rows[at].is_some_and(|row| band.contains(&row.rows()[0])));
            let band = |at: usize| within(at).unwrap_or(0);
            let begin = usize::try_from(self.starts[bag]).expect("a position");
            kept.sort_by_key(|at| ((at - begin) / 1024, band(*at)));
            let start = if self.mode == BagMode::Max { f32::MIN } else { 0.0 };
            let mut so_far = vec![start; dim];
            for &at in &kept {
                let row = values[at].as_ref().unwrap_or(&zeros);
                for (so_far, &value) in so_far.iter_mut().zip(row) {
                    match (self.mode, &self.weights) {
                        (BagMode::Max, _) if value > *so_far => *so_far = value,
                        (BagMode::Max, _) => {}
                        (_, Some(weights)) => *so_far += value * weights[at],
                        (_, None) => *so_far += value,
                    }
                }
            }
            match (kept.len(), self.mode) {
                (0, _) => so_far.fill(0.0),
                (count, BagMode::Mean) => {
                    let scale = narrow(1.0 / count as f64);
                    so_far.iter_mut().for_each(|value| *value *= scale);
                }
                _ => {}
            }
            out.extend(so_far);
        }
        out
    }

    /// Says where `got` is farther from f64 than f32 sums may be. No norms.
    ///
    /// With `u = 2^-24`, a decoded value is off by at most its row's slack, a product by `u` of it, and each of `n` additions
    /// by `u` of a sum that is at most `S = sum |w x|` (and first-order terms of the roundings before): `(n + 1) u S`. The mean
    /// has its reciprocal rounded, and the product with it: `2 u`. What is left out is of the order of `(n u)^2`; 1 % covers it
    /// for the 5,000 ids that bags here have.
    pub(crate) fn compare(&self, fixture: &Fixture, got: &[f32], context: &str) {
        let (dim, unit) = (fixture.dim(), 2f64.powi(-24));
        let names = fixture.names();
        let rows = self.ids.rows(names, self.policy);
        let zeros = vec![0.0; dim];
        let wanted =
            |row: &Option<Read>| row.map_or((zeros.clone(), 0.0), |row| (fixture.row(row), fixture.slack(row)));
        let wanted: Vec<(Vec<f64>, f64)> = rows.iter().map(wanted).collect();
        for (bag, got) in (0..self.len()).zip(got.chunks_exact(dim)) {
            let kept = self.kept(bag);
            for (column, &got) in got.iter().enumerate() {
                let value = |at: usize| wanted[at].0[column];
                let slack = |at: usize| wanted[at].1;
                let weight = |at: usize| self.weights.as_ref().map_or(1.0, |weights| f64::from(weights[at]));
                let (want, bound) = if self.mode == BagMode::Max {
                    let most = kept.iter().map(|at| value(*at)).fold(f64::NEG_INFINITY, f64::max);
                    (most, kept.iter().map(|at| slack(*at)).fold(0.0, f64::max))
                } else {
                    let sum: f64 = kept.iter().map(|at| weight(*at) * value(*at)).sum();
                    let size: f64 = kept.iter().map(|at| (weight(*at) * value(*at)).abs()).sum();
                    let decoding: f64 = kept.iter().map(|at| weight(*at).abs() * slack(*at)).sum();
                    let bound = (decoding + (kept.len() + 3) as f64 * unit * size) * 1.01;
                    let by = if self.mode == BagMode::Mean { kept.len().max(1) as f64 } else { 1.0 };
                    (sum / by, bound / by)
                };
                let want = if kept.is_empty() { 0.0 } else { want };
                let apart = (f64::from(got) - want).abs();
                assert!(apart <= bound, "bag {bag}, column {column}: {got:e}, not {want:e} (+- {bound:e}); {context}");
                assert!(!kept.is_empty() || got.to_bits() == 0, "bag {bag} is empty, and {got}; {context}");
            }
        }
    }

    /// Runs it in each way that a backend has and compares with f64, with the plain loop to the bit, and the host's bits.
    pub(crate) fn verify(&self, backend: &Backend, engine: &Engine, table: &Table, fixture: &Fixture) {
        let context = format!("{engine:?} {:?}", Shown(self));
        let host = Engine::host().load_blocking(&fixture.encoded).expect("host memory");
        let naive = self.naive_of(fixture.names(), &fixture.decoded(), fixture.dim(), &fixture.bands());
        self.compare(fixture, &naive, &context);
        let want = if self.normalised {
            let normal = self.run(&host).expect("an answer");
            norms(&naive, &normal, fixture.dim(), &context);
            normal
        } else {
            naive
        };
        same(&self.run(table).unwrap_or_else(|error| panic!("{error}; {context}")), &want, &context);
        if !backend.is_host() {
            same(&self.run_buffer(engine, table).unwrap_or_else(|error| panic!("{error}; {context}")), &want, &context);
        }
    }
}

/// A call without its thousands of ids.
struct Shown<'a>(&'a Call);

impl std::fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Call { mode, padding, normalised, policy, .. } = self.0;
        let weighted = self.0.weights.is_some();
        let lengths: Vec<u64> = self.0.starts.windows(2).map(|ends| ends[1] - ends[0]).collect();
        write!(
            f,
            "{mode:?}, weighted {weighted}, padding {padding:?}, normalised {normalised}, {policy:?}, {lengths:?}"
        )
    }
}

/// Compares rows to the bit.
pub(crate) fn same(got: &[f32], want: &[f32], context: &str) {
    assert_eq!(got.len(), want.len(), "{context}");
    let differ = |at: &usize| got[*at].to_bits() != want[*at].to_bits();
    if let Some(at) = (0..got.len()).find(differ) {
        let all = (0..got.len()).filter(differ).count();
        panic!("value {at} is {:e}, not {:e} ({all} of {} differ); {context}", got[at], want[at], got.len());
    }
}

/// Compares normal rows with f64 norms of `rows`, within what the documentation says.
fn norms(rows: &[f32], normal: &[f32], dim: usize, context: &str) {
    let most = (dim as f64 / 32.0 + 12.0) * 2f64.powi(-24);
    for (row, normal) in rows.chunks_exact(dim).zip(normal.chunks_exact(dim)) {
        let norm = row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        for (value, normal) in row.iter().zip(normal) {
            let want = if norm == 0.0 { 0.0 } else { f64::from(*value) / norm };
            let apart = (f64::from(*normal) - want).abs();
            assert!(apart <= most * want.abs(), "{normal:e}, not {want:e}; {context}");
        }
    }
}
