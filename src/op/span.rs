//! How much of a row is taken at once.

use crate::scheme::TableSpec;

/// Mesa's llvmpipe leaves loops after so many turns, counted over all loops of a thread, without a word.
pub(crate) const MOST_TURNS: u32 = 65_535;
/// The most groups of 16 columns that a thread takes.
const LONGEST_SPAN: u32 = 256;

/// The most groups of 16 columns that one thread of a kernel takes of a row.
pub(crate) fn longest_span(spec: &TableSpec) -> u32 {
    let dim = spec.shape().dim();
    // Half of the turns are left to the operation's own loops.
    let longest = (MOST_TURNS / 2 / spec.scheme().codec().turns(dim)).clamp(1, LONGEST_SPAN);
    dim.div_ceil(16).min(longest)
}
