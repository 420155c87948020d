//! Buffers that the ledger knows, and those kept for reuse.

use std::{
    ops::{Deref, RangeInclusive},
    sync::{Arc, Mutex, PoisonError},
};

use super::Gpu;
use crate::{
    error::{DeviceError, OverBudget},
    memory::{Need, Reservation},
    scheme::Category,
    units::round_up,
};

/// A buffer whose bytes stand in the ledger for as long as it lives.
#[derive(Debug)]
pub(crate) struct Tracked {
    buffer: wgpu::Buffer,
    // Dropped after `drop` below has run, so the bytes leave the ledger last.
    _reservation: Reservation,
}

impl Deref for Tracked {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        // In a browser a dropped buffer keeps its memory until the garbage collector comes by.
        #[cfg(target_arch = "wasm32")]
        self.buffer.destroy();
    }
}

/// Sizes of pooled buffers are multiples of this, so that more of them serve again.
pub(crate) const POOL_STEP: u64 = 256;

impl Gpu {
    /// Makes a buffer of the reserved size. Errors of the device go to the scope that is open.
    pub(crate) fn buffer(&self, reservation: Reservation, label: &str, usage: wgpu::BufferUsages) -> Tracked {
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: reservation.bytes(),
            usage,
            mapped_at_creation: false,
        });
        Tracked { buffer, _reservation: reservation }
    }

    /// Enters all of `needs`, or none. What is only kept for reuse must not cost anybody an answer: it goes first.
    pub(crate) fn reserve(&self, needs: Vec<Need>) -> Result<Vec<Reservation>, OverBudget> {
        self.ledger.reserve(needs.clone()).or_else(|_| {
            self.pool.clear();
            self.ledger.reserve(needs)
        })
    }

    fn reserve_one(&self, label: &str, category: Category, bytes: u64) -> Result<Reservation, OverBudget> {
        let mut reserved = self.reserve(vec![Need::one(label, category, bytes)])?;
        Ok(reserved.swap_remove(0))
    }

    /// Makes a small buffer that holds `bytes`, a multiple of 4 of them.
    pub(crate) fn filled(&self, label: &str, usage: wgpu::BufferUsages, bytes: &[u8]) -> Result<Tracked, OverBudget> {
        let reservation = self.reserve_one(label, Category::Staging, bytes.len() as u64)?;
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: bytes.len() as u64,
            usage,
            mapped_at_creation: true,
        });
        // A device that is gone gives no range; the scope around reports it.
        if let Ok(mut range) = buffer.get_mapped_range_mut(..) {
            range.copy_from_slice(bytes);
        }
        buffer.unmap();
        Ok(Tracked { buffer, _reservation: reservation })
    }

    /// A buffer of at least `bytes` for that use: one kept from earlier, or a new one.
    pub(crate) async fn pooled(
        &self,
        label: &'static str,
        category: Category,
        usage: wgpu::BufferUsages,
        bytes: u64,
    ) -> Result<Pooled, PooledError> {
        let size = round_up(bytes, POOL_STEP);
        let kind = Kind { label, category, usage };
        // What a buffer is too large by may be what the call's next one lacks of a budget.
        let most = if self.ledger.has_budget() { size } else { size.saturating_mul(2) };
        if let Some(buffer) = self.pool.take(kind, size..=most) {
            return Ok(Pooled { buffer: Some(buffer), kind, pool: self.pool.clone() });
        }
        let reservation = self.reserve_one(label, category, size)?;
        let buffer = self.catch(label, size, || self.buffer(reservation, label, usage)).await?;
        Ok(Pooled { buffer: Some(buffer), kind, pool: self.pool.clone() })
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
pub(super) struct Pool {
    free: Mutex<Vec<(Kind, Tracked)>>,
}

/// Buffers kept at a time; the oldest goes first.
const KEPT: usize = 16;

impl Pool {
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

    pub(super) fn clear(&self) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A buffer that goes back to the pool when dropped.
#[derive(Debug)]
pub(crate) struct Pooled {
    buffer: Option<Tracked>,
    kind: Kind,
    pool: Arc<Pool>,
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
            self.pool.give(self.kind, buffer);
        }
    }
}
