//! Errors of wgpu, caught around what this library does: none of them reaches a handler or scope of the caller's.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use super::Gpu;
use crate::{error::DeviceError, units::Bytes};

/// What three scopes caught: validation, memory, internal.
type Caught = [Option<wgpu::Error>; 3];

impl Gpu {
    /// Does `work` with all errors of wgpu caught, and turns the first into a [`DeviceError`].
    ///
    /// The scopes are balanced on this thread before anything is awaited.
    pub(crate) fn catch<T>(
        &self,
        what: &str,
        bytes: u64,
        work: impl FnOnce() -> T,
    ) -> impl Future<Output = Result<T, DeviceError>> {
        let (value, caught) = self.scoped(work);
        let what = what.to_owned();
        async move {
            let caught = caught.await;
            self.judged(caught, &what, bytes, value)
        }
    }

    /// The same for calls that cannot wait. Natively errors are known at once; in a browser they are dropped, and whoever
    /// waits for the work hears of them.
    pub(crate) fn catch_now<T>(&self, what: &str, bytes: u64, work: impl FnOnce() -> T) -> Result<T, DeviceError> {
        let (value, caught) = self.scoped(work);
        self.judged(now(caught).unwrap_or_default(), what, bytes, value)
    }

    fn judged<T>(&self, caught: Caught, what: &str, bytes: u64, value: T) -> Result<T, DeviceError> {
        let verdict = self.verdict(caught, what, bytes);
        if let Err(error) = verdict {
            // A buffer that could not be made must not be there for the next call.
            drop(value);
            self.reuse.clear();
            return Err(error);
        }
        Ok(value)
    }

    fn scoped<T>(&self, work: impl FnOnce() -> T) -> (T, impl Future<Output = Caught>) {
        let filters = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation];
        let scopes = filters.map(|filter| self.device.push_error_scope(filter));
        let value = work();
        // The last pushed is popped first.
        let [internal, memory, validation] = scopes;
        let (validation, memory, internal) = (validation.pop(), memory.pop(), internal.pop());
        (value, async move { [validation.await, memory.await, internal.await] })
    }

    fn verdict(&self, caught: Caught, what: &str, bytes: u64) -> Result<(), DeviceError> {
        self.alive()?;
        let Some(error) = caught.into_iter().flatten().next() else { return Ok(()) };
        // Once a device is gone all else fails too, in words that blame something else.
        if self.is_gone() {
            return Err(self.lose(&format!("it stopped working; {what} was the first to notice")));
        }
        match error {
            wgpu::Error::OutOfMemory { .. } => {
                Err(DeviceError::OutOfMemory { what: what.to_owned(), needed: Bytes(bytes) })
            }
            error => Err(DeviceError::Refused(format!("{what}: {error}"))),
        }
    }

    /// Whether the device is gone, which no call says: one that is makes buffers that are invalid, for no lack of memory. In a
    /// browser this is not known at once, and the device's handler tells.
    fn is_gone(&self) -> bool {
        let ((), caught) = self.scoped(|| {
            let descriptor = wgpu::BufferDescriptor {
                label: Some("a question"),
                size: 4,
                usage: wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            };
            self.device.create_buffer(&descriptor).unmap();
        });
        matches!(now(caught), Some([Some(_), None, None]))
    }

    /// Unmaps a buffer that is mapped, or is about to be; what is wrong with one that is not is nobody's concern.
    pub(crate) fn unmap(&self, buffer: &wgpu::Buffer) {
        let ((), caught) = self.scoped(|| buffer.unmap());
        drop(caught);
    }
}

/// What a future gives without waiting.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
