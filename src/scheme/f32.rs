//! `f32`: values as they are.
//!
//! ```text
//! values: F32 [rows, dim]
//! byte 0   4   8        4*dim
//!      |x0 |x1 |x2 | ... |   row 0, then row 1 without a gap
//! ```
//!
//! Error bound: 0. Every bit is kept, that of -0.0 and subnormals too.

use std::{fmt, sync::Arc};

use super::{
    Build, Category, Codec, Dtype, Misfit, Part, SchemeInfo, Shader,
    pool::{BaggedRows, Fold, FoldRow, pool_rows},
    simd::{DecodeRow, decode_rows, touch},
};
use crate::units::Shape;

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "f32",
    summary: "values as they are",
    options: "",
    examples: &["f32"],
    variants: &["f32"],
    build: Build::Codec(|_| Ok(Arc::new(F32))),
};

#[derive(Debug)]
struct F32;

impl Codec for F32 {
    fn fmt_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("f32")
    }

    fn parts(&self, shape: Shape) -> Vec<Part> {
        let shape = vec![u64::from(shape.rows()), u64::from(shape.dim())];
        vec![Part::new("values", Dtype::F32, Category::Payload, shape)]
    }

    fn encode_rows(&self, _dim: usize, values: &[f32], parts: &mut [&mut [u8]]) -> Result<(), Misfit> {
        if cfg!(target_endian = "little") {
            parts[0].copy_from_slice(bytemuck::cast_slice(values));
        } else {
            for (bytes, value) in parts[0].as_chunks_mut().0.iter_mut().zip(values) {
                *bytes = value.to_le_bytes();
            }
        }
        Ok(())
    }

    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]) {
        decode_rows(&Values { dim, bytes: parts[0] }, dim, rows, out);
    }

    fn pool_rows(&self, dim: usize, parts: &[&[u8]], bags: &BaggedRows<'_>, out: &mut [f32]) {
        pool_rows(&Values { dim, bytes: parts[0] }, dim, bags, out);
    }

    fn error_bound(&self, _row: &[f32]) -> f64 {
        0.0
    }

    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64 {
        let at = (row * dim + column) * 4;
        f64::from(f32::from_le_bytes([parts[0][at], parts[0][at + 1], parts[0][at + 2], parts[0][at + 3]]))
    }

    fn shader(&self) -> Shader {
        Shader::plain("f32", include_str!("../../shaders/codec/f32.wgsl"))
    }
}

struct Values<'a> {
    dim: usize,
    bytes: &'a [u8],
}

impl DecodeRow for Values<'_> {
    #[inline(always)]
    fn decode_row(&self, row: usize, out: &mut [f32]) {
        let bytes = &self.bytes[row * self.dim * 4..][..self.dim * 4];
        if cfg!(target_endian = "little") {
            bytemuck::cast_slice_mut(out).copy_from_slice(bytes);
        } else {
            for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
                *value = f32::from_le_bytes(*bytes);
            }
        }
    }
}

impl FoldRow for Values<'_> {
    #[inline(always)]
    fn touch_folded(&self, row: usize) -> u8 {
        touch(&self.bytes[row * self.dim * 4..][..self.dim * 4])
    }

    #[inline(always)]
    fn fold_columns(&self, row: usize, first: usize, out: &mut [f32], fold: impl Fold) {
        let bytes = &self.bytes[(row * self.dim + first) * 4..][..out.len() * 4];
        for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
            *value = fold.fold(*value, f32::from_le_bytes(*bytes));
        }
    }
}
