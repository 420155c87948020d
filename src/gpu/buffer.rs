//! Buffers that the ledger knows.

use std::ops::Deref;

use super::Gpu;
use crate::{
    error::OverBudget,
    memory::{Need, Reservation},
};

/// A buffer whose memory is free when it is dropped.
#[derive(Debug)]
pub(crate) struct Owned(wgpu::Buffer);

impl Deref for Owned {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // In a browser a dropped buffer keeps its memory until the garbage collector comes by.
        #[cfg(target_arch = "wasm32")]
        self.0.destroy();
    }
}

/// A buffer whose bytes stand in the ledger for as long as it lives.
#[derive(Debug)]
pub(crate) struct Tracked {
    buffer: Owned,
    // Dropped after the buffer, so the bytes leave the ledger last.
    _reservation: Reservation,
}

impl Deref for Tracked {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

impl Gpu {
    /// Makes a buffer of the reserved size. Errors of the device go to the scope that is open.
    pub(crate) fn buffer(&self, reservation: Reservation, label: &str, usage: wgpu::BufferUsages) -> Tracked {
        let buffer = self.owned(reservation.bytes(), label, usage);
        Tracked { buffer, _reservation: reservation }
    }

    /// The same, where somebody else has the reservation.
    pub(super) fn owned(&self, size: u64, label: &str, usage: wgpu::BufferUsages) -> Owned {
        let label = Some(label);
        Owned(self.device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false }))
    }

    /// Enters all of `needs`, or none.
    pub(crate) fn reserve(&self, needs: Vec<Need>) -> Result<Vec<Reservation>, OverBudget> {
        self.ledger.reserve(needs)
    }
}
