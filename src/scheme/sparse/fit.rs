//! Which values of a table are kept: the least magnitude among them.
//!
//! ```text
//! pass 1: how many magnitudes have each upper 16 bits; the largest upper bits at or over which there are enough
//! pass 2: of those with these upper bits, how many have each lower 15 bits; the same
//! ```
//! Magnitudes of f32 are in the order of their bits.

use super::{Fitted, Keep};
use crate::{error::EncodeError, scheme::Rows};

const UPPER: usize = 1 << 16;
const LOWER_BITS: u32 = 15;

/// So many values are the share of all, rounded up.
pub(super) fn count(share: f64, all: u64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share of a number is one up to it"
    )]
    let count = (share * all as f64).ceil() as u64;
    count.min(all)
}

pub(super) fn fit(keep: Keep, rows: &mut dyn Rows) -> Result<Fitted, EncodeError> {
    let values = u64::from(rows.shape().rows()) * u64::from(rows.shape().dim());
    let smallest = f32::from_bits(1);
    let wanted = match keep {
        Keep::NonZeros => return from(smallest, values, rows),
        Keep::From(least) => return from(least.max(smallest), values, rows),
        Keep::Share(share) => count(share, values),
        Keep::Largest(count) => count.into(),
    };
    let mut upper = Counts::new(UPPER);
    rows.pass(&mut |values| values.iter().for_each(|value| upper.add(magnitude(*value) >> LOWER_BITS, *value)))?;
    let total: f64 = upper.0.iter().map(|bin| bin.energy).sum();
    if wanted == 0 {
        return Ok(Fitted { least: f32::INFINITY, kept: 0, values, energy: share(0.0, total) });
    }
    let (bin, over) = upper.reach(wanted);
    let mut lower = Counts::new(1 << LOWER_BITS);
    rows.pass(&mut |values| {
        for value in values.iter().filter(|value| magnitude(**value) >> LOWER_BITS == bin) {
            lower.add(magnitude(*value) & ((1 << LOWER_BITS) - 1), *value);
        }
    })?;
    let (low, inside) = lower.reach(wanted.saturating_sub(over.count));
    let kept = over.and(inside).and(lower.0[low as usize]);
    let least = f32::from_bits(bin << LOWER_BITS | low).max(smallest);
    Ok(Fitted { least, kept: kept.count, values, energy: share(kept.energy, total) })
}

/// Some values: how many, and the sum of their squares.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    energy: f64,
}

impl Sums {
    fn and(self, other: Self) -> Self {
        Self { count: self.count + other.count, energy: self.energy + other.energy }
    }

    fn add(&mut self, value: f32) {
        *self = self.and(Self { count: 1, energy: f64::from(value) * f64::from(value) });
    }
}

/// Values by some bits of their magnitudes; zeros are left out.
struct Counts(Vec<Sums>);

impl Counts {
    fn new(bins: usize) -> Self {
        Self(vec![Sums::default(); bins])
    }

    fn add(&mut self, bin: u32, value: f32) {
        if value != 0.0 {
            self.0[bin as usize].add(value);
        }
    }

    /// The greatest bin such that there are `wanted` values in it and over it, or else 0, and what is over it.
    fn reach(&self, wanted: u64) -> (u32, Sums) {
        let mut over = Sums::default();
        for (bin, here) in self.0.iter().enumerate().rev() {
            if bin == 0 || over.count + here.count >= wanted {
                return (u32::try_from(bin).unwrap_or(u32::MAX), over);
            }
            over = over.and(*here);
        }
        (0, over)
    }
}

/// Values of a magnitude of at least `least`.
fn from(least: f32, values: u64, rows: &mut dyn Rows) -> Result<Fitted, EncodeError> {
    let (mut kept, mut dropped) = (Sums::default(), Sums::default());
    rows.pass(&mut |values| {
        for value in values {
            if value.abs() >= least { kept.add(*value) } else { dropped.add(*value) }
        }
    })?;
    Ok(Fitted { least, kept: kept.count, values, energy: share(kept.energy, kept.energy + dropped.energy) })
}

fn magnitude(value: f32) -> u32 {
    value.to_bits() & 0x7fff_ffff
}

fn share(part: f64, all: f64) -> f64 {
    if all == 0.0 { 1.0 } else { (part / all).min(1.0) }
}
