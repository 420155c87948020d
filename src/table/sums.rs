//! Sums of rows and queries, from wherever the table is, by chunks.

use std::ops::Range;

use super::{Table, resident::Place};
use crate::{
    error::ScoreError,
    gpu::{Gpu, GpuShard, Pooled, ScoreCall},
    host::HostTable,
    op::{Panel, Queries, Sums},
    scheme::{Buckets, Category},
};

/// Sums of a chunk on the host: 4 MiB, which the cores find in a cache when they read them.
const HOST_SUMS: usize = 1 << 20;
/// Sums of a chunk on a device: 8 MiB.
const DEVICE_SUMS: usize = 1 << 21;

/// About the most sums of rows that others share, which are all kept at once: 256 MiB, unless one query has more.
const KEPT_SUMS: usize = 1 << 26;

/// The most queries that are multiplied together: what is decoded of a row serves as many.
const PANEL: usize = 256;
/// Every device has grids so deep: a thread for each four queries and span of a row.
const DEPTH: usize = 65_535;

impl Table {
    /// As many as are multiplied together. A row of their sums is within a chunk.
    pub(super) fn panel(&self, queries: &Queries) -> usize {
        let most = (DEPTH / queries.spans() * 4).clamp(1, PANEL);
        // Sums of shared rows are all kept at once.
        self.shared().map_or(most, |buckets| most.min(KEPT_SUMS / buckets.rows() as usize).max(1))
    }

    /// Which stored row a row reads, where it is one that others share: each of those is multiplied once.
    fn shared(&self) -> Option<Buckets> {
        self.spec().buckets().filter(|buckets| buckets.each() == 1)
    }

    /// Sums of `rows` of the table and the queries of `panel`, which has at most [`Table::panel`], in ascending order of the
    /// rows.
    pub(super) async fn sums(
        &self,
        panel: &Panel<'_>,
        rows: Range<u32>,
        mut visit: impl FnMut(&Sums),
    ) -> Result<(), ScoreError> {
        let Some(buckets) = self.shared() else { return self.own_sums(panel, rows, visit).await };
        let shared = self.shared_sums(panel, buckets).await?;
        let mut sums = Sums::default();
        for rows in split(rows, HOST_SUMS / panel.count()) {
            shared.expand(rows, &mut sums);
            visit(&sums);
        }
        Ok(())
    }

    /// The same of stored rows, or of rows of the table where each is of several stored ones.
    pub(super) async fn own_sums(
        &self,
        panel: &Panel<'_>,
        rows: Range<u32>,
        mut visit: impl FnMut(&Sums),
    ) -> Result<(), ScoreError> {
        let mut sums = Sums::default();
        match &self.inner.place {
            Place::Host { table, .. } => on_host(panel, table, 0, &rows, &mut sums, &mut visit),
            Place::Gpu { gpu, shards } => {
                let device = DeviceSums::new(gpu, panel, self.spec().each()).await?;
                if device.each == 1 {
                    // Rows of one stored one are taken shard by shard.
                    for shard in shards {
                        let first = shard.params.first_row;
                        let within = rows.start.max(first)..rows.end.min(first + shard.rows);
                        device.read_all(std::slice::from_ref(shard), within, &mut sums, &mut visit).await?;
                    }
                } else {
                    device.read_all(shards, rows, &mut sums, &mut visit).await?;
                }
            }
            Place::OnDemand(shards) => {
                let device = match shards.gpu() {
                    Some(gpu) => Some(DeviceSums::new(gpu, panel, 1).await?),
                    None => None,
                };
                for group in shards.scan_groups(&rows) {
                    let scanned = shards.scan(group).await?;
                    if let Some(device) = &device {
                        for shard in scanned.on_gpu() {
                            let first = shard.params.first_row;
                            let within = rows.start.max(first)..rows.end.min(first + shard.rows);
                            device.read_all(std::slice::from_ref(shard), within, &mut sums, &mut visit).await?;
                        }
                    } else {
                        for (first, table) in scanned.on_host() {
                            on_host(panel, table, first, &rows, &mut sums, &mut visit);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Sums of those of `rows` that are in `table`, whose first row is row `first` of them all.
fn on_host(
    panel: &Panel<'_>,
    table: &HostTable,
    first: u32,
    rows: &Range<u32>,
    sums: &mut Sums,
    visit: &mut impl FnMut(&Sums),
) {
    let spec = table.spec();
    // Rows of one stored one are scored as that; others as rows of the table.
    let end = first + if spec.each() == 1 { spec.stored_rows() } else { spec.shape().rows() };
    let within = rows.start.max(first)..rows.end.min(end);
    for rows in split(within, HOST_SUMS / panel.count()) {
        table.score(panel, rows.start - first..rows.end - first, sums);
        sums.first_row = rows.start;
        sums.measure();
        visit(sums);
    }
}

/// Runs of at most `most` rows.
fn split(rows: Range<u32>, most: usize) -> impl Iterator<Item = Range<u32>> {
    let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
    rows.clone().step_by(most as usize).map(move |first| first..first.saturating_add(most).min(rows.end))
}

/// Queries on a device.
struct DeviceSums<'a> {
    gpu: &'a Gpu,
    count: usize,
    with_squares: bool,
    spans: usize,
    /// Stored rows that a row is of.
    each: usize,
    queries: Pooled,
}

impl<'a> DeviceSums<'a> {
    async fn new(gpu: &'a Gpu, panel: &Panel<'_>, each: usize) -> Result<Self, ScoreError> {
        gpu.alive()?;
        let tiled = ScoreCall::tiled(panel);
        let bytes: &[u8] = bytemuck::cast_slice(&tiled);
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let queries = gpu.pooled("score.queries", Category::Staging, usage, bytes.len() as u64).await?;
        gpu.catch("an upload of queries", bytes.len() as u64, || gpu.queue.write_buffer(&queries, 0, bytes)).await?;
        let spans = panel.spans();
        Ok(Self { gpu, count: panel.count(), with_squares: panel.squares(), spans, each, queries })
    }

    /// Sums of rows of these shards, by chunks.
    async fn read_all(
        &self,
        shards: &[GpuShard],
        rows: Range<u32>,
        sums: &mut Sums,
        visit: &mut impl FnMut(&Sums),
    ) -> Result<(), ScoreError> {
        for rows in split(rows, DEVICE_SUMS / (self.count * self.spans)) {
            self.read(shards, rows, sums).await?;
            sums.measure();
            visit(sums);
        }
        Ok(())
    }

    /// Sums of rows of these shards.
    async fn read(&self, shards: &[GpuShard], rows: Range<u32>, sums: &mut Sums) -> Result<(), ScoreError> {
        let length = rows.len();
        let bytes = |values: usize| (values * size_of::<f32>()) as u64;
        let score_bytes = bytes(self.spans * self.count * length);
        let square_bytes = if self.with_squares { bytes(self.spans * length) } else { 0 };
        let gpu = self.gpu;
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        let scores = gpu.pooled("score.scores", Category::Output, usage, score_bytes).await?;
        let squares = gpu.pooled("score.squares", Category::Output, usage, square_bytes.max(4)).await?;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let total = score_bytes + square_bytes;
        let staging = gpu.pooled("score.staging", Category::Staging, usage, total).await?;
        let call = ScoreCall {
            shards,
            first_row: rows.start,
            rows: rows.end - rows.start,
            queries: &self.queries,
            count: self.count,
            with_squares: self.with_squares,
            squares: &squares,
            scores: &scores,
            spans: self.spans,
        };
        let record = || {
            let descriptor = wgpu::CommandEncoderDescriptor { label: Some("score") };
            let mut encoder = gpu.device.create_command_encoder(&descriptor);
            let recorded = gpu.record_score(&mut encoder, &call)?;
            encoder.copy_buffer_to_buffer(&scores, 0, &staging, 0, score_bytes);
            if self.with_squares {
                encoder.copy_buffer_to_buffer(&squares, 0, &staging, score_bytes, square_bytes);
            }
            Ok::<_, ScoreError>((encoder, recorded))
        };
        // Until the commands are submitted.
        let (encoder, _recorded) = gpu.catch("a score", total, record).await??;
        (sums.first_row, sums.rows, sums.block) = (rows.start, length, length);
        let spans = self.spans;
        let read = |back: &[u8]| {
            let (scores, squares) = back.split_at(back.len() - if square_bytes > 0 { length * spans * 4 } else { 0 });
            add_spans(scores, spans, &mut sums.dots);
            add_spans(squares, spans, &mut sums.squares);
        };
        Ok(gpu.submit_and_read(encoder, &staging, total, read).await?)
    }
}

/// Adds sums of spans, `[spans, n]`, in order, to `out: [n]`.
fn add_spans(bytes: &[u8], spans: usize, out: &mut Vec<f32>) {
    out.clear();
    let (words, _) = bytes.as_chunks::<4>();
    let mut parts = words.chunks((words.len() / spans).max(1));
    out.extend(parts.next().unwrap_or_default().iter().map(|word| f32::from_le_bytes(*word)));
    for part in parts {
        for (sum, word) in out.iter_mut().zip(part) {
            *sum += f32::from_le_bytes(*word);
        }
    }
}
