//! The tier in host memory: pages as the source has them.

use std::{
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    pages::{PageBytes, Pages},
    slots::Slots,
};
use crate::{error::TableError, host::HostTable, memory::Reservation, store::TierStats, units::Bytes};

/// Pages that stay until this is dropped.
pub(super) struct Held {
    tier: Arc<HostTier>,
    slots: Vec<u32>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.tier.lock().slots.release(&self.slots);
    }
}

/// Pages in host memory, copied in and out.
pub(super) struct HostTier {
    state: Mutex<State>,
    /// Of an engine on the host, whose ledger knows all memory of tables.
    _reserved: Option<Reservation>,
}

struct State {
    slots: Slots,
    table: HostTable,
    stats: TierStats,
}

impl HostTier {
    /// Room for `count` pages.
    pub(super) fn new(
        name: &str,
        pages: &Pages,
        count: u32,
        reserved: Option<Reservation>,
    ) -> Result<Self, TableError> {
        let table = HostTable::empty(name, &pages.table(count))?;
        let capacity = Bytes(u64::from(count) * pages.page_bytes().0);
        let stats = TierStats { capacity, ..TierStats::default() };
        let state = State { slots: Slots::new(pages.count(), count), table, stats };
        Ok(Self { state: Mutex::new(state), _reserved: reserved })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The books are whole after each method.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies those of `wanted` that are here to their places in `out`, and gives the places of the others.
    pub(super) fn copy(&self, pages: &Pages, wanted: &[u32], out: &mut PageBytes) -> Vec<usize> {
        let mut state = self.lock();
        let mut missing = Vec::new();
        for (at, page) in wanted.iter().enumerate() {
            let Some(slot) = state.slots.find(*page) else {
                missing.push(at);
                continue;
            };
            for (part, out) in out.parts.iter_mut().enumerate() {
                let own = &state.table.part(part)[pages.place(part, slot as usize)];
                out[pages.place(part, at)].copy_from_slice(own);
            }
        }
        let found = (wanted.len() - missing.len()) as u64;
        state.stats.hits += found;
        state.stats.misses += missing.len() as u64;
        missing
    }

    /// Keeps those of `wanted` that were read to the places `missing` of `bytes`.
    pub(super) fn keep(&self, pages: &Pages, wanted: &[u32], missing: &[usize], bytes: &PageBytes) {
        let mut state = self.lock();
        let state = &mut *state;
        for at in missing {
            // Another call may have read it as well.
            if state.slots.find(wanted[*at]).is_some() {
                continue;
            }
            let Some(slot) = state.slots.insert(wanted[*at]) else { return };
            for (part, bytes) in bytes.parts.iter().enumerate() {
                let own = &mut state.table.part_mut(part)[pages.place(part, slot as usize)];
                own.copy_from_slice(&bytes[pages.place(part, *at)]);
            }
            state.stats.moved.0 += pages.page_bytes().0;
        }
    }

    /// Pages that fit.
    pub(super) fn len(&self) -> usize {
        self.lock().slots.len()
    }

    /// Lets go of pages of which there is another version.
    pub(super) fn change(&self, pages: impl Iterator<Item = u32>) {
        self.lock().slots.change(pages);
    }

    /// Lets go of pages that nobody holds.
    pub(super) fn forget(&self, pages: Range<u32>) -> u64 {
        self.lock().slots.forget(pages)
    }

    /// Holds all of `wanted`, where all are here.
    pub(super) fn hold(self: &Arc<Self>, wanted: &[u32]) -> Option<Held> {
        let mut state = self.lock();
        let mut taken = state.slots.begin();
        let here = wanted.iter().all(|page| {
            let here = state.slots.find(*page).is_some();
            here && state.slots.hold(*page, &mut taken).is_some()
        });
        if !here {
            state.slots.release(&taken.slots);
            return None;
        }
        Some(Held { tier: self.clone(), slots: taken.slots })
    }

    pub(super) fn stats(&self, pages: &Pages) -> TierStats {
        let state = self.lock();
        let resident = Bytes(state.slots.used() as u64 * pages.page_bytes().0);
        TierStats { resident, evictions: state.slots.evictions, ..state.stats }
    }
}
