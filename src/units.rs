//! Shapes and byte counts, checked once where they enter.

use std::fmt;

use crate::error::ShapeError;

/// The most rows one table may have: row numbers are 32 bits in the shaders, and the last value marks "no row".
pub const MAX_ROWS: u64 = u32::MAX as u64 - 1;

/// The most columns one table may have.
pub const MAX_DIM: u32 = 1 << 20;

/// The shape of an embedding table: `[rows, dim]`, row-major.
///
/// A value of this type has been checked: `rows <= MAX_ROWS`, `1 <= dim <= MAX_DIM`, so that sizes in bytes
/// never overflow a `u64`.
///
/// # Examples
/// ```
/// use gatherum::Shape;
/// let shape = Shape::new(341_479, 100)?;
/// assert_eq!(shape.f32_bytes().0, 136_591_600);
/// assert!(Shape::new(1, 0).is_err());
/// # Ok::<(), gatherum::ShapeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    rows: u32,
    dim: u32,
}

impl Shape {
    /// Checks a shape of `rows` by `dim`.
    ///
    /// # Errors
    /// [`ShapeError`] where `dim` is 0 or over [`MAX_DIM`], or `rows` is over [`MAX_ROWS`].
    pub fn new(rows: u64, dim: u64) -> Result<Self, ShapeError> {
        match u32::try_from(dim) {
            Ok(0) => Err(ShapeError::NoColumns { rows }),
            Ok(dim) if dim <= MAX_DIM => match u32::try_from(rows) {
                Ok(rows) if u64::from(rows) <= MAX_ROWS => Ok(Self { rows, dim }),
                _ => Err(ShapeError::TooManyRows { rows, most: MAX_ROWS }),
            },
            _ => Err(ShapeError::TooManyColumns { dim, most: MAX_DIM }),
        }
    }

    /// That of as many rows of its columns, of which there may be [`MAX_ROWS`].
    pub(crate) fn with_rows(self, rows: u32) -> Self {
        debug_assert!(u64::from(rows) <= MAX_ROWS, "{rows} rows");
        Self { rows, ..self }
    }

    /// Number of rows.
    #[must_use]
    pub const fn rows(self) -> u32 {
        self.rows
    }

    /// Number of columns of a row.
    #[must_use]
    pub const fn dim(self) -> u32 {
        self.dim
    }

    /// What the table would take as plain f32.
    #[must_use]
    pub fn f32_bytes(self) -> Bytes {
        Bytes(u64::from(self.rows) * u64::from(self.dim) * 4)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.rows, self.dim)
    }
}

/// A number of bytes. Prints in decimal units (`136.6 MB`); `{:#}` prints the exact number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
        if f.alternate() || self.0 < 1000 {
            return write!(f, "{} B", self.0);
        }
        #[expect(clippy::cast_precision_loss, reason = "a figure of four digits is printed")]
        let mut value = self.0 as f64 / 1000.0;
        let mut unit = 0;
        while value >= 999.95 && unit + 1 < UNITS.len() {
            value /= 1000.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}

/// `value` rounded up to a multiple of `step`.
pub(crate) const fn round_up(value: u64, step: u64) -> u64 {
    value.div_ceil(step) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_checked() {
        assert!(Shape::new(0, 1).is_ok());
        assert!(Shape::new(MAX_ROWS, u64::from(MAX_DIM)).is_ok());
        assert!(Shape::new(MAX_ROWS + 1, 1).is_err());
        assert!(Shape::new(u64::MAX, 1).is_err());
        assert!(Shape::new(1, u64::from(MAX_DIM) + 1).is_err());
        assert!(Shape::new(1, u64::MAX).is_err());
    }

    #[test]
    fn bytes_print_in_decimal_units() {
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(Bytes(136_591_600).to_string(), "136.6 MB");
        assert_eq!(Bytes(999_999).to_string(), "1.0 MB");
        assert_eq!(format!("{:#}", Bytes(136_591_600)), "136591600 B");
    }
}
