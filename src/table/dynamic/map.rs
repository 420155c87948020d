//! Which slot an id has: open addressing, whose array is what a device searches too (`shaders/dynamic/find.wgsl`).
//!
//! ```text
//! bucket: U32 low word of the id | U32 high word | U32 slot, or 0xffffffff for a bucket that is empty
//! an id's first bucket is murmur3(id, seed) mod buckets; where that has another id, the next one is tried, and so on
//! ```
//! What says that a bucket is empty is its slot, so that every id is one like any other. Half of the buckets are empty at
//! least, and a bucket that is given up is filled from behind (Knuth, The Art of Computer Programming, 6.4, algorithm R), so that
//! searches end after a few buckets, and no trace of ids that are gone is left.

use bytemuck::{Pod, Zeroable};

use super::eviction::filled;
use crate::{
    raw::prefetch,
    scheme::{NO_ROW, murmur3},
};

/// One bucket.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Bucket {
    low: u32,
    high: u32,
    slot: u32,
}

const EMPTY: Bucket = Bucket { low: 0, high: 0, slot: NO_ROW };

/// Buckets for each slot.
const SPARE: u64 = 2;

/// Buckets that an id may be away from its first. Half full, of 2^31 buckets, a run of as many has a chance of under 2^-100; where
/// ids are chosen to collide, another seed parts them.
const FARTHEST: usize = 1024;

/// Ids whose buckets are asked for ahead.
const AHEAD: usize = 16;

/// Seeds that are tried at a time.
const SEEDS: u32 = 16;

impl Bucket {
    #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
    fn new(id: u64, slot: u32) -> Self {
        Self { low: id as u32, high: (id >> 32) as u32, slot }
    }

    fn id(self) -> u64 {
        u64::from(self.low) | u64::from(self.high) << 32
    }

    fn is_empty(self) -> bool {
        self.slot == NO_ROW
    }
}

/// Slots by id.
#[derive(Debug)]
pub(super) struct Map {
    buckets: Vec<Bucket>,
    /// As many.
    count: u32,
    seed: u32,
    /// The most that any id has been away from its first bucket.
    farthest: usize,
    /// Buckets that changed since a device's copy of them was brought up to date; `None` where there is no copy.
    changed: Option<Changed>,
}

/// What of the buckets a device's copy lacks.
#[derive(Debug)]
pub(super) enum Changed {
    /// These; one may be named several times.
    Some(Vec<u32>),
    /// Any may have.
    All,
}

impl Map {
    /// Bytes for so many slots.
    pub(super) fn bytes(capacity: u32) -> u64 {
        u64::from(capacity) * SPARE * size_of::<Bucket>() as u64
    }

    /// No id, and room for `capacity` of them, which is at least 1; `None` where memory is short.
    pub(super) fn new(capacity: u32, copied: bool) -> Option<Self> {
        let count = u32::try_from(u64::from(capacity) * SPARE).ok()?;
        let buckets = filled(count as usize, EMPTY)?;
        Some(Self { buckets, count, seed: 0, farthest: 0, changed: copied.then_some(Changed::All) })
    }

    /// What the hash begins with.
    pub(super) fn seed(&self) -> u32 {
        self.seed
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Buckets that any id may be in, from its first on.
    pub(super) fn turns(&self) -> u32 {
        u32::try_from(self.farthest + 1).unwrap_or(u32::MAX)
    }

    /// All buckets, in order.
    pub(super) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Ids and their slots, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.buckets.iter().filter(|bucket| !bucket.is_empty()).map(|bucket| (bucket.id(), bucket.slot))
    }

    fn first(&self, id: u64) -> usize {
        (murmur3(id, self.seed) % self.count) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.buckets.len() { 0 } else { at + 1 }
    }

    /// How far a bucket is behind an id's first one.
    fn distance(&self, id: u64, at: usize) -> usize {
        let first = self.first(id);
        if at >= first { at - first } else { at + self.buckets.len() - first }
    }

    fn change(&mut self, at: usize, bucket: Bucket) {
        self.buckets[at] = bucket;
        if let Some(Changed::Some(changed)) = &mut self.changed {
            if changed.len() * 4 >= self.buckets.len() {
                self.changed = Some(Changed::All);
            } else {
                changed.push(u32::try_from(at).unwrap_or(u32::MAX));
            }
        }
    }

    /// Where the id is, or the empty bucket where it would be. Half of the buckets are empty, so there is one.
    fn search(&self, id: u64) -> Result<usize, usize> {
        let wanted = Bucket::new(id, 0);
        let mut at = self.first(id);
        loop {
            let bucket = self.buckets[at];
            if bucket.is_empty() {
                return Err(at);
            }
            if bucket.low == wanted.low && bucket.high == wanted.high {
                return Ok(at);
            }
            at = self.next(at);
        }
    }

    /// The slot of an id.
    pub(super) fn find(&self, id: u64) -> Option<u32> {
        self.search(id).ok().map(|at| self.buckets[at].slot)
    }

    /// The slot of each of `ids`, [`NO_ROW`] for those that have none. The buckets of ids further on are on their way meanwhile.
    pub(super) fn find_all(&self, ids: &[u64]) -> Vec<u32> {
        let mut slots = Vec::with_capacity(ids.len());
        for (position, id) in ids.iter().enumerate() {
            if let Some(next) = ids.get(position + AHEAD) {
                prefetch(&bytemuck::bytes_of(&self.buckets[self.first(*next)])[0]);
            }
            slots.push(self.find(*id).unwrap_or(NO_ROW));
        }
        slots
    }

    /// Adds an id that is not there, for which there is room.
    pub(super) fn insert(&mut self, id: u64, slot: u32) {
        let Err(at) = self.search(id) else { unreachable!("the id is there already") };
        self.change(at, Bucket::new(id, slot));
        self.farthest = self.farthest.max(self.distance(id, at));
        if self.farthest > FARTHEST {
            self.reseed();
        }
    }

    /// Takes an id out, and gives the slot that it had.
    pub(super) fn remove(&mut self, id: u64) -> Option<u32> {
        let mut hole = self.search(id).ok()?;
        let slot = self.buckets[hole].slot;
        let mut at = hole;
        loop {
            at = self.next(at);
            let bucket = self.buckets[at];
            if bucket.is_empty() {
                break;
            }
            // It may come forward where that is not before its first bucket.
            let gap = if at >= hole { at - hole } else { at + self.buckets.len() - hole };
            if self.distance(bucket.id(), at) >= gap {
                self.change(hole, bucket);
                hole = at;
            }
        }
        self.change(hole, EMPTY);
        Some(slot)
    }

    /// Takes all ids out.
    pub(super) fn clear(&mut self) {
        self.buckets.fill(EMPTY);
        self.farthest = 0;
        self.all_changed();
    }

    /// Spreads all ids by other seeds until none is far from its first bucket, so that kernels have few to look at. There is such a
    /// seed soon, as no more than pairs of ids collide in murmur3 under every one.
    fn reseed(&mut self) {
        let all: Vec<Bucket> = self.buckets.iter().copied().filter(|bucket| !bucket.is_empty()).collect();
        for _ in 0..SEEDS {
            self.seed = self.seed.wrapping_add(0x9e37_79b9);
            self.buckets.fill(EMPTY);
            self.farthest = 0;
            for bucket in &all {
                let Err(at) = self.search(bucket.id()) else { unreachable!("ids are there once") };
                self.buckets[at] = *bucket;
                self.farthest = self.farthest.max(self.distance(bucket.id(), at));
            }
            if self.farthest <= FARTHEST {
                break;
            }
        }
        self.all_changed();
    }

    /// A device's copy is of no use.
    pub(super) fn all_changed(&mut self) {
        if self.changed.is_some() {
            self.changed = Some(Changed::All);
        }
    }

    /// What a device's copy lacks, which is about to be brought up to date; each bucket is named once.
    pub(super) fn take_changed(&mut self) -> Changed {
        let Some(changed) = &mut self.changed else { return Changed::Some(Vec::new()) };
        let mut taken = std::mem::replace(changed, Changed::Some(Vec::new()));
        if let Changed::Some(buckets) = &mut taken {
            buckets.sort_unstable();
            buckets.dedup();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// A02.
    #[test]
    fn a02_every_key_is_ordinary() {
        let keys = [5, 5 + (1 << 32), 1 << 63, u64::MAX, u64::MAX - 1, 0];
        let mut map = Map::new(6, true).unwrap();
        for (id, slot) in keys.into_iter().zip(0..) {
            assert_eq!(map.find(id), None);
            map.insert(id, slot);
        }
        for (id, slot) in keys.into_iter().zip(0..) {
            assert_eq!(map.find(id), Some(slot));
        }
        let mut all: Vec<_> = map.iter().collect();
        all.sort_unstable_by_key(|(_, slot)| *slot);
        assert_eq!(all, keys.into_iter().zip(0..).collect::<Vec<_>>());
        for (id, slot) in keys.into_iter().zip(0..) {
            assert_eq!((map.remove(id), map.find(id)), (Some(slot), None));
        }
        assert!(map.buckets().iter().all(|bucket| *bucket == EMPTY));
    }

    #[test]
    fn a_million_steps_beside_std() {
        for capacity in [1, 3, 17, 1000] {
            let (mut map, mut model) = (Map::new(capacity, true).unwrap(), HashMap::new());
            let mut random = 7_u64;
            for step in 0..250_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let id = (random >> 33) % (u64::from(capacity) * 2) * 0x1_0000_0001;
                match model.get(&id) {
                    Some(slot) if random & (1 << 20) == 0 => {
                        assert_eq!(map.remove(id), Some(*slot));
                        model.remove(&id);
                    }
                    None if model.len() < capacity as usize => {
                        map.insert(id, step);
                        model.insert(id, step);
                    }
                    slot => assert_eq!(map.find(id), slot.copied()),
                }
                if step % 4096 == 0 {
                    assert_eq!(map.iter().collect::<HashMap<_, _>>(), model);
                }
            }
        }
    }

    /// What a copy lacks is told: one that takes what changed is the array.
    #[test]
    fn a_copy_follows() {
        let mut map = Map::new(100, true).unwrap();
        let mut copy = Vec::new();
        for step in 0..3000_u64 {
            let id = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57;
            match map.find(id) {
                Some(_) => drop(map.remove(id)),
                None if map.iter().count() < 100 => map.insert(id, 1),
                None => {}
            }
            if step % 7 == 0 {
                match map.take_changed() {
                    Changed::All => copy = map.buckets().to_vec(),
                    Changed::Some(changed) => {
                        changed.iter().for_each(|at| copy[*at as usize] = map.buckets()[*at as usize]);
                    }
                }
                assert_eq!(copy, map.buckets());
            }
        }
    }

    /// Ids that were looked for because they collide: another seed parts them.
    #[test]
    fn ids_that_collide_are_spread_by_another_seed() {
        let capacity = 4096;
        let mut map = Map::new(capacity, true).unwrap();
        let near = |id: &u64| murmur3(*id, 0) % (capacity * 2) < 4;
        let ids: Vec<u64> = (0..).filter(near).take(2000).collect();
        for (id, slot) in ids.iter().zip(0..) {
            map.insert(*id, slot);
        }
        assert_ne!(map.seed(), 0);
        for (id, slot) in ids.iter().zip(0..) {
            assert_eq!(map.find(*id), Some(slot));
            assert!(map.distance(*id, map.search(*id).unwrap()) <= FARTHEST);
        }
    }
}
