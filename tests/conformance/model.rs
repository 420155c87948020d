//! What a dynamic table does, as plainly as it can be said: a `HashMap`, and a look at all rows for the one that goes.

#![expect(clippy::cast_possible_truncation, reason = "numbers made here, of known size; rounding is what is wanted")]

use std::collections::{HashMap, HashSet};

use gatherum::{DynamicOptions, Eviction, Initializer, OutputDtype};
use half::f16;

/// Columns of a row.
pub(crate) const DIM: usize = 2;

struct Row {
    values: [f32; DIM],
    uses: u64,
    score: f32,
    used: u64,
}

pub(crate) struct Model {
    options: DynamicOptions,
    rows: HashMap<u64, Row>,
    time: u64,
    evicted: Vec<u64>,
}

impl Model {
    pub(crate) fn new(options: &DynamicOptions) -> Self {
        Self { options: *options, rows: HashMap::new(), time: 0, evicted: Vec::new() }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.options.capacity as usize
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        self.rows.contains_key(&id)
    }

    pub(crate) fn take_evicted(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.evicted)
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    fn stored(&self, value: f32) -> f32 {
        if self.options.dtype == OutputDtype::F16 { f16::from_f32(value).to_f32() } else { value }
    }

    /// The id that goes next, if not one of the batch.
    fn next(&self, batch: &HashSet<u64>) -> u64 {
        let mut rows: Vec<(&u64, &Row)> = self.rows.iter().filter(|(id, _)| !batch.contains(id)).collect();
        let rank = |row: &Row| match self.options.eviction {
            Eviction::Lfu => row.uses as f64,
            Eviction::Score => f64::from(row.score),
            _ => 0.0,
        };
        rows.sort_by(|(_, one), (_, other)| {
            (rank(one), one.used).partial_cmp(&(rank(other), other.used)).expect("numbers")
        });
        *rows[0].0
    }

    fn touch(&mut self, id: u64) {
        self.time += 1;
        if let Some(row) = self.rows.get_mut(&id) {
            row.used = self.time;
            row.uses += 1;
        }
    }

    /// Gives all ids a row; `false`, and nothing has changed, where that cannot be.
    fn admit(&mut self, ids: &[u64]) -> bool {
        let batch: HashSet<u64> = ids.iter().copied().collect();
        let new = batch.iter().filter(|id| !self.contains(**id)).count();
        let free = self.capacity() - self.len();
        if batch.len() > self.capacity() || self.options.eviction == Eviction::Refuse && new > free {
            return false;
        }
        while self.len() + new > self.capacity() {
            let id = self.next(&batch);
            self.rows.remove(&id);
            self.evicted.push(id);
        }
        for id in ids {
            if !self.contains(*id) {
                let value = |column| self.stored(initial(self.options.initializer, *id, column));
                let values = [value(0), value(1)];
                self.rows.insert(*id, Row { values, uses: 0, score: 0.0, used: 0 });
            }
            self.touch(*id);
        }
        true
    }

    pub(crate) fn gather(&mut self, ids: &[u64]) -> Option<Vec<f32>> {
        self.admit(ids).then(|| ids.iter().flat_map(|id| self.rows[id].values).collect())
    }

    pub(crate) fn upsert(&mut self, ids: &[u64], values: &[f32]) -> bool {
        let admitted = self.admit(ids);
        if admitted {
            for (id, values) in ids.iter().zip(values.chunks(DIM)) {
                let values = [self.stored(values[0]), self.stored(values[1])];
                self.rows.get_mut(id).expect("it was admitted").values = values;
            }
        }
        admitted
    }

    pub(crate) fn lookup(&mut self, ids: &[u64]) -> (Vec<f32>, u64) {
        ids.iter().for_each(|id| self.touch(*id));
        let values = ids.iter().flat_map(|id| self.rows.get(id).map_or([0.0; DIM], |row| row.values)).collect();
        (values, ids.iter().filter(|id| !self.contains(**id)).count() as u64)
    }

    pub(crate) fn remove(&mut self, ids: &[u64]) -> u64 {
        ids.iter().filter(|id| self.rows.remove(id).is_some()).count() as u64
    }

    pub(crate) fn set_scores(&mut self, ids: &[u64], scores: &[f32]) -> u64 {
        let mut found = 0;
        for (id, score) in ids.iter().zip(scores) {
            self.time += 1;
            if let Some(row) = self.rows.get_mut(id) {
                (row.score, row.used) = (*score, self.time);
                found += 1;
            }
        }
        found
    }

    pub(crate) fn all(&self) -> (Vec<u64>, Vec<f32>) {
        let mut ids: Vec<u64> = self.rows.keys().copied().collect();
        ids.sort_unstable();
        let values = ids.iter().flat_map(|id| self.rows[id].values).collect();
        (ids, values)
    }
}

/// `MurmurHash3_x86_32` of the bytes of an id, as its author writes it, in wider numbers.
fn murmur3(id: u64, seed: u64) -> u64 {
    const LOW: u64 = 0xffff_ffff;
    let rotate = |word: u64, by: u32| ((word << by) | (word >> (32 - by))) & LOW;
    let mut hash = seed & LOW;
    for word in [id & LOW, id >> 32] {
        let mixed = (rotate((word * 0xcc9e_2d51) & LOW, 15) * 0x1b87_3593) & LOW;
        hash = (rotate(hash ^ mixed, 13) * 5 + 0xe654_6b64) & LOW;
    }
    finish(hash ^ 8)
}

fn finish(hash: u64) -> u64 {
    let hash = ((hash ^ (hash >> 16)) * 0x85eb_ca6b) & 0xffff_ffff;
    let hash = ((hash ^ (hash >> 13)) * 0xc2b2_ae35) & 0xffff_ffff;
    hash ^ (hash >> 16)
}

/// A value of a new row, in f64: a product or a sum of two f32 is rounded to f64 and from there to f32 as it would be at once.
pub(crate) fn initial(initializer: Initializer, id: u64, column: u32) -> f32 {
    let word = |seed: u64, draw: u64| {
        let (first, second) = (murmur3(id, seed), murmur3(id, (seed >> 32) ^ 0x9e37_79b9));
        finish(finish((first + draw * 0x9e37_79b9) & 0xffff_ffff) ^ second)
    };
    match initializer {
        Initializer::Uniform { seed, low, high } => {
            let step = ((f64::from(high) - f64::from(low)) / 2f64.powi(24)) as f32;
            let part = ((word(seed, column.into()) >> 8) as f64 * f64::from(step)) as f32;
            ((f64::from(low) + f64::from(part)) as f32).clamp(low, high)
        }
        Initializer::Normal { seed, std } => {
            let words = (0..4).map(|draw| word(seed, 4 * u64::from(column) + draw));
            let sum: u64 = words.map(|word| (word & 0xffff) + (word >> 16)).sum();
            let step = (f64::from(std) / (8.0 * (65_536f64.powi(2) - 1.0) / 12.0).sqrt()) as f32;
            ((sum as f64 - 262_140.0) * f64::from(step)) as f32
        }
        _ => 0.0,
    }
}
