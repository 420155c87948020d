//! The one module with `unsafe`: shaders without the run-time checks that wgpu adds, and an instruction of x86.

#![expect(
    unsafe_code,
    reason = "wgpu marks modules without its run-time checks unsafe, and Rust what takes pointers; the arguments stand below"
)]

/// A shader module of one of this library's kernels, without bounds checks, loop counters and division guards.
///
/// `source` must be one of the pipelines composed in [`crate::gpu`]; no caller's text reaches this.
pub(crate) fn trusted_module(device: &wgpu::Device, label: &str, source: &str) -> wgpu::ShaderModule {
    let descriptor =
        wgpu::ShaderModuleDescriptor { label: Some(label), source: wgpu::ShaderSource::Wgsl(source.into()) };
    // SAFETY: what the checks would guard, the kernels guard themselves. Bounds: every row number is compared with the
    // table's rows before an address is made of it, shards hold all bytes that the rows in them can address
    // (`placement` pads the last one), positions are compared with the batch, and the recorder checks that ids and
    // output hold the whole batch. A score's rows are compared with those of its dispatch, which are all in its shard, and
    // its buffers are made for its rows and queries, padded to whole tiles. Loops: each counts up to a number fixed by an
    // override, plus a parameter that is 0, or through a bag's stretch of at most 1,024 ids, whose ends the recorder makes.
    // Division: only by overrides that are at least 1. Every byte of a shard is written by the upload before it is bound; of a
    // tier's table, those of the pages that lookups name, and the others are the zeros that wgpu makes buffers of.
    // Kernels of dynamic tables write to numbers of rows and buckets that the host gives, which has made the buffers for them, and
    // read ids, slots and missed ids of as many places as the batch has; a search divides by the number of buckets, which is 2 at
    // least, stays under it, and ends after a number of them that the host knows, 1,025 at most.
    unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) }
}

/// Whether [`prefetch`] does anything.
pub(crate) const PREFETCHES: bool = cfg!(target_arch = "x86_64");

/// Asks for the cache line of `byte`, and does not wait for it.
#[inline(always)]
pub(crate) fn prefetch(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is a hint, reads nothing that a program sees and faults on no address; every x86-64 has it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}
