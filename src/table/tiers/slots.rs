//! Which pages a tier holds, in which of its slots, and which go when others come.
//!
//! A slot's age says how often its page was found since the hand passed by, up to 3. The hand goes round: it takes one from
//! each age that it passes, and stops at a page of age 0 that nobody holds (the generalised clock of Smith, "Sequentiality and
//! prefetching in database systems", 1978). What was read once goes on the hand's next round; what is read often stays.

use std::ops::Range;

/// No slot, or no page.
pub(super) const NONE: u32 = u32::MAX;
/// The most rounds of the hand that a page outlives.
const OLDEST: u8 = 3;

/// Books of a tier.
#[derive(Debug)]
pub(super) struct Slots {
    /// For each page its slot.
    slot_of: Vec<u32>,
    slots: Vec<Slot>,
    /// Slots without a page.
    free: Vec<u32>,
    /// Slots with a page that nobody holds.
    idle: usize,
    hand: usize,
    call: u64,
    pub(super) evictions: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    page: u32,
    /// Calls and leases that hold it.
    held: u32,
    age: u8,
    /// Whether its bytes are still to come.
    loading: bool,
    /// Whether its bytes are of an older version: they are loaded anew before they are used, by whoever needs them first.
    stale: bool,
    /// The last call that found it.
    call: u64,
}

/// What a call got.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Taken {
    /// Slots that it holds, each once.
    pub(super) slots: Vec<u32>,
    /// Pages that it is to load, and their slots, which are among those.
    pub(super) missing: Vec<(u32, u32)>,
    /// Slots that others are loading, with their pages.
    pub(super) awaited: Vec<(u32, u32)>,
}

impl Slots {
    /// `slots` empty ones, for pages below `pages`.
    pub(super) fn new(pages: u32, slots: u32) -> Self {
        let empty = Slot { page: NONE, held: 0, age: 0, loading: false, stale: false, call: 0 };
        Self {
            slot_of: vec![NONE; pages as usize],
            slots: vec![empty; slots as usize],
            // The first slot is taken first, so that neighbours are filled together.
            free: (0..slots).rev().collect(),
            idle: 0,
            hand: 0,
            call: 0,
            evictions: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Slots with a page.
    pub(super) fn used(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The slot of a page that is there.
    pub(super) fn find(&mut self, page: u32) -> Option<u32> {
        let slot = self.slot_of[page as usize];
        let found = self.slots.get_mut(slot as usize).filter(|slot| !slot.stale)?;
        found.age = (found.age + 1).min(OLDEST);
        Some(slot)
    }

    /// A slot for a page that is not there, or of an older version; `None` where all are held.
    pub(super) fn insert(&mut self, page: u32) -> Option<u32> {
        let own = self.slot_of[page as usize];
        if let Some(slot) = self.slots.get_mut(own as usize) {
            slot.stale = false;
            return Some(own);
        }
        let slot = self.free.pop().or_else(|| self.evict())?;
        self.slots[slot as usize] = Slot { page, held: 0, age: 0, loading: false, stale: false, call: 0 };
        self.slot_of[page as usize] = slot;
        self.idle += 1;
        Some(slot)
    }

    fn evict(&mut self) -> Option<u32> {
        while self.idle > 0 {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = &mut self.slots[at];
            if slot.held > 0 || slot.page == NONE {
                continue;
            }
            if slot.age > 0 {
                slot.age -= 1;
                continue;
            }
            self.slot_of[slot.page as usize] = NONE;
            self.idle -= 1;
            self.evictions += 1;
            return u32::try_from(at).ok();
        }
        None
    }

    /// Begins a call, whose pages count once however often it asks for them.
    pub(super) fn begin(&mut self) -> Taken {
        self.call += 1;
        Taken::default()
    }

    /// Holds a page for the call that began last; `None` where it is not there and there is no slot for it.
    pub(super) fn hold(&mut self, page: u32, taken: &mut Taken) -> Option<u32> {
        let mut slot = self.slot_of[page as usize];
        if slot != NONE && self.slots[slot as usize].call == self.call {
            return Some(slot);
        }
        if slot == NONE || self.slots[slot as usize].stale {
            slot = self.insert(page)?;
            self.slots[slot as usize].loading = true;
            taken.missing.push((page, slot));
        } else {
            let found = &mut self.slots[slot as usize];
            found.age = (found.age + 1).min(OLDEST);
            if found.loading {
                taken.awaited.push((page, slot));
            }
        }
        let found = &mut self.slots[slot as usize];
        found.call = self.call;
        self.idle -= usize::from(found.held == 0);
        found.held += 1;
        taken.slots.push(slot);
        Some(slot)
    }

    /// Lets go of what a call or a lease held.
    pub(super) fn release(&mut self, slots: &[u32]) {
        for slot in slots {
            let at = &mut self.slots[*slot as usize];
            at.held -= 1;
            match (at.held, at.page) {
                (0, NONE) => self.free.push(*slot),
                (0, _) => self.idle += 1,
                _ => {}
            }
        }
    }

    /// Ends loads: their bytes are there, or will not come, and then their pages are not there.
    pub(super) fn end(&mut self, loads: &[(u32, u32)], loaded: bool) {
        for (page, slot) in loads {
            let at = &mut self.slots[*slot as usize];
            at.loading = false;
            if !loaded {
                // Held by whoever loads it, and by who awaits it: free once they have let go.
                (at.page, at.stale) = (NONE, false);
                self.slot_of[*page as usize] = NONE;
            }
        }
    }

    /// Lets go of `pages`, of which there is another version: those that a lease holds keep their slots, and are loaded to them
    /// anew. No call is in flight.
    pub(super) fn change(&mut self, pages: impl Iterator<Item = u32>) {
        for page in pages {
            let slot = self.slot_of[page as usize];
            match self.slots.get_mut(slot as usize) {
                Some(at) if at.held > 0 => at.stale = true,
                Some(_) => self.drop_page(slot),
                None => {}
            }
        }
    }

    /// Frees a slot that nobody holds.
    fn drop_page(&mut self, slot: u32) {
        let at = &mut self.slots[slot as usize];
        self.slot_of[at.page as usize] = NONE;
        (at.page, at.stale) = (NONE, false);
        self.free.push(slot);
        self.idle -= 1;
        self.evictions += 1;
    }

    /// Whether the bytes of a page are in its slot: `None` while they are awaited.
    pub(super) fn settled(&self, page: u32, slot: u32) -> Option<bool> {
        let at = &self.slots[slot as usize];
        if at.page != page { Some(false) } else { (!at.loading).then_some(true) }
    }

    /// Lets go of those of `pages` that nobody holds, and says how many those were.
    pub(super) fn forget(&mut self, pages: Range<u32>) -> u64 {
        let held = |slot: &Slot| slot.held > 0 || slot.page == NONE || !pages.contains(&slot.page);
        let gone: Vec<u32> = (0..).zip(&self.slots).filter(|(_, slot)| !held(slot)).map(|(at, _)| at).collect();
        gone.iter().for_each(|slot| self.drop_page(*slot));
        gone.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(slots: &mut Slots, pages: &[u32]) -> Taken {
        let mut taken = slots.begin();
        for page in pages {
            slots.hold(*page, &mut taken).expect("a slot");
        }
        taken
    }

    #[test]
    fn a_page_is_loaded_once_and_held_once_a_call() {
        let mut slots = Slots::new(10, 3);
        let one = take(&mut slots, &[7, 7, 2]);
        assert_eq!((&one.slots[..], &one.missing[..]), (&[0, 1][..], &[(7, 0), (2, 1)][..]));
        let two = take(&mut slots, &[2, 5]);
        assert_eq!((&two.missing[..], &two.awaited[..]), (&[(5, 2)][..], &[(2, 1)][..]));
        assert_eq!(slots.settled(2, 1), None);
        slots.end(&one.missing, true);
        slots.end(&two.missing, true);
        assert_eq!(slots.settled(2, 1), Some(true));
        // All are held: nothing comes in.
        assert_eq!(slots.hold(9, &mut Taken::default()), None);
        slots.release(&one.slots);
        assert_eq!(slots.insert(9), Some(0));
        slots.release(&two.slots);
        assert_eq!((slots.used(), slots.evictions), (3, 1));
    }

    #[test]
    fn a_load_that_failed_leaves_no_page() {
        let mut slots = Slots::new(10, 2);
        let one = take(&mut slots, &[4]);
        let two = take(&mut slots, &[4]);
        slots.end(&one.missing, false);
        assert_eq!(slots.settled(4, 0), Some(false));
        slots.release(&one.slots);
        assert_eq!(slots.used(), 2 - 1);
        slots.release(&two.slots);
        assert_eq!(slots.used(), 0);
        let three = take(&mut slots, &[4]);
        assert_eq!(three.missing, [(4, three.slots[0])]);
    }

    #[test]
    fn what_changed_is_loaded_anew_where_it_is_held() {
        let mut slots = Slots::new(10, 3);
        let lease = take(&mut slots, &[7]);
        let call = take(&mut slots, &[2]);
        slots.end(&lease.missing, true);
        slots.end(&call.missing, true);
        slots.release(&call.slots);
        slots.change([7, 2, 5].into_iter());
        assert_eq!((slots.find(7), slots.find(2), slots.used()), (None, None, 1));
        // Into its own slot, by one call, which others wait for.
        let one = take(&mut slots, &[7]);
        let two = take(&mut slots, &[7]);
        assert_eq!((&one.missing, &two.missing, &two.awaited), (&vec![(7, 0)], &vec![], &vec![(7, 0)]));
        slots.end(&one.missing, true);
        assert_eq!(slots.settled(7, 0), Some(true));
        slots.release(&one.slots);
        slots.release(&two.slots);
        assert_eq!(slots.find(7), Some(0));
        slots.change([7].into_iter());
        // A load that fails takes it from the lease, which has its slot until it ends.
        let three = take(&mut slots, &[7]);
        slots.end(&three.missing, false);
        slots.release(&three.slots);
        assert_eq!((slots.find(7), slots.used()), (None, 1));
        slots.release(&lease.slots);
        assert_eq!(slots.used(), 0);
        // A page that nobody uses, though a lease held it while it changed.
        let lease = take(&mut slots, &[4]);
        slots.end(&lease.missing, true);
        slots.change([4].into_iter());
        slots.release(&lease.slots);
        assert_eq!(slots.find(4), None);
        assert_eq!(slots.insert(4), Some(lease.slots[0]));
        assert_eq!(slots.find(4), Some(lease.slots[0]));
    }

    #[test]
    fn what_is_read_often_stays_and_what_is_read_once_goes() {
        let mut slots = Slots::new(1000, 10);
        for round in 0..100 {
            for page in 0..5 {
                let taken = take(&mut slots, &[page]);
                assert_eq!(taken.missing.is_empty(), round > 0, "page {page} in round {round}");
                slots.end(&taken.missing, true);
                slots.release(&taken.slots);
            }
            let once = take(&mut slots, &[10 + round * 3, 11 + round * 3, 12 + round * 3]);
            slots.end(&once.missing, true);
            slots.release(&once.slots);
        }
    }

    #[test]
    fn any_order_of_calls_keeps_the_books() {
        let mut slots = Slots::new(64, 17);
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut open: Vec<Taken> = Vec::new();
        for _ in 0..100_000 {
            if open.len() > 3 || (random(2) == 0 && !open.is_empty()) {
                let at = usize::try_from(random(open.len() as u64)).unwrap();
                let taken = open.swap_remove(at);
                slots.end(&taken.missing, random(10) > 0);
                slots.release(&taken.slots);
            } else {
                let mut taken = slots.begin();
                for _ in 0..random(6) {
                    let page = u32::try_from(random(64)).unwrap();
                    if let Some(slot) = slots.hold(page, &mut taken) {
                        assert_eq!(slots.slots[slot as usize].page, page);
                    }
                }
                open.push(taken);
            }
            let held = slots.slots.iter().filter(|slot| slot.held > 0).count();
            let idle = slots.slots.iter().filter(|slot| slot.held == 0 && slot.page != NONE).count();
            assert_eq!(idle, slots.idle);
            assert_eq!(held + idle + slots.free.len(), 17);
            let mapped = slots.slot_of.iter().filter(|slot| **slot != NONE).count();
            assert_eq!(mapped, slots.slots.iter().filter(|slot| slot.page != NONE).count());
        }
    }
}
