//! How several stored rows become one: `shaders/join/` has the twins.

/// What is made of the rows that an id reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// Their sum, in order; of one row, the row.
    Sum,
    /// The product of two, column by column.
    Product,
    /// Two, one behind the other: the first has `ceil(dim / 2)` columns of the row, the second those that are left.
    Halves,
}

impl Join {
    /// Columns of a stored row, for rows of `dim` columns.
    pub(crate) fn width(self, dim: usize) -> usize {
        if self == Self::Halves { dim.div_ceil(2) } else { dim }
    }

    /// Joins `rows`, one behind the other, to `out: [dim]`.
    #[inline(always)]
    pub(crate) fn join(self, rows: &[f32], out: &mut [f32]) {
        let width = self.width(out.len());
        if self == Self::Halves {
            // Of an odd number, the second row's last column is none of the row's.
            return out.copy_from_slice(&rows[..out.len()]);
        }
        out.copy_from_slice(&rows[..width]);
        for row in rows[width..].chunks_exact(width) {
            let pairs = out.iter_mut().zip(row);
            match self {
                Self::Product => pairs.for_each(|(out, value)| *out *= value),
                _ => pairs.for_each(|(out, value)| *out += value),
            }
        }
    }

    /// One column of a row, each step rounded to f32; `value` gives a column of one of the `rows` stored rows.
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
    pub(super) fn reference(self, rows: usize, dim: usize, column: usize, value: impl Fn(usize, usize) -> f64) -> f64 {
        let round = |value: f64| f64::from(value as f32);
        let width = self.width(dim);
        match self {
            Self::Halves if column < width => value(0, column),
            Self::Halves => value(1, column - width),
            Self::Product => round(round(value(0, column)) * round(value(1, column))),
            Self::Sum if rows == 1 => value(0, column),
            Self::Sum => (1..rows).fold(round(value(0, column)), |sum, row| round(sum + round(value(row, column)))),
        }
    }

    /// The WGSL.
    pub(super) fn sources(self, rows: usize) -> &'static [&'static str] {
        const ONE: &str = include_str!("../../shaders/join/one.wgsl");
        const SEVERAL: &str = include_str!("../../shaders/join/several.wgsl");
        const SUM: &str = include_str!("../../shaders/join/sum.wgsl");
        const PRODUCT: &str = include_str!("../../shaders/join/product.wgsl");
        const HALVES: &str = include_str!("../../shaders/join/halves.wgsl");
        match self {
            Self::Sum if rows == 1 => &[ONE],
            Self::Sum => &[SEVERAL, SUM],
            Self::Product => &[SEVERAL, PRODUCT],
            Self::Halves => &[SEVERAL, HALVES],
        }
    }
}
