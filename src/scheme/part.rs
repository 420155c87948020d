//! The tensors a stored table consists of.

use std::{borrow::Cow, fmt};

use crate::units::Bytes;

/// Element type of a stored tensor, named as in safetensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dtype {
    /// IEEE 754 binary32, little endian.
    F32,
    /// IEEE 754 binary16, little endian.
    F16,
    /// Signed byte.
    I8,
    /// Unsigned byte.
    U8,
}

impl Dtype {
    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
            Self::I8 | Self::U8 => 1,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What bytes are for: the ledger counts by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Category {
    /// Codes or values of rows.
    Payload,
    /// Scales and zero points.
    Scales,
    /// Whatever finds rows: pointers, column numbers, maps, ids.
    Index,
    /// Results.
    Output,
    /// Copies on their way to or from the device, counters, parameters.
    Staging,
    /// Bytes that only align others.
    Padding,
}

impl Category {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 6] = [Self::Payload, Self::Scales, Self::Index, Self::Output, Self::Staging, Self::Padding];
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Payload => "payload",
            Self::Scales => "scales",
            Self::Index => "index",
            Self::Output => "output",
            Self::Staging => "staging",
            Self::Padding => "padding",
        })
    }
}

/// The most parts that a table may have.
pub(crate) const MOST_PARTS: usize = 16;

/// One stored tensor: `[rows, ...]`, row-major, no gap between rows; or one that all rows share, of whatever shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    name: Cow<'static, str>,
    dtype: Dtype,
    category: Category,
    shape: Vec<u64>,
    shared: bool,
}

impl Part {
    /// A tensor of `shape`, whose first number counts rows.
    pub(crate) fn new(name: &'static str, dtype: Dtype, category: Category, shape: Vec<u64>) -> Self {
        debug_assert!(shape.len() >= 2, "a part has rows and columns");
        Self { name: Cow::Borrowed(name), dtype, category, shape, shared: false }
    }

    /// A tensor of `shape` that all rows share.
    pub(crate) fn shared(name: &'static str, dtype: Dtype, category: Category, shape: Vec<u64>) -> Self {
        Self { shared: true, ..Self::new(name, dtype, category, shape) }
    }

    /// The same part as that of one band among several.
    pub(crate) fn of_band(self, band: usize) -> Self {
        Self { name: Cow::Owned(format!("band{band}.{}", self.name)), ..self }
    }

    /// Its name in files.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its element type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// What its bytes are for.
    #[must_use]
    pub fn category(&self) -> Category {
        self.category
    }

    /// Its dimensions; the first counts the table's rows, unless all rows share it.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Whether all rows share it: each shard of a table has a copy.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Bytes of one row; 0 of a part that all rows share.
    #[must_use]
    pub fn row_bytes(&self) -> u64 {
        if self.shared { 0 } else { self.bytes_behind_first() }
    }

    /// Bytes in all.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.shape[0] * self.bytes_behind_first())
    }

    /// Bytes that `rows` rows take of it: those of the rows, or all where they share it.
    #[must_use]
    pub fn bytes_of(&self, rows: u32) -> u64 {
        if self.shared { self.bytes().0 } else { u64::from(rows) * self.row_bytes() }
    }

    fn bytes_behind_first(&self) -> u64 {
        self.shape[1..].iter().product::<u64>() * self.dtype.bytes()
    }
}
