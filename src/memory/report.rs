//! The ledger as data, and as a table.

use std::fmt;

use crate::{scheme::Category, units::Bytes};

/// Bytes of one label and category.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryRow {
    /// Whose: `table.words`, `gather`.
    pub label: String,
    /// What for.
    pub category: Category,
    /// Bytes now.
    pub live: Bytes,
    /// The most there were at a time.
    pub peak: Bytes,
}

/// What an engine holds, to the byte. Prints as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryReport {
    /// By label and category, in their order; rows whose bytes are gone stay, for their peak.
    pub rows: Vec<MemoryRow>,
    /// Bytes now, in all.
    pub live: Bytes,
    /// The most there were at a time, in all.
    pub peak: Bytes,
    /// Buffers and host tables made so far, gone or not: work that goes on alike makes none, once it has what it needs.
    pub made: u64,
    /// The budget, where there is one.
    pub budget: Option<Bytes>,
}

impl MemoryReport {
    /// Live bytes of a category, over all labels.
    #[must_use]
    pub fn live_of(&self, category: Category) -> Bytes {
        Bytes(self.rows.iter().filter(|row| row.category == category).map(|row| row.live.0).sum())
    }

    /// The sum of the peaks of a category's rows.
    #[must_use]
    pub fn peak_of(&self, category: Category) -> Bytes {
        Bytes(self.rows.iter().filter(|row| row.category == category).map(|row| row.peak.0).sum())
    }

    /// Live bytes of a label, over all categories.
    #[must_use]
    pub fn live_at(&self, label: &str) -> Bytes {
        Bytes(self.rows.iter().filter(|row| row.label == label).map(|row| row.live.0).sum())
    }
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.label.len()).max().unwrap_or(0).max(5);
        writeln!(f, "{:width$}  {:8}  {:>16}  {:>16}", "label", "category", "live", "peak")?;
        for row in &self.rows {
            let (live, peak) = (format!("{:#}", row.live), format!("{:#}", row.peak));
            writeln!(f, "{:width$}  {:8}  {live:>16}  {peak:>16}", row.label, row.category)?;
        }
        let (live, peak) = (format!("{:#}", self.live), format!("{:#}", self.peak));
        write!(f, "{:width$}  {:8}  {live:>16}  {peak:>16}", "total", "")?;
        match self.budget {
            Some(budget) => write!(f, "  of {budget:#}"),
            None => Ok(()),
        }
    }
}
