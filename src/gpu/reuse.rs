//! Buffers kept for reuse.

use std::{
    ops::{Deref, RangeInclusive},
    sync::{Arc, Mutex, PoisonError},
};

use super::{Gpu, Tracked};
use crate::{
    error::{DeviceError, OverBudget},
    memory::{Need, Reservation},
    scheme::Category,
    units::round_up,
};

/// Sizes of pooled buffers are multiples of this, so that more of them serve again.
pub(crate) const POOL_STEP: u64 = 256;

impl Gpu {
    fn reserve_one(&self, label: &str, category: Category, bytes: u64) -> Result<Reservation, OverBudget> {
        let mut reserved = self.reserve(vec![Need::one(label, category, bytes)])?;
        Ok(reserved.swap_remove(0))
    }

    /// A buffer of at least `bytes` for that use: one kept from earlier, or a new one.
    pub(crate) async fn pooled(
        &self,
        label: &'static str,
        category: Category,
        usage: wgpu::BufferUsages,
        bytes: u64,
    ) -> Result<Pooled, PooledError> {
        let kind = Kind { label, category, usage };
        let size = round_up(bytes, POOL_STEP);
        if let Some(buffer) = self.kept(kind, size) {
            return Ok(buffer);
        }
        let reserved = self.reserve_one(label, category, size)?;
        let buffer = self.catch(label, size, || self.buffer(reserved, label, usage)).await?;
        Ok(self.reused(kind, buffer))
    }

    /// One kept from earlier.
    fn kept(&self, kind: Kind, size: u64) -> Option<Pooled> {
        // What a buffer is too large by may be what the call's next one lacks of a budget.
        let most = if self.ledger.has_budget() { size } else { size.saturating_mul(2) };
        Some(self.reused(kind, self.reuse.take(kind, size..=most)?))
    }

    fn reused(&self, kind: Kind, buffer: Tracked) -> Pooled {
        Pooled { buffer: Some(buffer), kind, reuse: self.reuse.clone() }
    }

    /// A small buffer that holds `bytes`, a multiple of 4 of them, once something is submitted. The scope that is open catches
    /// the device's errors.
    pub(crate) fn filled(
        &self,
        label: &'static str,
        usage: wgpu::BufferUsages,
        bytes: &[u8],
    ) -> Result<Pooled, OverBudget> {
        let usage = usage | wgpu::BufferUsages::COPY_DST;
        let kind = Kind { label, category: Category::Staging, usage };
        let size = round_up(bytes.len() as u64, POOL_STEP);
        let buffer = match self.kept(kind, size) {
            Some(buffer) => buffer,
            None => {
                let reserved = self.reserve_one(label, kind.category, size)?;
                self.reused(kind, self.buffer(reserved, label, usage))
            }
        };
        self.queue.write_buffer(&buffer, 0, bytes);
        Ok(buffer)
    }
}

/// Why there is no pooled buffer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PooledError {
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<PooledError> for crate::error::GatherError {
    fn from(error: PooledError) -> Self {
        match error {
            PooledError::OverBudget(error) => error.into(),
            PooledError::Device(error) => error.into(),
        }
    }
}

impl From<PooledError> for crate::error::ScoreError {
    fn from(error: PooledError) -> Self {
        match error {
            PooledError::OverBudget(error) => error.into(),
            PooledError::Device(error) => error.into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind {
    label: &'static str,
    category: Category,
    usage: wgpu::BufferUsages,
}

/// Buffers waiting for their next use. Work on a queue runs in order, so a buffer may be used again at once.
#[derive(Debug, Default)]
pub(super) struct Reuse {
    free: Mutex<Vec<(Kind, Tracked)>>,
}

/// Buffers kept at a time; the oldest goes first.
const KEPT: usize = 32;

impl Reuse {
    /// The smallest free buffer of those sizes.
    fn take(&self, kind: Kind, sizes: RangeInclusive<u64>) -> Option<Tracked> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(_, (other, buffer)): &(usize, &(Kind, Tracked))| *other == kind && sizes.contains(&buffer.size());
        let fitting = free.iter().enumerate().filter(fits);
        let (at, _) = fitting.min_by_key(|(_, (_, buffer))| buffer.size())?;
        Some(free.remove(at).1)
    }

    fn give(&self, kind: Kind, buffer: Tracked) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() == KEPT {
            free.remove(0);
        }
        free.push((kind, buffer));
    }

    /// Lets go of all of them, and says how many bytes they had.
    pub(super) fn clear(&self) -> u64 {
        let free = std::mem::take(&mut *self.free.lock().unwrap_or_else(PoisonError::into_inner));
        free.iter().map(|(_, buffer)| buffer.size()).sum()
    }
}

/// A buffer that is kept for the next use when dropped.
#[derive(Debug)]
pub(crate) struct Pooled {
    buffer: Option<Tracked>,
    kind: Kind,
    reuse: Arc<Reuse>,
}

impl Deref for Pooled {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        match &self.buffer {
            Some(buffer) => buffer,
            None => unreachable!("the buffer leaves only when dropped"),
        }
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.reuse.give(self.kind, buffer);
        }
    }
}
