//! The CPU backend: the same operations on tables in host memory, by SIMD and threads.
//!
//! Rows are decoded by [`Codec::decode_rows`](crate::scheme::Codec), block by block: the ids of a block become row
//! numbers on the stack, and its rows go straight to the output. Every value is one f32 multiplication and at most
//! one addition after it, never fused, so the bits do not depend on threads, blocks or instruction set.

mod bag;
mod gather;
mod memory;
mod score;
mod table;

pub(crate) use table::HostTable;

#[cfg(test)]
mod tests;
