//! Which row goes when room is needed.

use crate::scheme::NO_ROW;

/// Which rows go where a batch needs room in a table that is full. What it goes by never changes an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Eviction {
    /// Those that were not used for longest. A step takes a time that does not depend on the rows.
    #[default]
    Lru,
    /// Those that were used least often since they were made; of those, the ones that were not used for longest. A step takes a
    /// time that grows with the logarithm of the rows, as with scores.
    Lfu,
    /// Those of the lowest score, which [`DynamicTable::set_scores`](crate::DynamicTable::set_scores) gives and which is 0 before; of
    /// those, the ones that were not used for longest.
    Score,
    /// None: a batch that needs more room than there is fails, and changes nothing.
    Refuse,
}

/// The slots in use, in the order in which they would go.
#[derive(Debug)]
pub(super) enum Order {
    Recent(Recent),
    Ranked(Ranked),
    /// Nothing goes.
    Kept,
}

impl Order {
    /// Bytes of a slot.
    pub(super) fn bytes(eviction: Eviction) -> u64 {
        match eviction {
            Eviction::Lru => 8,
            Eviction::Lfu | Eviction::Score => 24,
            Eviction::Refuse => 0,
        }
    }

    /// For slots under `capacity`, of which none is in use; `None` where memory is short.
    pub(super) fn new(eviction: Eviction, capacity: usize) -> Option<Self> {
        Some(match eviction {
            Eviction::Lru => Self::Recent(Recent {
                newer: filled(capacity, NO_ROW)?,
                older: filled(capacity, NO_ROW)?,
                newest: NO_ROW,
                oldest: NO_ROW,
            }),
            Eviction::Lfu | Eviction::Score => {
                let mut heap = Vec::new();
                heap.try_reserve_exact(capacity).ok()?;
                let counts = eviction == Eviction::Lfu;
                let (places, ranks) = (filled(capacity, NO_ROW)?, filled(capacity, (0, 0))?);
                Self::Ranked(Ranked { counts, heap, places, ranks, time: 0 })
            }
            Eviction::Refuse => Self::Kept,
        })
    }

    /// Takes a slot that was not in use.
    pub(super) fn add(&mut self, slot: u32) {
        match self {
            Self::Recent(recent) => recent.add(slot),
            Self::Ranked(ranked) => ranked.add(slot),
            Self::Kept => {}
        }
    }

    /// Notes that a slot was used.
    pub(super) fn touch(&mut self, slot: u32) {
        match self {
            Self::Recent(recent) => {
                recent.remove(slot);
                recent.add(slot);
            }
            Self::Ranked(ranked) => {
                let (first, _) = ranked.ranks[slot as usize];
                ranked.change(slot, if ranked.counts { first + 1 } else { first });
            }
            Self::Kept => {}
        }
    }

    /// Gives a slot another score.
    pub(super) fn score(&mut self, slot: u32, score: f32) {
        if let Self::Ranked(ranked) = self {
            ranked.change(slot, ordered(score));
        }
    }

    /// Lets go of a slot.
    pub(super) fn remove(&mut self, slot: u32) {
        match self {
            Self::Recent(recent) => recent.remove(slot),
            Self::Ranked(ranked) => ranked.remove(slot),
            Self::Kept => {}
        }
    }

    /// Takes out the `count` slots that go first among those that may; there are as many.
    pub(super) fn take(&mut self, count: usize, may_go: impl Fn(u32) -> bool) -> Vec<u32> {
        match self {
            Self::Recent(recent) => recent.take(count, may_go),
            Self::Ranked(ranked) => ranked.take(count, may_go),
            Self::Kept => Vec::new(),
        }
    }

    /// Makes room for slots under `capacity`; `None` where memory is short.
    pub(super) fn grow(&mut self, capacity: usize) -> Option<()> {
        match self {
            Self::Recent(Recent { newer, older, .. }) => {
                grow(newer, capacity, NO_ROW)?;
                grow(older, capacity, NO_ROW)
            }
            Self::Ranked(Ranked { heap, places, ranks, .. }) => {
                heap.try_reserve_exact(capacity - heap.len()).ok()?;
                grow(places, capacity, NO_ROW)?;
                grow(ranks, capacity, (0, 0))
            }
            Self::Kept => Some(()),
        }
    }
}

/// Items up to `count` of them; `None` where memory is short.
pub(super) fn grow<T: Clone>(items: &mut Vec<T>, count: usize, item: T) -> Option<()> {
    items.try_reserve_exact(count.saturating_sub(items.len())).ok()?;
    items.resize(count, item);
    Some(())
}

/// `count` items; `None` where memory is short.
pub(super) fn filled<T: Clone>(count: usize, item: T) -> Option<Vec<T>> {
    let mut items = Vec::new();
    items.try_reserve_exact(count).ok()?;
    items.resize(count, item);
    Some(items)
}

/// A list through all slots in use, from the one that was used last to the one that was not for longest.
#[derive(Debug)]
pub(super) struct Recent {
    newer: Vec<u32>,
    older: Vec<u32>,
    newest: u32,
    oldest: u32,
}

impl Recent {
    fn add(&mut self, slot: u32) {
        let second = std::mem::replace(&mut self.newest, slot);
        self.older[slot as usize] = second;
        self.newer[slot as usize] = NO_ROW;
        match second {
            NO_ROW => self.oldest = slot,
            second => self.newer[second as usize] = slot,
        }
    }

    fn remove(&mut self, slot: u32) {
        let (newer, older) = (self.newer[slot as usize], self.older[slot as usize]);
        match newer {
            NO_ROW => self.newest = older,
            newer => self.older[newer as usize] = older,
        }
        match older {
            NO_ROW => self.oldest = newer,
            older => self.newer[older as usize] = newer,
        }
    }

    fn take(&mut self, count: usize, may_go: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut taken = Vec::with_capacity(count);
        let mut slot = self.oldest;
        while slot != NO_ROW && taken.len() < count {
            let newer = self.newer[slot as usize];
            if may_go(slot) {
                self.remove(slot);
                taken.push(slot);
            }
            slot = newer;
        }
        taken
    }
}

/// A binary heap of all slots in use, the one that goes first on top, which knows where each slot is.
#[derive(Debug)]
pub(super) struct Ranked {
    /// Whether ranks count uses.
    counts: bool,
    heap: Vec<u32>,
    places: Vec<u32>,
    /// Uses or score, and when it was used last.
    ranks: Vec<(u64, u64)>,
    time: u64,
}

impl Ranked {
    fn add(&mut self, slot: u32) {
        let first = if self.counts { 1 } else { ordered(0.0) };
        self.ranks[slot as usize] = (first, self.now());
        self.heap.push(slot);
        self.up(self.heap.len() - 1);
    }

    fn change(&mut self, slot: u32, first: u64) {
        self.ranks[slot as usize] = (first, self.now());
        let at = self.places[slot as usize] as usize;
        self.up(at);
        self.down(self.places[slot as usize] as usize);
    }

    fn remove(&mut self, slot: u32) {
        let at = self.places[slot as usize] as usize;
        let Some(last) = self.heap.pop() else { return };
        if last != slot {
            self.put(at, last);
            self.up(at);
            self.down(self.places[last as usize] as usize);
        }
    }

    fn take(&mut self, count: usize, may_go: impl Fn(u32) -> bool) -> Vec<u32> {
        // Those that may not are set aside, and come back with the ranks that they have.
        let (mut taken, mut aside) = (Vec::with_capacity(count), Vec::new());
        while let Some(&slot) = self.heap.first().filter(|_| taken.len() < count) {
            self.remove(slot);
            if may_go(slot) { taken.push(slot) } else { aside.push(slot) }
        }
        for slot in aside {
            self.heap.push(slot);
            self.up(self.heap.len() - 1);
        }
        taken
    }

    fn now(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    fn put(&mut self, at: usize, slot: u32) {
        self.heap[at] = slot;
        // There are fewer slots than 2^32.
        self.places[slot as usize] = u32::try_from(at).unwrap_or(NO_ROW);
    }

    fn rank(&self, at: usize) -> (u64, u64) {
        self.ranks[self.heap[at] as usize]
    }

    fn up(&mut self, mut at: usize) {
        let slot = self.heap[at];
        while at > 0 && self.ranks[slot as usize] < self.rank((at - 1) / 2) {
            self.put(at, self.heap[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        self.put(at, slot);
    }

    fn down(&mut self, mut at: usize) {
        let slot = self.heap[at];
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < self.heap.len() && self.rank(child + 1) < self.rank(child) {
                child += 1;
            }
            if child >= self.heap.len() || self.ranks[slot as usize] <= self.rank(child) {
                break;
            }
            self.put(at, self.heap[child]);
            at = child;
        }
        self.put(at, slot);
    }
}

/// A number that is in the order of finite scores; those of 0 and -0 are one.
fn ordered(score: f32) -> u64 {
    let bits = (score + 0.0).to_bits();
    u64::from(if bits >> 31 == 1 { !bits } else { bits | 1 << 31 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_keep_their_order() {
        let scores = [f32::MIN, -1.5, -1e-45, 0.0, 1e-45, 0.1, 2.0, f32::MAX];
        assert!(scores.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
        assert_eq!(ordered(-0.0), ordered(0.0));
    }
}
