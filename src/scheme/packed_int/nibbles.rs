//! The two orders that 4-bit codes are packed in.

/// Converts packed 4-bit codes between the two orders there are, in place: the first column of a byte in its low half, as
/// `int4` stores it, or in its high half.
///
/// `codes: [rows, ceil(dim / 2)]` bytes. The conversion is its own inverse. Where rows have an odd number of columns, the
/// half byte that no column has changes its place too.
///
/// # Examples
/// Rows quantised elsewhere, the first column in the high half, taken over as they are:
/// ```
/// use gatherum::{EncodedTable, Shape, swap_nibbles};
/// let mut codes = vec![0x12, 0x34, 0xf0, 0x08]; // [2, 4]: 1 2 3 4, and 15 0 0 8
/// let scales = [0x3c00_u16, 0x3800].map(u16::to_le_bytes).concat(); // [2, 1]: 1.0 and 0.5 as f16
///
/// swap_nibbles(&mut codes);
/// assert_eq!(codes, [0x21, 0x43, 0x0f, 0x80]);
/// let spec = "int4".parse::<gatherum::Scheme>()?.spec(Shape::new(2, 4)?)?;
/// let table = EncodedTable::from_parts("taken over", spec, vec![codes, scales])?;
/// assert_eq!(table.reference(0, 3), (4.0 - 8.0) * 1.0);
/// assert_eq!(table.reference(1, 0), (15.0 - 8.0) * 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn swap_nibbles(codes: &mut [u8]) {
    for byte in codes {
        *byte = byte.rotate_left(4);
    }
}
