//! Blocks of memory that several allocations share.
//!
//! ```text
//! block     | space | space |      free      | space |   free   |
//!           0       offset                                      bytes
//! ```
//! A space goes back when it is dropped, and a block with its last space. Where a space lies may change: what holds it for a
//! while keeps the place that it had, and [`Blocks::evacuations`] says which spaces could go to other blocks so that theirs get
//! empty. Offsets are found by the allocator of Sebastian Aaltonen (crate `offset-allocator`), which takes constant time.

use std::{
    cmp::Reverse,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use offset_allocator::{Allocation, Allocator};

use super::{Need, PoolReport, Reservation};
use crate::{scheme::Category, units::Bytes};

/// The label of what no space of a block has.
const LABEL: &str = "pool";

/// The first block's bytes, if nothing larger is asked for. As long as blocks are small, the next one is as large as all of them.
const FIRST: u64 = 256 << 10;

/// The most bytes of a block.
const MOST: u64 = 16 << 20;

/// Spaces above this share no block: they would leave too much of it.
const LARGEST: u64 = MOST / 4;

/// Spaces of a block, at the most: the allocator has about 30 bytes of books for each.
const SPACES: u32 = 4096;

/// Blocks of values `B`: buffers of a device.
pub(crate) struct Blocks<B> {
    /// Offsets of spaces are multiples of it.
    unit: u64,
    blocks: Mutex<Vec<Weak<Block<B>>>>,
    movable: Mutex<Vec<Weak<Movable<B>>>>,
}

/// A block, which lives as long as any of its spaces.
pub(crate) struct Block<B> {
    value: B,
    units: u32,
    books: Mutex<Books>,
}

struct Books {
    allocator: Allocator,
    used: u32,
    /// What the ledger has of it that no space has.
    free: Reservation,
}

/// Bytes of a block; they are free when it is dropped.
pub(crate) struct Space<B> {
    block: Arc<Block<B>>,
    offset: u64,
    bytes: u64,
    units: u32,
    allocation: Allocation,
    reserved: Option<Reservation>,
}

/// A space that may be moved to another place.
#[derive(Debug)]
pub(crate) struct Movable<B>(Mutex<Arc<Space<B>>>);

/// A space that may be moved, and where it is now.
type Placed<B> = (Arc<Movable<B>>, Arc<Space<B>>);

/// A space that goes to another block.
pub(crate) struct Move<B> {
    what: Arc<Movable<B>>,
    pub(crate) from: Arc<Space<B>>,
    pub(crate) to: Arc<Space<B>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in them is whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next number of units of which the allocator finds a hole again that one of as many left: it has bins of four digits.
fn binned(units: u32) -> u32 {
    let digits = (u32::BITS - units.leading_zeros()).saturating_sub(4);
    units.next_multiple_of(1 << digits)
}

impl<B> Blocks<B> {
    /// No block yet; offsets are multiples of `unit`.
    pub(crate) fn new(unit: u64) -> Self {
        Self { unit, blocks: Mutex::default(), movable: Mutex::default() }
    }

    fn units(&self, bytes: u64) -> u32 {
        // Spaces have at most `LARGEST` bytes.
        binned(u32::try_from(bytes.div_ceil(self.unit)).unwrap_or(u32::MAX >> 4).max(1))
    }

    /// Whether as many bytes can share a block.
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        (1..=LARGEST).contains(&bytes)
    }

    fn all(&self) -> Vec<Arc<Block<B>>> {
        let mut blocks = lock(&self.blocks);
        blocks.retain(|block| block.strong_count() > 0);
        blocks.iter().filter_map(Weak::upgrade).collect()
    }

    /// A space in a block that has room.
    pub(crate) fn take(&self, need: &Need) -> Option<Space<B>> {
        self.all().iter().find_map(|block| self.take_in(block, need))
    }

    fn take_in(&self, block: &Arc<Block<B>>, need: &Need) -> Option<Space<B>> {
        let (bytes, units) = (need.total(), self.units(need.total()));
        let mut books = lock(&block.books);
        let allocation = books.allocator.allocate(units)?;
        let Some(reserved) = books.free.split(need.clone()) else {
            books.allocator.free(allocation);
            return None;
        };
        books.used += units;
        let offset = u64::from(allocation.offset) * self.unit;
        let reserved = Some(reserved);
        Some(Space { block: block.clone(), offset, bytes, units, allocation, reserved })
    }

    /// What the ledger gets for the next block, which has room for `bytes`.
    pub(crate) fn next(&self, bytes: u64) -> Need {
        let all: u64 = self.all().iter().map(|block| u64::from(block.units) * self.unit).sum();
        self.sized(all.clamp(FIRST, MOST).max(u64::from(self.units(bytes)) * self.unit))
    }

    fn sized(&self, bytes: u64) -> Need {
        Need::one(LABEL, Category::Padding, bytes.next_multiple_of(self.unit))
    }

    /// Takes a block, and gives a space in it. The block goes again where none fits.
    pub(crate) fn add(&self, value: B, free: Reservation, need: &Need) -> Option<Space<B>> {
        let block = self.block(value, free);
        self.take_in(&block, need)
    }

    fn block(&self, value: B, free: Reservation) -> Arc<Block<B>> {
        let units = u32::try_from(free.bytes() / self.unit).unwrap_or(u32::MAX);
        // Each space may leave a hole before it, and one is behind the last.
        let allocator = Allocator::with_max_allocs(units, 2 * units.min(SPACES) + 2);
        let block = Arc::new(Block { value, units, books: Mutex::new(Books { allocator, used: 0, free }) });
        lock(&self.blocks).push(Arc::downgrade(&block));
        block
    }

    /// Has a space that is written no more be moved from then on, wherever it is useful.
    pub(crate) fn settle(&self, movable: &Arc<Movable<B>>) {
        let mut all = lock(&self.movable);
        all.retain(|movable| movable.strong_count() > 0);
        all.push(Arc::downgrade(movable));
    }

    /// Spaces to move, and with them whole blocks to give back, without any new one: each block whose spaces fit into the others,
    /// the emptiest first.
    pub(crate) fn evacuations(&self) -> Vec<Move<B>> {
        let mut blocks = self.all();
        blocks.sort_by_key(|block| lock(&block.books).used);
        let mut moves = Vec::new();
        // Those behind are fuller; what came out of one stays where it went.
        for at in 0..blocks.len() {
            let (block, others) = (&blocks[at], &blocks[at + 1..]);
            if let Some(some) =
                self.moves(block, |need| others.iter().rev().find_map(|other| self.take_in(other, need)))
            {
                moves.extend(some);
            }
        }
        moves
    }

    /// Blocks of which at most half is used, and what the ledger would get for one that just holds that.
    pub(crate) fn halves(&self) -> Vec<(Arc<Block<B>>, Need)> {
        let halves = self.all().into_iter().filter_map(|block| {
            let used = lock(&block.books).used;
            let movable = self.in_block(&block).is_some();
            (movable && used <= block.units / 2).then(|| {
                let need = self.sized(u64::from(used) * self.unit);
                (block, need)
            })
        });
        halves.collect()
    }

    /// Takes a block for all that `from` has.
    pub(crate) fn replace(&self, from: &Arc<Block<B>>, value: B, free: Reservation) -> Vec<Move<B>> {
        let block = self.block(value, free);
        self.moves(from, |need| self.take_in(&block, need)).unwrap_or_default()
    }

    /// Moves for all spaces of a block, or none.
    fn moves(&self, block: &Arc<Block<B>>, mut take: impl FnMut(&Need) -> Option<Space<B>>) -> Option<Vec<Move<B>>> {
        let moves = self.in_block(block)?.into_iter().map(|(what, from)| {
            let to = Arc::new(take(from.reserved.as_ref()?.need())?);
            Some(Move { what, from, to })
        });
        moves.collect()
    }

    /// All spaces of a block, the largest first; nothing if some may not be moved.
    fn in_block(&self, block: &Arc<Block<B>>) -> Option<Vec<Placed<B>>> {
        let movable: Vec<_> = lock(&self.movable).iter().filter_map(Weak::upgrade).collect();
        let here = movable.into_iter().map(|one| (one.now(), one)).map(|(space, one)| (one, space));
        let mut here: Vec<_> = here.filter(|(_, space)| Arc::ptr_eq(&space.block, block)).collect();
        here.sort_by_key(|(_, space)| Reverse(space.units));
        let used: u32 = here.iter().map(|(_, space)| space.units).sum();
        (used == lock(&block.books).used).then_some(here)
    }

    /// What there is of blocks now.
    pub(crate) fn report(&self) -> PoolReport {
        let mut report = PoolReport::default();
        for block in self.all() {
            let books = lock(&block.books);
            let storage = books.allocator.storage_report();
            let largest = Bytes(u64::from(storage.largest_free_region) * self.unit);
            report.blocks += 1;
            report.bytes.0 += u64::from(block.units) * self.unit;
            report.free.0 += u64::from(storage.total_free_space) * self.unit;
            report.largest = report.largest.max(largest);
        }
        report
    }
}

impl<B> Space<B> {
    /// The block.
    pub(crate) fn value(&self) -> &B {
        &self.block.value
    }

    /// Where it begins there, in bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<B> fmt::Debug for Space<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space").field("offset", &self.offset).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl<B> Drop for Space<B> {
    fn drop(&mut self) {
        let mut books = lock(&self.block.books);
        books.allocator.free(self.allocation);
        books.used -= self.units;
        if let Some(reserved) = self.reserved.take() {
            books.free.join(reserved);
        }
    }
}

impl<B> Movable<B> {
    /// A space that stays where it is until [`Blocks::settle`].
    pub(crate) fn new(space: Space<B>) -> Self {
        Self(Mutex::new(Arc::new(space)))
    }

    /// Where it is now. That place stays as it is for as long as this lives.
    pub(crate) fn now(&self) -> Arc<Space<B>> {
        lock(&self.0).clone()
    }
}

impl<B> Move<B> {
    /// Has it read where it went, once that has its bytes.
    pub(crate) fn done(self) {
        *lock(&self.what.0) = self.to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Ledger;

    const UNIT: u64 = 256;

    fn need(bytes: u64) -> Need {
        Need::one("table", Category::Payload, bytes)
    }

    fn space(blocks: &Blocks<u32>, ledger: &Ledger, bytes: u64) -> Space<u32> {
        let need = need(bytes);
        if let Some(space) = blocks.take(&need) {
            return space;
        }
        let free = ledger.reserve_one(blocks.next(bytes)).unwrap();
        blocks.add(7, free, &need).expect("a new block has room")
    }

    fn movable(blocks: &Blocks<u32>, ledger: &Ledger, bytes: u64) -> Arc<Movable<u32>> {
        let movable = Arc::new(Movable::new(space(blocks, ledger, bytes)));
        blocks.settle(&movable);
        movable
    }

    fn fits(blocks: &Blocks<u32>, ledger: &Ledger, live: &[Arc<Movable<u32>>]) {
        let mut places: Vec<_> = live.iter().map(|one| one.now()).collect();
        places.sort_by_key(|space| (Arc::as_ptr(&space.block) as usize, space.offset));
        for pair in places.windows(2) {
            let apart =
                !Arc::ptr_eq(&pair[0].block, &pair[1].block) || pair[0].offset + pair[0].bytes <= pair[1].offset;
            assert!(apart, "{:?} and {:?}", pair[0], pair[1]);
        }
        let end = |space: &Arc<Space<u32>>| space.offset + space.bytes <= u64::from(space.block.units) * UNIT;
        assert!(places.iter().all(|space| end(space) && space.offset % UNIT == 0));
        let bytes: u64 = places.iter().map(|space| space.bytes).sum();
        assert_eq!(ledger.report().live_at("table"), Bytes(bytes));
        assert_eq!(ledger.report().live, blocks.report().bytes);
    }

    #[test]
    fn what_is_binned_is_found_again() {
        for units in (1..3000).chain([65_535, 65_536, 65_537]) {
            let units = binned(units);
            let mut allocator: Allocator = Allocator::with_max_allocs(3 * units, 16);
            let [first, second] = [0; 2].map(|_| allocator.allocate(units).unwrap());
            allocator.free(first);
            assert_eq!(allocator.allocate(units).unwrap().offset, first.offset, "{units} before {}", second.offset);
        }
    }

    #[test]
    fn a_block_goes_with_its_last_space() {
        let (blocks, ledger) = (Blocks::new(UNIT), Ledger::new(None));
        let first = space(&blocks, &ledger, 1000);
        assert_eq!((first.offset(), first.bytes(), *first.value()), (0, 1000, 7));
        assert_eq!(ledger.report().live, Bytes(FIRST));
        let second = space(&blocks, &ledger, FIRST);
        assert_eq!(ledger.report().live, Bytes(2 * FIRST), "as much as there was");
        assert_eq!((ledger.report().live_at("table"), blocks.report().blocks), (Bytes(1000 + FIRST), 2));
        drop(first);
        assert_eq!(blocks.report().blocks, 1);
        drop(second);
        assert_eq!((ledger.report().live, blocks.report()), (Bytes(0), PoolReport::default()));
    }

    /// A budget may have less left than another block takes: there is none then, and nothing is entered.
    #[test]
    fn a15_blocks_are_within_the_budget() {
        let (blocks, ledger) = (Blocks::<u32>::new(UNIT), Ledger::new(Some(Bytes(FIRST + 1000))));
        let first = space(&blocks, &ledger, FIRST);
        assert!(blocks.take(&need(1)).is_none());
        assert!(ledger.reserve_one(blocks.next(1)).is_err());
        assert_eq!((ledger.report().live, first.offset()), (Bytes(FIRST), 0));
    }

    /// 20,000 tables that come and go in random order, of 1 byte to 300 KB: blocks never overlap, the ledger is exact, and
    /// after compaction at most half of the blocks is free.
    #[test]
    fn a15_churn_keeps_its_bounds() {
        let (blocks, ledger) = (Blocks::new(UNIT), Ledger::new(None));
        let mut live = Vec::new();
        let mut state = 3_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for turn in 0..20_000_u64 {
            // Full and nearly empty by turns.
            let most = if (turn / 5_000).is_multiple_of(2) { 400 } else { 20 };
            if live.len() as u64 <= random(most) {
                let digits = 1 + random(18);
                let bytes = 1 + random(1 << digits);
                live.push(movable(&blocks, &ledger, bytes));
            } else {
                live.swap_remove(usize::try_from(random(live.len() as u64)).unwrap());
            }
            if turn % 2_500 == 0 {
                fits(&blocks, &ledger, &live);
                blocks.evacuations().into_iter().for_each(Move::done);
                for (block, need) in blocks.halves() {
                    let free = ledger.reserve_one(need).unwrap();
                    blocks.replace(&block, 8, free).into_iter().for_each(Move::done);
                }
                fits(&blocks, &ledger, &live);
                let report = blocks.report();
                assert!(report.filled() >= 0.5 || report.bytes.0 <= FIRST, "{report:?}");
            }
        }
        live.clear();
        assert_eq!((ledger.report().live, blocks.report().blocks), (Bytes(0), 0));
    }

    /// What a call holds stays where it was, and its bytes are nobody else's.
    #[test]
    fn what_is_held_stays() {
        let (blocks, ledger) = (Blocks::new(UNIT), Ledger::new(None));
        let [big, small, other] = [FIRST / 4 * 3, 4096, FIRST / 2].map(|bytes| movable(&blocks, &ledger, bytes));
        assert!(Arc::ptr_eq(&big.now().block, &small.now().block) && blocks.report().blocks == 2);
        drop(big);
        let held = small.now();
        blocks.evacuations().into_iter().for_each(Move::done);
        assert!(Arc::ptr_eq(&small.now().block, &other.now().block), "it moved");
        assert_eq!((held.offset(), blocks.report().blocks), (FIRST / 4 * 3, 2), "{held:?}");
        let next = space(&blocks, &ledger, FIRST / 8 * 5);
        assert!(Arc::ptr_eq(&next.block, &held.block) && next.offset() + next.bytes() <= held.offset());
        drop((held, next));
        assert_eq!(blocks.report().blocks, 1);
    }
}
