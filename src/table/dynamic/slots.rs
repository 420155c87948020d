//! Which rows there are, and where: ids and their slots, and who makes room for whom.

use super::{
    eviction::{Eviction, Order, filled, grow},
    map::Map,
};
use crate::{error::DynamicError, scheme::NO_ROW};

/// Ids, each with the number of its row.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) map: Map,
    eviction: Eviction,
    order: Order,
    /// The id of each slot in use.
    ids: Vec<u64>,
    /// Slots that are not in use; the last is taken first.
    free: Vec<u32>,
    /// The last batch that named each slot.
    named: Vec<u32>,
    batch: u32,
    /// Ids that went since they were asked for last, in that order; `None` where nobody will ask.
    evicted: Option<Vec<u64>>,
    pub(super) counts: Counts,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) evictions: u64,
}

/// The slots of a batch.
#[derive(Debug)]
pub(super) struct Admitted {
    /// One for each id.
    pub(super) slots: Vec<u32>,
    /// Ids that were given a slot, which has no row of theirs yet; each once.
    pub(super) made: Vec<(u64, u32)>,
}

impl Slots {
    /// Bytes for so many slots.
    pub(super) fn bytes(capacity: u32, eviction: Eviction) -> u64 {
        // Ids, free slots, batches.
        Map::bytes(capacity) + u64::from(capacity) * (8 + 4 + 4 + Order::bytes(eviction))
    }

    /// None in use; `None` where memory is short.
    pub(super) fn new(capacity: u32, eviction: Eviction, copied: bool, report: bool) -> Option<Self> {
        let count = capacity as usize;
        let mut free = filled(count, 0)?;
        free.iter_mut().zip((0..capacity).rev()).for_each(|(free, slot)| *free = slot);
        Some(Self {
            map: Map::new(capacity, copied)?,
            eviction,
            order: Order::new(eviction, count)?,
            ids: filled(count, 0)?,
            free,
            named: filled(count, 0)?,
            batch: 0,
            evicted: report.then(Vec::new),
            counts: Counts::default(),
        })
    }

    /// Rows that there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.ids.len()
    }

    /// Rows that there are.
    pub(super) fn len(&self) -> usize {
        self.ids.len() - self.free.len()
    }

    /// New rows that a batch may make.
    pub(super) fn room(&self) -> usize {
        if self.eviction == Eviction::Refuse { self.free.len() } else { self.capacity() }
    }

    /// Ids that went since this was asked last.
    pub(super) fn take_evicted(&mut self) -> Vec<u64> {
        self.evicted.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Begins a batch, of which no slot has been named.
    fn begin(&mut self) {
        self.batch = self.batch.wrapping_add(1);
        if self.batch == 0 {
            self.named.fill(0);
            self.batch = 1;
        }
    }

    /// Notes that the batch names a slot, and says whether it had not before.
    fn name(&mut self, slot: u32) -> bool {
        std::mem::replace(&mut self.named[slot as usize], self.batch) != self.batch
    }

    /// Gives every id of a batch a slot. Where there is no room, other ids go, none of which the batch names.
    ///
    /// # Errors
    /// [`DynamicError::TooManyIds`], [`DynamicError::Full`]; no id goes or comes then.
    pub(super) fn admit(&mut self, table: &str, ids: &[u64]) -> Result<Admitted, DynamicError> {
        self.begin();
        let mut present = 0;
        let (mut slots, mut missing) = (self.map.find_all(ids), Vec::new());
        for (id, slot) in ids.iter().zip(&slots) {
            if *slot == NO_ROW {
                missing.push(*id);
            } else {
                present += usize::from(self.name(*slot));
            }
        }
        let hits = ids.len() - missing.len();
        missing.sort_unstable();
        missing.dedup();
        self.make_room(table, present, missing.len())?;
        self.counts.hits += hits as u64;
        self.counts.misses += (ids.len() - hits) as u64;

        let mut made = Vec::with_capacity(missing.len());
        for (id, slot) in ids.iter().zip(&mut slots) {
            if *slot != NO_ROW {
                self.order.touch(*slot);
            } else if let Some(there) = self.map.find(*id) {
                *slot = there;
                self.order.touch(there);
            } else {
                let Some(free) = self.free.pop() else { unreachable!("room was made for all ids of the batch") };
                self.map.insert(*id, free);
                self.ids[free as usize] = *id;
                self.order.add(free);
                made.push((*id, free));
                *slot = free;
            }
        }
        Ok(Admitted { slots, made })
    }

    /// Makes room for `new` ids, where the batch has named `present` slots.
    fn make_room(&mut self, table: &str, present: usize, new: usize) -> Result<(), DynamicError> {
        let (capacity, distinct) = (self.capacity() as u64, (present + new) as u64);
        if distinct > capacity {
            return Err(DynamicError::TooManyIds { table: table.to_owned(), distinct, capacity });
        }
        let Some(short) = new.checked_sub(self.free.len()).filter(|short| *short > 0) else { return Ok(()) };
        if self.eviction == Eviction::Refuse {
            let (new, free) = (new as u64, self.free.len() as u64);
            return Err(DynamicError::Full { table: table.to_owned(), new, free, capacity });
        }
        let (named, batch) = (&self.named, self.batch);
        let gone = self.order.take(short, |slot| named[slot as usize] != batch);
        debug_assert_eq!(gone.len(), short, "the slots that the batch does not name are enough");
        self.counts.evictions += gone.len() as u64;
        for slot in gone {
            let id = self.ids[slot as usize];
            self.map.remove(id);
            self.free.push(slot);
            if let Some(evicted) = &mut self.evicted {
                evicted.push(id);
            }
        }
        Ok(())
    }

    /// The slots of `ids`, [`NO_ROW`] for those that have none.
    pub(super) fn find(&mut self, ids: &[u64], use_them: bool) -> Vec<u32> {
        let slots = self.map.find_all(ids);
        if use_them {
            for slot in slots.iter().filter(|slot| **slot != NO_ROW) {
                self.order.touch(*slot);
                self.counts.hits += 1;
            }
            self.counts.misses += slots.iter().filter(|slot| **slot == NO_ROW).count() as u64;
        }
        slots
    }

    /// The positions whose values stay where a batch names slots several times: the last of each, with the slot.
    pub(super) fn last_of_each(&mut self, slots: &[u32]) -> Vec<(u32, usize)> {
        self.begin();
        let mut last = Vec::with_capacity(slots.len());
        for (position, slot) in slots.iter().enumerate().rev() {
            if self.name(*slot) {
                last.push((*slot, position));
            }
        }
        last
    }

    /// Takes ids out, and says how many had a row.
    pub(super) fn remove(&mut self, ids: impl Iterator<Item = u64>) -> usize {
        let mut removed = 0;
        for slot in ids.filter_map(|id| self.map.remove(id)) {
            self.order.remove(slot);
            self.free.push(slot);
            removed += 1;
        }
        removed
    }

    /// Takes all ids out.
    pub(super) fn clear(&mut self) {
        for (_, slot) in self.map.iter() {
            self.order.remove(slot);
        }
        self.map.clear();
        let slots = (0..).take(self.ids.len());
        self.free.clear();
        self.free.extend(slots);
        self.free.reverse();
    }

    /// Gives ids that have rows other scores, and says how many those are.
    pub(super) fn score(&mut self, ids: &[u64], scores: &[f32]) -> usize {
        let mut found = 0;
        for (id, score) in ids.iter().zip(scores) {
            if let Some(slot) = self.map.find(*id) {
                self.order.score(slot, *score);
                found += 1;
            }
        }
        found
    }

    /// Makes room for more slots; `None`, and no room, where memory is short.
    pub(super) fn grow(&mut self, capacity: u32, copied: bool) -> Option<()> {
        let (count, old) = (capacity as usize, self.ids.len());
        let mut map = Map::new(capacity, copied)?;
        self.order.grow(count)?;
        grow(&mut self.named, count, 0)?;
        self.free.try_reserve_exact(count - self.free.len()).ok()?;
        grow(&mut self.ids, count, 0)?;
        for (id, slot) in self.map.iter() {
            map.insert(id, slot);
        }
        self.map = map;
        // The first of the new ones is taken first.
        let first = u32::try_from(old).unwrap_or(NO_ROW);
        self.free.splice(0..0, (first..capacity).rev());
        Some(())
    }
}
