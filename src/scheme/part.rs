//! The tensors a stored table consists of.

use std::{borrow::Cow, fmt, ops::Range};

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
    /// Unsigned number of 16 bits, little endian.
    U16,
    /// Unsigned number of 32 bits, little endian.
    U32,
}

impl Dtype {
    /// Bytes of one element.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F32 | Self::U32 => 4,
            Self::F16 | Self::U16 => 2,
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

/// What the first dimension of a part counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// Rows.
    Rows,
    /// Nothing of rows: they share it.
    Shared,
    /// Stored values, of which rows have different numbers.
    Values,
    /// Where each so many rows begin among the stored values, and where the last ends.
    Starts(u32),
}

/// Rows that follow one another, with their stored values where rows have different numbers of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSpan {
    /// The rows.
    pub rows: Range<u32>,
    /// Which of the stored values are theirs; none where all rows have the same number.
    pub values: Range<u64>,
}

impl RowSpan {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.rows.end - self.rows.start
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// One stored tensor, row-major, no gap between rows: `[rows, ...]`; or one that all rows share, of whatever shape; or, where
/// rows have different numbers of values, `[values, ...]`, and `[starts, 1]` which tells where rows begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    name: Cow<'static, str>,
    dtype: Dtype,
    category: Category,
    shape: Vec<u64>,
    counts: Counts,
}

impl Part {
    /// A tensor of `shape`, whose first number counts rows.
    pub(crate) fn new(name: &'static str, dtype: Dtype, category: Category, shape: Vec<u64>) -> Self {
        debug_assert!(shape.len() >= 2, "a part has rows and columns");
        Self { name: Cow::Borrowed(name), dtype, category, shape, counts: Counts::Rows }
    }

    /// A tensor of `shape` that all rows share.
    pub(crate) fn shared(name: &'static str, dtype: Dtype, category: Category, shape: Vec<u64>) -> Self {
        Self { counts: Counts::Shared, ..Self::new(name, dtype, category, shape) }
    }

    /// Something of each of so many stored values.
    pub(crate) fn of_values(name: &'static str, dtype: Dtype, category: Category, values: u64) -> Self {
        Self { counts: Counts::Values, ..Self::new(name, dtype, category, vec![values, 1]) }
    }

    /// Where each `every` of so many rows begin among the stored values, as U32 numbers, and where the last ends.
    pub(crate) fn starts(name: &'static str, rows: u32, every: u32) -> Self {
        let shape = vec![u64::from(rows.div_ceil(every)) + 1, 1];
        Self { counts: Counts::Starts(every), ..Self::new(name, Dtype::U32, Category::Index, shape) }
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

    /// Its dimensions; the first counts the table's rows, but for parts that all rows share or that count values.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Whether all rows share it: each shard of a table has a copy.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.counts == Counts::Shared
    }

    /// Whether its first dimension counts stored values, of which rows have different numbers.
    #[must_use]
    pub fn counts_values(&self) -> bool {
        self.counts == Counts::Values
    }

    /// How many rows there are to each of its items, where it tells where rows begin.
    #[must_use]
    pub fn starts_every(&self) -> Option<u32> {
        if let Counts::Starts(every) = self.counts { Some(every) } else { None }
    }

    /// Bytes of one row; 0 of a part that rows do not have the same number of bytes of.
    #[must_use]
    pub fn row_bytes(&self) -> u64 {
        if self.counts == Counts::Rows { self.item_bytes() } else { 0 }
    }

    /// Bytes in all.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.shape[0] * self.item_bytes())
    }

    /// Which of its bytes rows take: theirs, or all where rows share it. Rows begin where a start is.
    #[must_use]
    pub fn span(&self, of: &RowSpan) -> Range<u64> {
        let items = match self.counts {
            Counts::Rows => u64::from(of.rows.start)..u64::from(of.rows.end),
            Counts::Shared => 0..self.shape[0],
            Counts::Values => of.values.clone(),
            Counts::Starts(every) => u64::from(of.rows.start / every)..u64::from(of.rows.end.div_ceil(every)) + 1,
        };
        items.start * self.item_bytes()..items.end * self.item_bytes()
    }

    /// Bytes of what the first dimension counts.
    pub(crate) fn item_bytes(&self) -> u64 {
        self.shape[1..].iter().product::<u64>() * self.dtype.bytes()
    }
}
