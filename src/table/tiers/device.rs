//! The tier on a device: a small table whose rows are those of the pages in its slots.

use std::{
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use event_listener::{Event, EventListener};

use super::{
    fetch::Below,
    pages::{PageBytes, Pages},
    slots::{Slots, Taken},
};
use crate::{
    error::{DeviceError, GatherError, TableError},
    gpu::{Gpu, GpuShard, PooledError, SHARDS_A_PASS},
    memory::{Placement, Shard},
    scheme::{Category, TableSpec},
    store::TierStats,
    table::{device::DeviceTable, resident},
    units::Bytes,
};

/// About the bytes that go to the device at a time.
const STAGED: usize = 16 << 20;

/// Pages on a device.
pub(super) struct DeviceTier {
    name: String,
    gpu: Arc<Gpu>,
    /// Of the small table.
    spec: TableSpec,
    shards: Vec<GpuShard>,
    placed: Vec<Shard>,
    state: Mutex<State>,
    /// Slots were let go, or loads ended.
    changed: Event,
}

struct State {
    slots: Slots,
    /// Lookups that hold slots now: they let go of them without anybody's help.
    lookups: usize,
    stats: TierStats,
}

/// Who holds pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// A lookup, which takes as many of its rows at a time as there are slots for.
    Lookup,
    /// A lease, which needs all of them.
    Lease,
}

/// Pages that stay in their slots until this is dropped.
pub(super) struct Held {
    tier: Arc<DeviceTier>,
    slots: Vec<u32>,
    /// Loads that have not ended.
    loads: Vec<(u32, u32)>,
    holder: Holder,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.tier.lock();
        state.slots.end(&self.loads, false);
        state.slots.release(&self.slots);
        state.lookups -= usize::from(self.holder == Holder::Lookup);
        drop(state);
        self.tier.changed.notify(usize::MAX);
    }
}

/// What became of asking for pages.
enum Begun {
    /// The rows' numbers in the small table, of as many as got slots; the pages, and what of them others load.
    Taken(Vec<u32>, Held, Vec<(u32, u32)>),
    Wait(EventListener),
    Busy,
}

impl DeviceTier {
    /// Room for pages of at most `budget`, with what all rows share.
    pub(super) async fn new(
        name: &str,
        shared: &[Vec<u8>],
        pages: &Pages,
        gpu: Arc<Gpu>,
        budget: Bytes,
    ) -> Result<Self, TableError> {
        let too_large = |row| TableError::ShardBudget { table: name.to_owned(), shard: Bytes(row), budget };
        let mut count = pages.within(budget);
        let (spec, placement) = loop {
            if count == 0 && pages.count() > 0 {
                return Err(too_large(pages.page_bytes().0));
            }
            let spec = pages.table(count);
            let placement = placement(name, &spec, pages.rows, resident::most_bound(&gpu))?;
            let over = placement.bytes().0.saturating_sub(budget.0);
            let shards = placement.shards();
            // Bags are added in the order of their ids where one pass binds all shards.
            let bound: u32 = shards.iter().take(SHARDS_A_PASS).map(|shard| shard.rows).sum();
            if over == 0 && shards.len() <= SHARDS_A_PASS {
                break (spec, placement);
            }
            let fewer = u32::try_from(over.div_ceil(pages.page_bytes().0.max(1))).unwrap_or(u32::MAX).max(1);
            count = count.saturating_sub(fewer).min(bound / pages.rows);
        };
        let bands = spec.bands();
        let shards = gpu.make_shards(&resident::label(name), &placement, &bands).await?;
        let placed = placement.into_shards();
        for (number, bytes) in shared.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
            let mut words = bytes.clone();
            words.resize(bytes.len().next_multiple_of(4), 0);
            for (shard, placed) in shards.iter().zip(&placed) {
                gpu.upload(&shard.buffer, placed.offsets[number], &words).await?;
            }
        }
        let capacity = Bytes(placed.iter().map(|shard| shard.bytes.0).sum());
        let state = State {
            slots: Slots::new(pages.count(), count),
            lookups: 0,
            stats: TierStats { capacity, ..TierStats::default() },
        };
        Ok(Self { name: name.to_owned(), gpu, spec, shards, placed, state: Mutex::new(state), changed: Event::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The books are whole after each method.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pages that fit.
    pub(super) fn len(&self) -> usize {
        self.lock().slots.len()
    }

    /// The small table, which takes what [`DeviceTier::place`] gives for ids.
    pub(super) fn table(&self) -> DeviceTable<'_> {
        DeviceTable { name: &self.name, spec: &self.spec, gpu: &self.gpu, shards: &self.shards }
    }

    /// Holds the pages of the first of `rows`, as many as there are slots for, once all of those are there, and gives the
    /// numbers of those rows in the small table. What is no row stays as it is.
    pub(super) async fn place(
        self: &Arc<Self>,
        below: &Below,
        rows: &[u32],
        holder: Holder,
    ) -> Result<(Vec<u32>, Held), GatherError> {
        let mut again = false;
        loop {
            let (numbers, mut held, awaited) = match self.begin(&below.pages, rows, holder, again) {
                Begun::Taken(numbers, held, awaited) => (numbers, held, awaited),
                Begun::Wait(changed) => {
                    changed.await;
                    continue;
                }
                Begun::Busy => return Err(self.busy()),
            };
            if !held.loads.is_empty() {
                let wanted: Vec<u32> = held.loads.iter().map(|(page, _)| *page).collect();
                let bytes = below.fetch(&wanted).await?;
                self.upload(&below.pages, &bytes, &held.loads).await?;
                let mut state = self.lock();
                state.stats.moved.0 += below.pages.page_bytes().0 * wanted.len() as u64;
                state.slots.end(&std::mem::take(&mut held.loads), true);
                drop(state);
                self.changed.notify(usize::MAX);
            }
            if self.settle(&awaited).await {
                return Ok((numbers, held));
            }
            again = true;
        }
    }

    fn begin(self: &Arc<Self>, pages: &Pages, rows: &[u32], holder: Holder, again: bool) -> Begun {
        let mut state = self.lock();
        let mut taken = state.slots.begin();
        let mut numbers = Vec::with_capacity(rows.len());
        for row in rows {
            if *row >= pages.spec.shape().rows() {
                numbers.push(*row);
                continue;
            }
            let Some(slot) = state.slots.hold(row / pages.rows, &mut taken) else { break };
            numbers.push(slot * pages.rows + row % pages.rows);
        }
        let enough = if holder == Holder::Lease { rows.len() } else { rows.len().min(1) };
        let Taken { slots, missing, awaited } = taken;
        if numbers.len() < enough {
            let changed = self.changed.listen();
            state.slots.end(&missing, false);
            state.slots.release(&slots);
            return if state.lookups == 0 { Begun::Busy } else { Begun::Wait(changed) };
        }
        state.lookups += usize::from(holder == Holder::Lookup);
        let missed = missing.len() as u64;
        state.stats.misses += missed;
        state.stats.hits = match again {
            // What others were to bring up was counted as found, and is missed after all.
            true => state.stats.hits.saturating_sub(missed),
            false => state.stats.hits + slots.len() as u64 - missed,
        };
        drop(state);
        Begun::Taken(numbers, Held { tier: self.clone(), slots, loads: missing, holder }, awaited)
    }

    /// Waits for what others load, and says whether all of it came.
    async fn settle(&self, awaited: &[(u32, u32)]) -> bool {
        loop {
            let changed = self.changed.listen();
            let mut settled = Some(true);
            {
                let state = self.lock();
                for (page, slot) in awaited {
                    match state.slots.settled(*page, *slot) {
                        Some(true) => {}
                        Some(false) => return false,
                        None => settled = None,
                    }
                }
            }
            if settled.is_some() {
                return true;
            }
            changed.await;
        }
    }

    fn busy(&self) -> GatherError {
        GatherError::CacheBusy { table: self.name.clone(), pages: self.len() }
    }

    /// Copies pages to their slots. What is submitted later finds them there.
    async fn upload(&self, pages: &Pages, bytes: &PageBytes, loads: &[(u32, u32)]) -> Result<(), GatherError> {
        let page_bytes = usize::try_from(pages.page_bytes().0).unwrap_or(usize::MAX).max(1);
        let most = (STAGED / page_bytes).max(1);
        for first in (0..loads.len()).step_by(most) {
            let range = first..loads.len().min(first + most);
            self.upload_some(pages, bytes, loads, range).await?;
        }
        Ok(())
    }

    async fn upload_some(
        &self,
        pages: &Pages,
        bytes: &PageBytes,
        loads: &[(u32, u32)],
        range: Range<usize>,
    ) -> Result<(), GatherError> {
        let size = pages.page_bytes().0 * range.len() as u64;
        let usage = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let staging: Result<_, PooledError> = self.gpu.pooled("tier.staging", Category::Staging, usage, size).await;
        let staging = staging?;
        let copies = self.copies(pages, &loads[range.clone()]);
        let run = || {
            let mut encoder =
                self.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("tier.upload") });
            let mut begin = 0;
            for (part, bytes) in bytes.parts.iter().enumerate() {
                let page = pages.bytes[part];
                if page == 0 {
                    continue;
                }
                let bytes = &bytes[range.start * page..range.end * page];
                self.gpu.queue.write_buffer(&staging, begin, bytes);
                for copy in &copies {
                    let (from, length) = ((copy.from * page) as u64, (copy.pages * page) as u64);
                    let to = self.placed[copy.shard].offsets[part] + (copy.to * page) as u64;
                    let spot = self.shards[copy.shard].buffer.spot();
                    encoder.copy_buffer_to_buffer(&staging, begin + from, spot.buffer(), spot.at(to), length);
                }
                begin += bytes.len() as u64;
            }
            self.gpu.queue.submit([encoder.finish()]);
        };
        let done: Result<(), DeviceError> = self.gpu.catch("an upload of rows", size, run).await;
        Ok(done?)
    }

    /// Where pages go, neighbours together.
    fn copies(&self, pages: &Pages, loads: &[(u32, u32)]) -> Vec<Copy> {
        let mut copies: Vec<Copy> = Vec::new();
        for (from, (_, slot)) in loads.iter().enumerate() {
            let row = slot * pages.rows;
            let shard = self.placed.partition_point(|shard| shard.first_row <= row) - 1;
            let to = ((row - self.placed[shard].first_row) / pages.rows) as usize;
            match copies.last_mut() {
                Some(last) if last.shard == shard && last.to + last.pages == to => last.pages += 1,
                _ => copies.push(Copy { from, shard, to, pages: 1 }),
            }
        }
        copies
    }

    /// Lets go of pages of which there is another version.
    pub(super) fn change(&self, pages: impl Iterator<Item = u32>) {
        self.lock().slots.change(pages);
    }

    /// Lets go of pages that nobody holds.
    pub(super) fn forget(&self, pages: Range<u32>) -> u64 {
        self.lock().slots.forget(pages)
    }

    pub(super) fn stats(&self, pages: &Pages) -> TierStats {
        let state = self.lock();
        let resident = Bytes(state.slots.used() as u64 * pages.page_bytes().0);
        TierStats { resident, evictions: state.slots.evictions, ..state.stats }
    }
}

/// Pages that lie together, in what was staged and where they go.
struct Copy {
    from: usize,
    shard: usize,
    /// Their first page in the shard.
    to: usize,
    pages: usize,
}

/// Shards of whole pages.
fn placement(name: &str, spec: &TableSpec, rows: u32, binding: Bytes) -> Result<Placement, TableError> {
    let mut binding = binding;
    loop {
        let placement = Placement::plan(spec, binding).map_err(|error| TableError::RowTooLarge {
            table: name.to_owned(),
            row: error.row,
            binding: error.binding,
        })?;
        let torn = match placement.shards() {
            [first, _, ..] => first.rows % rows,
            _ => 0,
        };
        if torn == 0 {
            return Ok(placement);
        }
        binding = Bytes(binding.0.saturating_sub(u64::from(torn) * spec.row_bytes()));
    }
}
