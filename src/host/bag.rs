//! Bags: rows of several ids as one.
//!
//! ```text
//! for each run of bags, on all cores:
//!     for each block of their ids, in order:
//!         rows, weights = resolve(ids)        # on the stack, the padding id left out
//!         out[bag] = fold(out[bag], rows)     # decoded, weighted and added in one loop
//!     out[bag] = finish(out[bag])             # the mean's reciprocal, the norm
//! ```

use std::ops::Range;

use rayon::prelude::*;

use super::HostTable;
use crate::{
    op::{CheckedBags, Resolver, STRETCH},
    scheme::{BaggedRows, MOST_READ},
};

/// Ids of a block, and bags that it may be of: a stretch of a bag is never cut, as devices do not.
const BLOCK: usize = STRETCH as usize;
/// About the most values that a run of bags reads: worth a thread's attention.
const RUN_VALUES: usize = 1 << 18;
/// Calls that read at most so many values stay on the calling thread.
const ALONE_VALUES: usize = 1 << 16;

impl HostTable {
    /// Fills `out: [bags, dim]`, which has the right length. Bad ids have been refused, or are rows of zeros.
    pub(crate) fn bag(&self, bags: &CheckedBags<'_>, resolver: Resolver, out: &mut [f32]) {
        let values = bags.ids.len().saturating_add(bags.len()).saturating_mul(self.dim());
        if values <= ALONE_VALUES {
            self.run(bags, resolver, 0, out);
        } else {
            let run = (bags.len() / values.div_ceil(RUN_VALUES)).max(1);
            out.par_chunks_mut(run * self.dim())
                .enumerate()
                .for_each(|(number, out)| self.run(bags, resolver, number * run, out));
        }
    }

    /// Bags from `first` on, as many as `out` has rows.
    fn run(&self, bags: &CheckedBags<'_>, resolver: Resolver, first: usize, out: &mut [f32]) {
        let dim = self.dim();
        out.fill(bags.pool().start());
        let mut block = Block::new(resolver.each());
        let count = out.len() / dim;
        for bag in first..first + count {
            let range = bags.range(bag);
            // A bag without ids has its place in a block too.
            for at in (range.start..range.end.max(range.start + 1)).step_by(BLOCK) {
                let part = at..range.end.min(at + BLOCK);
                if block.taken + part.len() > BLOCK || block.bags == BLOCK {
                    let begins = (block.first - first) * dim;
                    self.fold(bags, &mut block, &mut out[begins..]);
                }
                block.take(bags, resolver, bag, part);
            }
        }
        let begins = (block.first - first) * dim;
        self.fold(bags, &mut block, &mut out[begins..]);
        for (bag, out) in (first..).zip(out.chunks_exact_mut(dim)) {
            finish(bags, bag, out);
        }
    }

    /// Folds the rows of a block into `out`, whose first row is that of the block's first bag, and empties the block.
    fn fold(&self, bags: &CheckedBags<'_>, block: &mut Block, out: &mut [f32]) {
        if block.length > 0 {
            let rows = BaggedRows {
                rows: &block.rows[..block.length * block.each],
                weights: bags.weights.map(|_| &block.weights[..block.length]),
                ends: &block.ends[..block.bags],
                pool: bags.pool(),
            };
            self.pool(&rows, out);
        }
        (block.bags, block.taken, block.length) = (0, 0, 0);
    }
}

/// Rows of some bags that follow one another, the first and last of which may have more in other blocks.
struct Block {
    /// As many for each id as it reads.
    rows: [u32; BLOCK * MOST_READ],
    each: usize,
    weights: [f32; BLOCK],
    ends: [usize; BLOCK],
    /// The first bag, and how many there are.
    first: usize,
    bags: usize,
    /// Ids taken, those of padding among them, so that no block takes two parts of a bag.
    taken: usize,
    /// Ids whose rows are there.
    length: usize,
}

impl Block {
    fn new(each: usize) -> Self {
        Self {
            rows: [0; BLOCK * MOST_READ],
            each,
            weights: [0.0; BLOCK],
            ends: [0; BLOCK],
            first: 0,
            bags: 0,
            taken: 0,
            length: 0,
        }
    }

    /// Adds the ids at `part` of the next bag.
    fn take(&mut self, bags: &CheckedBags<'_>, resolver: Resolver, bag: usize, part: Range<usize>) {
        if self.bags == 0 {
            self.first = bag;
        }
        self.taken += part.len();
        bags.each_block(part, |first, ids, keep| {
            let each = self.each;
            let rows = &mut self.rows[self.length * each..][..ids.len() * each];
            resolver.resolve(ids, rows);
            if let Some(weights) = bags.weights {
                self.weights[self.length..][..ids.len()].copy_from_slice(&weights[first..][..ids.len()]);
            }
            let Some(keep) = keep else {
                self.length += ids.len();
                return;
            };
            let begin = self.length;
            for (at, _) in keep.iter().enumerate().filter(|(_, keep)| **keep) {
                let from = (begin + at) * each;
                self.rows.copy_within(from..from + each, self.length * each);
                self.weights[self.length] = self.weights[begin + at];
                self.length += 1;
            }
        });
        self.ends[self.bags] = self.length;
        self.bags += 1;
    }
}

/// What is done with a bag once all its rows are in.
fn finish(bags: &CheckedBags<'_>, bag: usize, out: &mut [f32]) {
    let kept = bags.kept(bag);
    if kept == 0 {
        out.fill(0.0);
        return;
    }
    let scale = bags.scale(kept);
    if scale != 1.0 {
        out.iter_mut().for_each(|value| *value *= scale);
    }
    if bags.normalised {
        normalise(out);
    }
}

/// Divides a row by its L2 norm, by the steps of `shaders/op/normalise.wgsl`.
fn normalise(row: &mut [f32]) {
    let largest = row.iter().fold(0.0, |largest: f32, value| if value.abs() > largest { value.abs() } else { largest });
    let exponent = largest.to_bits() >> 23;
    if exponent == 0 {
        return;
    }
    let scale = f32::from_bits((254 - exponent.min(253)) << 23);
    let mut lanes = [0f32; 16];
    for values in row.chunks(16) {
        for (lane, value) in lanes.iter_mut().zip(values) {
            let scaled = value * scale;
            *lane += scaled * scaled;
        }
    }
    let [x, y, z, w] = [0, 1, 2, 3].map(|lane| ((lanes[lane] + lanes[lane + 4]) + lanes[lane + 8]) + lanes[lane + 12]);
    let inverse = inverse_root(((x + y) + z) + w);
    row.iter_mut().for_each(|value| *value = (*value * scale) * inverse);
}

/// `1 / sqrt(x)` for `x` of at least 1: four of Newton's steps, each of which squares the error, which is 0.035 at first.
fn inverse_root(x: f32) -> f32 {
    let half = 0.5 * x;
    let first = f32::from_bits(0x5f37_5a86 - (x.to_bits() >> 1));
    (0..4).fold(first, |y, _| y * (1.5 - (half * y) * y))
}
