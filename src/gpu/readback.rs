//! Bytes coming back from the device.

use futures_channel::oneshot;

use super::Gpu;
use crate::{
    error::{DeviceError, GatherError},
    scheme::Category,
};

impl Gpu {
    /// Submits `encoder`, which copies to the first `bytes` of `staging`, waits, and lets `read` look at them.
    pub(crate) async fn submit_and_read<T>(
        &self,
        encoder: wgpu::CommandEncoder,
        staging: &wgpu::Buffer,
        bytes: u64,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, DeviceError> {
        self.alive()?;
        let (mapped, mapping) = oneshot::channel();
        let submission = self.catch("a submission", bytes, || {
            let submission = self.queue.submit([encoder.finish()]);
            staging.map_async(wgpu::MapMode::Read, ..bytes, move |result| drop(mapped.send(result)));
            submission
        });
        // Whichever way this ends, by an error or by the caller dropping it, the buffer may be used again.
        let _unmap = Unmap { gpu: self, buffer: staging };
        let submission = submission.await?;
        self.settle(submission).await?;
        match self.told(mapping).await {
            Some(Ok(())) => {}
            // A buffer of this size and use can fail to map only where the device has gone.
            Some(Err(error)) => return Err(self.lose(&error.to_string())),
            None => return Err(self.lose("a mapping was never answered")),
        }
        match staging.get_mapped_range(..bytes) {
            Ok(range) => Ok(read(&range)),
            Err(error) => Err(self.lose(&error.to_string())),
        }
    }

    /// Waits for what was submitted so far and lets `read` look at a few bytes of `buffer`.
    pub(crate) async fn read_small<T>(
        &self,
        buffer: &wgpu::Buffer,
        offset: u64,
        bytes: u64,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, GatherError> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = self.pooled("gather.staging", Category::Staging, usage, bytes).await?;
        let encoder = self
            .catch("a read", bytes, || {
                let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                encoder.copy_buffer_to_buffer(buffer, offset, &staging, 0, bytes);
                encoder
            })
            .await?;
        Ok(self.submit_and_read(encoder, &staging, bytes, read).await?)
    }
}

/// Unmaps a buffer when dropped.
struct Unmap<'a> {
    gpu: &'a Gpu,
    buffer: &'a wgpu::Buffer,
}

impl Drop for Unmap<'_> {
    fn drop(&mut self) {
        self.gpu.unmap(self.buffer);
    }
}
