//! The byte ledger: every buffer an engine makes is entered before it is made, and leaves when it is dropped.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use super::{MemoryReport, MemoryRow};
use crate::{error::OverBudget, scheme::Category, units::Bytes};

/// Live and peak bytes by label and category, and the budget over their sum.
#[derive(Clone)]
pub(crate) struct Ledger {
    state: Arc<Mutex<State>>,
    spare: Arc<Mutex<Vec<Weak<dyn Spare>>>>,
}

/// What holds memory that can be had again: it goes before anybody is refused.
pub(crate) trait Spare: wgpu::WasmNotSendSync {
    /// Lets go of some; 0 where there is nothing that can be spared.
    fn let_go(&self) -> u64;
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    budget: Option<u64>,
    live: u64,
    peak: u64,
    /// Buffers entered so far, gone or not.
    made: u64,
    rows: BTreeMap<(String, Category), Entry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    live: u64,
    peak: u64,
}

/// What one buffer needs: its bytes by category.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub(crate) label: String,
    pub(crate) bytes: Vec<(Category, u64)>,
}

impl Need {
    /// A buffer of one category.
    pub(crate) fn one(label: &str, category: Category, bytes: u64) -> Self {
        Self { label: label.to_owned(), bytes: vec![(category, bytes)] }
    }

    /// All its bytes.
    pub(crate) fn total(&self) -> u64 {
        self.bytes.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Bytes entered in the ledger; they leave it when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    ledger: Ledger,
    need: Need,
}

impl Ledger {
    pub(crate) fn new(budget: Option<Bytes>) -> Self {
        let state = State { budget: budget.map(|budget| budget.0), live: 0, peak: 0, made: 0, rows: BTreeMap::new() };
        Self { state: Arc::new(Mutex::new(state)), spare: Arc::default() }
    }

    /// Asks `spare` as well before anybody is refused, as long as it lives.
    pub(crate) fn reclaim_from(&self, spare: &Arc<impl Spare + 'static>) {
        let mut all = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|spare| spare.strong_count() > 0);
        let spare: Weak<dyn Spare> = Arc::downgrade(spare) as Weak<dyn Spare>;
        all.push(spare);
    }

    /// Has somebody let go of what can be had again, and says whether anybody did.
    fn reclaim(&self) -> bool {
        let all: Vec<_> = self.spare.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.iter().filter_map(Weak::upgrade).any(|spare| spare.let_go() > 0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after each statement under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a budget.
    pub(crate) fn has_budget(&self) -> bool {
        self.lock().budget.is_some()
    }

    /// Enters all of `needs`, or none of them.
    pub(crate) fn reserve(&self, needs: Vec<Need>) -> Result<Vec<Reservation>, OverBudget> {
        while let Err(refused) = self.enter(&needs) {
            // Each turn lets go of something.
            if !self.reclaim() {
                return Err(refused);
            }
        }
        Ok(needs.into_iter().map(|need| Reservation { ledger: self.clone(), need }).collect())
    }

    fn enter(&self, needs: &[Need]) -> Result<(), OverBudget> {
        let mut state = self.lock();
        let totals = needs.iter().map(Need::total);
        let needed = totals.clone().fold(0, u64::saturating_add);
        if let Some(budget) = state.budget
            && state.live.saturating_add(needed) > budget
        {
            return Err(OverBudget {
                needed: Bytes(needed),
                budget: Bytes(budget),
                live: Bytes(state.live),
                largest: Bytes(totals.max().unwrap_or(0)),
            });
        }
        for need in needs {
            state.add(need);
            state.live += need.total();
            state.made += 1;
        }
        state.peak = state.peak.max(state.live);
        Ok(())
    }

    /// Enters one buffer.
    pub(crate) fn reserve_one(&self, need: Need) -> Result<Reservation, OverBudget> {
        let mut reserved = self.reserve(vec![need])?;
        Ok(reserved.swap_remove(0))
    }

    /// What is in it now.
    pub(crate) fn report(&self) -> MemoryReport {
        let state = self.lock();
        let rows = state.rows.iter().map(|((label, category), entry)| MemoryRow {
            label: label.clone(),
            category: *category,
            live: Bytes(entry.live),
            peak: Bytes(entry.peak),
        });
        MemoryReport {
            rows: rows.collect(),
            live: Bytes(state.live),
            peak: Bytes(state.peak),
            made: state.made,
            budget: state.budget.map(Bytes),
        }
    }
}

impl State {
    /// Counts `need` under its label, not in the sums.
    fn add(&mut self, need: &Need) {
        for (category, bytes) in &need.bytes {
            if *bytes > 0 {
                let entry = self.rows.entry((need.label.clone(), *category)).or_default();
                entry.live += bytes;
                entry.peak = entry.peak.max(entry.live);
            }
        }
    }

    /// Takes `need` out of its label, not out of the sums.
    fn subtract(&mut self, need: &Need) {
        for (category, bytes) in &need.bytes {
            if let Some(entry) = self.rows.get_mut(&(need.label.clone(), *category)) {
                entry.live -= bytes;
            }
        }
    }
}

impl Reservation {
    /// Bytes reserved.
    pub(crate) fn bytes(&self) -> u64 {
        self.need.total()
    }

    /// What they are for.
    pub(crate) fn need(&self) -> &Need {
        &self.need
    }

    /// Has `need` take its bytes out of these, which are of one category; `None` where there are fewer. The sums stay.
    pub(crate) fn split(&mut self, need: Need) -> Option<Self> {
        let total = need.total();
        let mut state = self.ledger.lock();
        let left = match self.need.bytes.as_slice() {
            [(_, bytes)] => bytes.checked_sub(total)?,
            _ => return None,
        };
        state.subtract(&self.need);
        self.need.bytes[0].1 = left;
        state.add(&self.need);
        state.add(&need);
        drop(state);
        Some(Self { ledger: self.ledger.clone(), need })
    }

    /// Takes back what [`Reservation::split`] gave.
    pub(crate) fn join(&mut self, mut other: Self) {
        let need = std::mem::replace(&mut other.need, Need { label: String::new(), bytes: Vec::new() });
        let mut state = self.ledger.lock();
        state.subtract(&need);
        state.subtract(&self.need);
        self.need.bytes.iter_mut().take(1).for_each(|(_, bytes)| *bytes += need.total());
        state.add(&self.need);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.ledger.lock();
        state.subtract(&self.need);
        state.live -= self.need.total();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a15_the_ledger_returns_to_its_baseline_and_keeps_the_peak() {
        let ledger = Ledger::new(Some(Bytes(100)));
        let first = ledger.reserve_one(Need::one("table.a", Category::Payload, 60)).unwrap();
        let refused = ledger
            .reserve(vec![Need::one("b", Category::Payload, 30), Need::one("c", Category::Scales, 11)])
            .unwrap_err();
        assert_eq!(refused, OverBudget { needed: Bytes(41), budget: Bytes(100), live: Bytes(60), largest: Bytes(30) });
        assert_eq!(ledger.report().live, Bytes(60), "a refusal enters nothing");
        let second = ledger.reserve_one(Need::one("b", Category::Output, 40)).unwrap();
        assert_eq!(first.bytes() + second.bytes(), 100);
        drop((first, second));
        let report = ledger.report();
        assert_eq!((report.live, report.peak), (Bytes(0), Bytes(100)));
        assert_eq!(report.peak_of(Category::Payload), Bytes(60));
    }

    #[test]
    fn a15_bytes_change_their_label_and_the_sums_stay() {
        let ledger = Ledger::new(Some(Bytes(100)));
        let mut block = ledger.reserve_one(Need::one("pool", Category::Padding, 90)).unwrap();
        let need = Need { label: "a".to_owned(), bytes: vec![(Category::Payload, 50), (Category::Scales, 10)] };
        let part = block.split(need.clone()).unwrap();
        assert!(block.split(need).is_none(), "30 bytes are left");
        let report = ledger.report();
        assert_eq!((report.live, report.peak, report.made), (Bytes(90), Bytes(90), 1));
        assert_eq!((report.live_at("pool"), report.live_at("a")), (Bytes(30), Bytes(60)));
        block.join(part);
        assert_eq!((ledger.report().live_at("pool"), ledger.report().live_at("a")), (Bytes(90), Bytes(0)));
        drop(block);
        assert_eq!((ledger.report().live, ledger.report().live_at("pool")), (Bytes(0), Bytes(0)));
    }

    #[test]
    fn sums_that_overflow_are_refused() {
        let ledger = Ledger::new(Some(Bytes(100)));
        let needs = vec![Need::one("a", Category::Payload, u64::MAX), Need::one("b", Category::Payload, 2)];
        assert!(ledger.reserve(needs).is_err());
    }
}
