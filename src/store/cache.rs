//! Which shards are there: loaded once however many ask, let go by age, never while somebody uses them.
//!
//! ```text
//!            acquire                load done               last user gone
//!   absent ----------> loading ----------------> resident ----------------> resident, in the order of its last use
//!      ^                  | failed, or all who wait have gone                         |
//!      +------------------+-----------------------------------------------------------+ evicted
//! ```
//! A call gets all shards that it asks for or waits without holding one, so that calls never wait for each other's. Bytes are
//! counted from the moment a load begins. A load runs in the calls that wait for it: there is no thread.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use event_listener::{Event, EventListener};
use futures_util::future::{Either, FutureExt, Shared, ready, try_join_all};

use super::{Boxed, Residency};
use crate::{error::ShardError, memory::Spare, units::Bytes};

type Load<S> = Boxed<'static, Result<S, ShardError>>;

/// What shards are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// By ids: what was used last stays longest.
    Lookup,
    /// All rows in order: what is loaded for that goes first, and does not push out what lookups use.
    Scan,
    /// As a lookup's, for longer than any call: nobody waits for its end.
    Lease,
}

/// The shards of one table.
pub(crate) struct Cache<S> {
    state: Mutex<State<S>>,
    /// Something ended that others may wait for.
    changed: Event,
    budget: u64,
    at_once: usize,
}

struct State<S> {
    slots: Vec<Slot<S>>,
    /// Bytes of the shards that leases hold.
    leased: u64,
    /// Resident shards that nobody uses, the first to go first.
    idle: BTreeMap<i64, usize>,
    idle_bytes: u64,
    newest: i64,
    oldest: i64,
    /// Of shards that are resident or on their way.
    bytes: u64,
    /// Loads that run.
    running: usize,
    /// Loads begun: their numbers tell a shard's loads apart.
    begun: u64,
    counts: Residency,
}

/// The age of a shard that was loaded for a lookup, and not used yet.
const UNUSED: i64 = 0;

struct Slot<S> {
    bytes: u64,
    /// Calls that use it or wait for it, and leases.
    users: usize,
    /// Leases.
    leases: usize,
    /// When it was used last: its place among the idle.
    age: i64,
    place: Place<S>,
}

enum Place<S> {
    Absent,
    Loading(u64, Shared<Load<S>>),
    Resident(S),
}

/// What becomes of a call that asks for shards.
enum Admission<S> {
    Begun(Vec<Begun<S>>),
    /// Calls hold what it needs.
    Wait(EventListener),
    /// Leases do, of so many bytes.
    Busy(u64),
}

/// What a call that was admitted found.
enum Begun<S> {
    Resident(S),
    Loading(u64, Shared<Load<S>>),
}

/// Shards that stay where they are until this is dropped.
pub(crate) struct Held<S: Clone> {
    cache: Arc<Cache<S>>,
    shards: Vec<usize>,
    values: Vec<S>,
    purpose: Use,
}

impl<S: Clone> Held<S> {
    /// The shards, in the order in which they were asked for.
    pub(crate) fn values(&self) -> &[S] {
        &self.values
    }
}

impl<S: Clone> Held<S> {
    /// Keeps them where they are, and not alive beyond that: what changes is let go.
    pub(crate) fn without_values(mut self) -> Self {
        self.values.clear();
        self
    }
}

impl<S: Clone> Drop for Held<S> {
    fn drop(&mut self) {
        self.values.clear();
        let mut gone = Vec::new();
        let mut state = self.cache.lock();
        for &shard in &self.shards {
            gone.extend(state.leave(shard, Some(self.purpose)));
        }
        drop(state);
        self.cache.changed.notify(usize::MAX);
    }
}

/// A place among the loads that run.
pub(crate) struct Running<S: Clone>(Arc<Cache<S>>);

impl<S: Clone> Drop for Running<S> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.changed.notify(usize::MAX);
    }
}

impl<S: Clone> Cache<S> {
    /// For shards of so many bytes, of which `budget` may be there, and `at_once` on their way.
    pub(crate) fn new(bytes: impl Iterator<Item = u64>, budget: u64, at_once: usize) -> Self {
        let slots: Vec<_> =
            bytes.map(|bytes| Slot { bytes, users: 0, leases: 0, age: UNUSED, place: Place::Absent }).collect();
        let all = Bytes(slots.iter().map(|slot| slot.bytes).sum());
        let counts = Residency { shards: slots.len(), bytes: all, ..Residency::default() };
        let state = State {
            slots,
            leased: 0,
            idle: BTreeMap::new(),
            idle_bytes: 0,
            newest: 0,
            oldest: 0,
            bytes: 0,
            running: 0,
            begun: 0,
            counts,
        };
        Self { state: Mutex::new(state), changed: Event::new(), budget, at_once: at_once.max(1) }
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        // The state is whole after each method of it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that may be there beside what leases hold.
    pub(crate) fn room(&self) -> u64 {
        self.budget.saturating_sub(self.lock().leased)
    }

    /// Gives all of `shards`, each named once, after those that are not there were loaded by what `load` makes. They must fit
    /// the budget together; `busy` is the error where leases leave too little of it, of the bytes of both.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        shards: Vec<usize>,
        purpose: Use,
        load: impl Fn(usize) -> Load<S>,
        busy: impl FnOnce(Bytes, Bytes) -> ShardError,
    ) -> Result<Held<S>, ShardError> {
        let begun = loop {
            match self.begin(&shards, purpose, &load) {
                Admission::Begun(begun) => break begun,
                Admission::Wait(changed) => changed.await,
                Admission::Busy(leased) => return Err(busy(Bytes(leased), Bytes(self.budget))),
            }
        };
        let mut held = Held { cache: self.clone(), shards, values: Vec::new(), purpose };
        let loads = held.shards.iter().zip(begun).map(|(shard, begun)| match begun {
            Begun::Resident(value) => Either::Left(ready(Ok(value))),
            Begun::Loading(number, load) => Either::Right(self.settle(*shard, number, load)),
        });
        held.values = try_join_all(loads.collect::<Vec<_>>()).await?;
        Ok(held)
    }

    /// Begins what a call needs, or says what to wait for before the next try.
    fn begin(&self, shards: &[usize], purpose: Use, load: impl Fn(usize) -> Load<S>) -> Admission<S> {
        let mut state = self.lock();
        if state.admit(shards, self.budget) {
            return Admission::Begun(state.begin(shards, purpose, load));
        }
        let leased = state.leased_beside(shards);
        if leased.saturating_add(state.bytes_of(shards)) > self.budget {
            return Admission::Busy(leased);
        }
        // Before the lock is let go, so that no change is missed.
        Admission::Wait(self.changed.listen())
    }

    /// Waits for a load and notes what became of it.
    async fn settle(self: &Arc<Self>, shard: usize, number: u64, load: Shared<Load<S>>) -> Result<S, ShardError> {
        let result = load.await;
        let mut state = self.lock();
        let begun = state.end(shard, number, &result);
        drop(state);
        drop(begun);
        if result.is_err() {
            self.changed.notify(usize::MAX);
        }
        result
    }

    /// Waits until one more load may run.
    pub(crate) async fn running(self: Arc<Self>) -> Running<S> {
        while let Err(changed) = self.run() {
            changed.await;
        }
        Running(self)
    }

    fn run(&self) -> Result<(), EventListener> {
        let mut state = self.lock();
        if state.running >= self.at_once {
            return Err(self.changed.listen());
        }
        state.running += 1;
        Ok(())
    }

    /// Lets go of those of `shards` that nobody uses, and says how many bytes they had.
    pub(crate) fn evict(&self, shards: impl Iterator<Item = usize>) -> u64 {
        let mut state = self.lock();
        let gone = shards.map(|shard| state.evict(shard)).sum();
        drop(state);
        self.changed.notify(usize::MAX);
        gone
    }

    /// Lets go of `shards`, of which there is another version, whoever holds them: who does finds them loaded anew. No call is in
    /// flight.
    pub(crate) fn change(&self, shards: impl Iterator<Item = usize>) {
        let mut state = self.lock();
        let gone: Vec<_> = shards.map(|shard| state.change(shard)).collect();
        drop(state);
        drop(gone);
        self.changed.notify(usize::MAX);
    }

    /// Lets go of the shard that was not used for longest; 0 where all are in use.
    pub(crate) fn evict_oldest(&self) -> u64 {
        let oldest = self.lock().idle.first_key_value().map(|(_, shard)| *shard);
        self.evict(oldest.into_iter())
    }

    /// All shards, where all are there.
    pub(crate) fn all(&self) -> Option<Vec<S>> {
        let state = self.lock();
        let value = |slot: &Slot<S>| match &slot.place {
            Place::Resident(value) => Some(value.clone()),
            _ => None,
        };
        state.slots.iter().map(value).collect()
    }

    /// Which of `shards` are there.
    pub(crate) fn resident(&self, shards: impl Iterator<Item = usize>) -> Vec<bool> {
        let state = self.lock();
        shards.map(|shard| matches!(state.slots[shard].place, Place::Resident(_))).collect()
    }

    /// What is there; [`Residency::read`] is of the loads that succeeded.
    pub(crate) fn residency(&self) -> Residency {
        self.lock().counts
    }
}

impl<S: Clone + wgpu::WasmNotSendSync> Spare for Cache<S> {
    fn let_go(&self) -> u64 {
        self.evict_oldest()
    }
}

impl<S: Clone> State<S> {
    /// Counts one more user of each of `shards`, if there is room for those that are absent once others were let go.
    fn admit(&mut self, shards: &[usize], budget: u64) -> bool {
        let mut needed = 0u64;
        for &shard in shards {
            let slot = &mut self.slots[shard];
            slot.users += 1;
            match slot.place {
                Place::Absent => needed += slot.bytes,
                Place::Resident(_) => {
                    if self.idle.remove(&slot.age).is_some() {
                        self.idle_bytes -= slot.bytes;
                    }
                }
                Place::Loading(..) => {}
            }
        }
        let admitted = self.bytes.saturating_add(needed) <= budget.saturating_add(self.idle_bytes);
        while admitted && self.bytes.saturating_add(needed) > budget {
            let Some((_, &oldest)) = self.idle.first_key_value() else { break };
            self.evict(oldest);
        }
        if !admitted {
            for &shard in shards {
                // None of them was alone with this call: it had begun nothing.
                self.leave(shard, None);
            }
        }
        admitted
    }

    fn bytes_of(&self, shards: &[usize]) -> u64 {
        shards.iter().map(|shard| self.slots[*shard].bytes).sum()
    }

    /// Bytes of the shards that leases hold and those are not.
    fn leased_beside(&self, shards: &[usize]) -> u64 {
        let own = shards.iter().map(|shard| &self.slots[*shard]).filter(|slot| slot.leases > 0);
        self.leased - own.map(|slot| slot.bytes).sum::<u64>()
    }

    /// Begins the loads of those that are absent.
    fn begin(&mut self, shards: &[usize], purpose: Use, load: impl Fn(usize) -> Load<S>) -> Vec<Begun<S>> {
        let begin = |&shard: &usize| {
            let slot = &mut self.slots[shard];
            if purpose == Use::Lease {
                slot.leases += 1;
                self.leased += if slot.leases == 1 { slot.bytes } else { 0 };
            }
            match &slot.place {
                Place::Resident(value) => {
                    self.counts.hits += 1;
                    Begun::Resident(value.clone())
                }
                Place::Loading(number, load) => {
                    self.counts.joined += 1;
                    Begun::Loading(*number, load.clone())
                }
                Place::Absent => {
                    self.counts.misses += 1;
                    self.begun += 1;
                    self.bytes += slot.bytes;
                    // A scan's are the first to go, the last of them before the others: the next scan begins with those.
                    self.oldest -= 1;
                    slot.age = if purpose == Use::Scan { self.oldest } else { UNUSED };
                    let load = load(shard).shared();
                    slot.place = Place::Loading(self.begun, load.clone());
                    Begun::Loading(self.begun, load)
                }
            }
        };
        shards.iter().map(begin).collect()
    }

    /// Notes the end of load `number` of a shard, if that is the one that runs. The load is to be dropped without the lock.
    fn end(&mut self, shard: usize, number: u64, result: &Result<S, ShardError>) -> Option<Place<S>> {
        let slot = &mut self.slots[shard];
        if !matches!(slot.place, Place::Loading(running, _) if running == number) {
            return None;
        }
        let next = match result {
            Ok(value) => {
                self.counts.resident_shards += 1;
                self.counts.resident_bytes.0 += slot.bytes;
                self.counts.read.0 += slot.bytes;
                Place::Resident(value.clone())
            }
            Err(_) => {
                self.counts.failures += 1;
                self.bytes -= slot.bytes;
                Place::Absent
            }
        };
        Some(mem::replace(&mut slot.place, next))
    }

    /// Counts one user less, who used it for `purpose`, if at all. What nobody waits for any more is to be dropped without
    /// the lock.
    fn leave(&mut self, shard: usize, purpose: Option<Use>) -> Option<Place<S>> {
        let slot = &mut self.slots[shard];
        if purpose == Some(Use::Lease) {
            slot.leases -= 1;
            self.leased -= if slot.leases == 0 { slot.bytes } else { 0 };
        }
        // A scan leaves each shard as old as it was.
        if matches!(purpose, Some(Use::Lookup | Use::Lease)) || slot.age == UNUSED && purpose.is_some() {
            self.newest += 1;
            slot.age = self.newest;
        }
        slot.users -= 1;
        if slot.users > 0 {
            return None;
        }
        match slot.place {
            Place::Absent => None,
            Place::Loading(..) => {
                self.bytes -= slot.bytes;
                Some(mem::replace(&mut slot.place, Place::Absent))
            }
            Place::Resident(_) => {
                self.idle.insert(slot.age, shard);
                self.idle_bytes += slot.bytes;
                None
            }
        }
    }

    /// Lets go of a shard, unless somebody uses it, and says how many bytes it had. Its memory is free when this returns, so
    /// that what is loaded in its place is never there beside it.
    fn evict(&mut self, shard: usize) -> u64 {
        let slot = &mut self.slots[shard];
        if slot.users > 0 || !matches!(slot.place, Place::Resident(_)) {
            return 0;
        }
        let bytes = slot.bytes;
        self.change(shard).map_or(0, |_| bytes)
    }

    /// Lets go of a shard, whoever holds it.
    fn change(&mut self, shard: usize) -> Option<Place<S>> {
        let slot = &mut self.slots[shard];
        if !matches!(slot.place, Place::Resident(_)) {
            return None;
        }
        if slot.users == 0 {
            self.idle.remove(&slot.age);
            self.idle_bytes -= slot.bytes;
        }
        self.bytes -= slot.bytes;
        self.counts.evictions += 1;
        self.counts.resident_shards -= 1;
        self.counts.resident_bytes.0 -= slot.bytes;
        Some(mem::replace(&mut slot.place, Place::Absent))
    }
}

#[cfg(test)]
mod tests;
