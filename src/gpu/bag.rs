//! Recording bags: ids, weights and pieces of bags in one buffer, and a dispatch for each round of pieces and set of shards.
//!
//! ```text
//! input, in words:  ids            weights (if any)   pieces, those of round 0, of round 1, ...
//!                  |i0|i1|i2| ... |w0|w1|w2| ...     |row and flags, begin, end, scale| ...
//! ```
//!
//! A piece is a stretch of a bag. A round has at most one piece of each bag; each goes on with what the one before has left
//! in the output. The padding id is left out here, with its weights.

use std::ops::Range;

use super::{
    Gpu, GpuShard, Recorded,
    compose::{Op, Sink},
    params::Params,
    pass::{Buffers, Pass, Step, narrow, passes, split},
    pipeline::{IdKind, Key, Pipeline, stretch},
};
use crate::{
    error::GatherError,
    op::{CheckedBags, IdPolicy, IdType, STRETCH},
    scheme::TableSpec,
};

/// Flags of a piece, as `shaders/op/bag.wgsl` has them.
const CONTINUES: u32 = 1 << 31;
const EMPTY: u32 = 1 << 30;

/// Words of a piece.
const PIECE: usize = 4;

/// The most words that a piece adds to a chunk.
const PIECE_WORDS: usize = STRETCH as usize * 3 + PIECE;

/// About the most words of a chunk: bytes that are on the way at a time.
const CHUNK_WORDS: u64 = 8 << 20;

/// As much of a call as goes in one submission.
pub(crate) struct Chunk {
    /// What the kernels read.
    pub(crate) words: Vec<u32>,
    /// Bags with a piece in it.
    bags: Range<usize>,
    weights: usize,
    pieces: usize,
    /// Pieces of each round.
    rounds: Vec<usize>,
}

/// Cuts bags into chunks.
pub(crate) struct Chunks<'a> {
    bags: &'a CheckedBags<'a>,
    /// The next bag, and the position of its next id.
    next: (usize, usize),
    until: usize,
    /// Ids of a piece.
    stretch: usize,
    most_words: usize,
    most_bags: usize,
}

/// Where results go, and from what.
pub(crate) struct BagCall<'a> {
    pub(crate) spec: &'a TableSpec,
    pub(crate) shards: &'a [GpuShard],
    pub(crate) policy: IdPolicy,
    pub(crate) bags: &'a CheckedBags<'a>,
    /// `[bags, dim]`, from byte 0 on.
    pub(crate) output: &'a wgpu::Buffer,
    /// The bag that the first row is of.
    pub(crate) first: usize,
}

impl Gpu {
    /// Cuts `bags` into chunks that fit the limits of the device.
    pub(crate) fn bag_chunks<'a>(&self, bags: &'a CheckedBags<'a>, part: Range<usize>, spec: &TableSpec) -> Chunks<'a> {
        let dim = spec.shape().dim();
        let binding = self.storage_binding();
        let threads = self.most_threads() / u64::from(dim.div_ceil(16));
        let most_bags = (binding / (u64::from(dim) * 4)).min(threads).max(1);
        let at_least = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Chunks {
            bags,
            next: (part.start, bags.range(part.start).start),
            until: part.end,
            stretch: stretch(spec),
            most_words: at_least((binding.min(self.limits.max_buffer_size) / 4 - 64).min(CHUNK_WORDS)),
            most_bags: at_least(most_bags),
        }
    }

    /// Records a chunk whose words are in `input`; what is returned must live until the commands are submitted.
    pub(crate) fn record_bags(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        call: &BagCall<'_>,
        chunk: &Chunk,
        input: &wgpu::Buffer,
    ) -> Result<Recorded, GatherError> {
        let dim = call.spec.shape().dim();
        let op = Op::Bag { pool: call.bags.pool(), weighted: call.bags.weights.is_some() };
        let passes = passes(call.shards);
        let pipelines: Vec<_> = passes.iter().map(|pass| self.bag_pipeline(call, pass, op)).collect();
        let rows = chunk.bags.start - call.first..chunk.bags.end - call.first;
        let (out_start, output) = self.bound_rows(rows, dim);
        let row_threads = u64::from(dim.div_ceil(16).div_ceil(self.granularity.bag_span(call.spec)));
        let mut steps = Vec::new();
        let mut piece = chunk.pieces;
        for &round in &chunk.rounds {
            let (grid, grid_width) = self.grid(round as u64 * row_threads);
            for (pass, pipeline) in passes.iter().zip(&pipelines) {
                let params = Params {
                    rows: call.spec.shape().rows(),
                    batch: narrow(round as u64),
                    grid_width,
                    out_start,
                    extra1: narrow(piece as u64),
                    extra2: narrow(chunk.weights as u64),
                    ..pass.params
                };
                let shards = pass.shards;
                steps.push((pipeline, Step { params, shards, input: chunk.binding(), output, grid }));
            }
            piece += round * PIECE;
        }
        Ok(self.record_steps(encoder, "bag", &call.buffers(input), &steps)?)
    }

    /// Records the division of `bags` by their norms, once all their chunks are recorded. `input` is that of any chunk.
    pub(crate) fn record_norms(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        call: &BagCall<'_>,
        bags: Range<usize>,
        chunk: &Chunk,
        input: &wgpu::Buffer,
    ) -> Result<Recorded, GatherError> {
        let dim = call.spec.shape().dim();
        let Some(pass) = passes(call.shards).into_iter().next() else { unreachable!("bags of a table with rows") };
        let pipeline = self.bag_pipeline(call, &pass, Op::Normalise);
        let rows = bags.start - call.first..bags.end - call.first;
        let most = usize::try_from(self.storage_binding() / (u64::from(dim) * 4)).unwrap_or(usize::MAX).max(1);
        let mut steps = Vec::new();
        for first in rows.clone().step_by(most) {
            let rows = first..rows.end.min(first + most);
            let (grid, grid_width) = self.grid(rows.len() as u64);
            let batch = narrow(rows.len() as u64);
            let (out_start, output) = self.bound_rows(rows, dim);
            let params = Params { batch, grid_width, out_start, ..pass.params };
            let shards = pass.shards;
            steps.push((&pipeline, Step { params, shards, input: chunk.binding(), output, grid }));
        }
        Ok(self.record_steps(encoder, "bag.norms", &call.buffers(input), &steps)?)
    }

    fn bag_pipeline(&self, call: &BagCall<'_>, pass: &Pass<'_>, op: Op) -> Pipeline {
        let dim = call.spec.shape().dim();
        let (_, id_type) = call.bags.ids.raw();
        let key = Key {
            scheme: pass.spec.scheme().to_string(),
            dim,
            bound: pass.bound,
            sink: Sink::f32(dim, 0),
            op,
            ids: IdKind::new(pass.spec, id_type, call.policy == IdPolicy::Wrap && id_type == IdType::I64),
        };
        self.pipeline(pass.spec, key)
    }

    /// How these rows of the output are bound: the word that the first begins at, and the binding.
    fn bound_rows(&self, rows: Range<usize>, dim: u32) -> (u32, (u64, u64)) {
        let row_bytes = u64::from(dim) * 4;
        let (from, skip) = split(rows.start as u64 * row_bytes, self.storage_align());
        (narrow(skip / 4), (from, skip + rows.len() as u64 * row_bytes))
    }
}

impl BagCall<'_> {
    fn buffers<'a>(&'a self, input: &'a wgpu::Buffer) -> Buffers<'a> {
        Buffers { input, status: None, output: self.output, shards: self.shards }
    }
}

impl Chunk {
    /// All words, as they are bound.
    fn binding(&self) -> (u64, u64) {
        (0, self.words.len() as u64 * 4)
    }
}

impl Iterator for Chunks<'_> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let (first, mut at) = self.next;
        if first == self.until {
            return None;
        }
        let (mut ids, mut weights) = (Vec::new(), Vec::new());
        let mut rounds: Vec<Vec<[u32; PIECE]>> = Vec::new();
        let mut pieces = 0;
        let mut bag = first;
        'bags: while bag < self.until && bag - first < self.most_bags {
            let (range, kept) = (self.bags.range(bag), self.bags.kept(bag));
            let row = narrow((bag - first) as u64);
            for round in 0.. {
                if ids.len() + weights.len() + pieces * PIECE + PIECE_WORDS > self.most_words {
                    break 'bags;
                }
                let stretch = at..range.end.min(at + self.stretch);
                let begin = self.append(stretch.clone(), &mut ids, &mut weights);
                let last = stretch.end == range.end;
                let flags = if kept == 0 { EMPTY } else { 0 };
                let flags = if at == range.start { flags } else { flags | CONTINUES };
                let scale = if last { self.bags.scale(kept) } else { 1.0 };
                let (begin, end) = (narrow(begin as u64), narrow(self.ids(&ids) as u64));
                if rounds.len() == round {
                    rounds.push(Vec::new());
                }
                rounds[round].push([row | flags, begin, end, scale.to_bits()]);
                pieces += 1;
                at = stretch.end;
                if last {
                    break;
                }
            }
            bag += 1;
        }
        let began = bag < self.until && at > self.bags.range(bag).start;
        self.next = (bag, at);
        let bags = first..bag + usize::from(began);
        let weights_at = ids.len();
        let mut words = ids;
        words.append(&mut weights);
        let pieces = words.len();
        rounds.iter().for_each(|round| words.extend_from_slice(round.as_flattened()));
        Some(Chunk { words, bags, weights: weights_at, pieces, rounds: rounds.iter().map(Vec::len).collect() })
    }
}

impl Chunks<'_> {
    fn id_words(&self) -> usize {
        self.bags.ids.raw().1.words() as usize
    }

    /// How many ids those words are.
    fn ids(&self, words: &[u32]) -> usize {
        words.len() / self.id_words()
    }

    /// Appends ids and weights at `positions`, without the padding id, and says how many ids were there before.
    fn append(&self, positions: Range<usize>, ids: &mut Vec<u32>, weights: &mut Vec<u32>) -> usize {
        let before = self.ids(ids);
        let width = self.id_words();
        self.bags.each_block(positions, |first, part, keep| {
            let words: &[u32] = bytemuck::cast_slice(part.raw().0);
            let part_weights = self.bags.weights.map(|weights| &weights[first..][..part.len()]);
            match keep {
                None => {
                    ids.extend_from_slice(words);
                    weights.extend_from_slice(bytemuck::cast_slice(part_weights.unwrap_or_default()));
                }
                Some(keep) => {
                    for (at, _) in keep.iter().enumerate().filter(|(_, keep)| **keep) {
                        ids.extend_from_slice(&words[at * width..][..width]);
                        weights.extend(part_weights.map(|weights| weights[at].to_bits()));
                    }
                }
            }
        });
        before
    }
}
