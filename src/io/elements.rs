//! Floating-point numbers as foreign files store them.

use half::{bf16, f16};

/// A number type and its byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) kind: Kind,
    pub(super) big_endian: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    F16,
    BF16,
    F32,
    F64,
}

/// An f64 that does not fit: its index among those decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TooLarge {
    pub(super) index: usize,
    pub(super) value: f64,
}

impl Element {
    pub(super) const fn little(kind: Kind) -> Self {
        Self { kind, big_endian: false }
    }

    /// Bytes of one number.
    pub(super) const fn bytes(self) -> usize {
        match self.kind {
            Kind::F16 | Kind::BF16 => 2,
            Kind::F32 => 4,
            Kind::F64 => 8,
        }
    }

    /// Decodes `bytes` to `out`, whose places lie `stride` apart.
    ///
    /// NaN and infinities stay what they are. A finite f64 that f32 would make infinite is refused.
    pub(super) fn decode(self, bytes: &[u8], out: &mut [f32], stride: usize) -> Result<(), TooLarge> {
        let out = out.iter_mut().step_by(stride);
        match self.kind {
            Kind::F16 => each(self, bytes, out, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Kind::BF16 => each(self, bytes, out, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            Kind::F32 => each(self, bytes, out, f32::from_le_bytes),
            Kind::F64 => {
                for (index, (out, bytes)) in out.zip(bytes.as_chunks().0).enumerate() {
                    let value = if self.big_endian { f64::from_be_bytes(*bytes) } else { f64::from_le_bytes(*bytes) };
                    *out = narrow(value);
                    if out.is_infinite() && value.is_finite() {
                        return Err(TooLarge { index, value });
                    }
                }
            }
        }
        Ok(())
    }
}

fn each<'a, const N: usize>(
    element: Element,
    bytes: &[u8],
    out: impl Iterator<Item = &'a mut f32>,
    value: impl Fn([u8; N]) -> f32,
) {
    for (out, bytes) in out.zip(bytes.as_chunks::<N>().0) {
        let mut bytes = *bytes;
        if element.big_endian {
            bytes.reverse();
        }
        *out = value(bytes);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what is wanted")]
fn narrow(value: f64) -> f32 {
    value as f32
}
