//! A shard that could not be loaded when it was needed.

use std::{ops::Range, sync::Arc, time::Duration};

use thiserror::Error;

use super::{DeviceError, OverBudget, SourceError};
use crate::units::Bytes;

/// Rows that a lookup needed and could not have, mostly a shard. The next lookup that needs it has it tried again; lookups that do not
/// are not touched.
#[derive(Clone, Debug, Error)]
#[error("table `{table}`: {}rows {}..{} were not loaded: {cause}", named(.shard), .rows.start, .rows.end)]
#[non_exhaustive]
pub struct ShardError {
    /// The table's name.
    pub table: String,
    /// Number of the shard; none where rows are in tiers.
    pub shard: Option<usize>,
    /// Stored rows that it has, or that were asked for together.
    pub rows: Range<u32>,
    /// Why.
    #[source]
    pub cause: Arc<ShardCause>,
}

fn named(shard: &Option<usize>) -> String {
    shard.map(|shard| format!("shard {shard}, ")).unwrap_or_default()
}

/// Why a shard was not loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ShardCause {
    /// The source failed, each time that it was asked.
    #[error("{error} (after {attempts} attempts)")]
    Source {
        /// How often it was asked.
        attempts: u32,
        /// What it said last.
        #[source]
        error: SourceError,
    },
    /// The source took too long.
    #[error("not done after {deadline:?} and {attempts} attempts{}", said(.last.as_ref()))]
    Deadline {
        /// How long it was waited for.
        deadline: Duration,
        /// Attempts that failed before.
        attempts: u32,
        /// What the last of these said.
        last: Option<SourceError>,
    },
    /// Leases hold so much of the table that it finds no room beside that.
    #[error("leases hold {leased:#} of the {budget:#} that may be there; drop one")]
    Leased {
        /// Bytes of the shards that leases hold.
        leased: Bytes,
        /// Bytes of shards that may be there.
        budget: Bytes,
    },
    /// There is no room for it in the engine's budget.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

fn said(last: Option<&SourceError>) -> String {
    last.map_or_else(String::new, |error| format!(", of which the last said: {error}"))
}
