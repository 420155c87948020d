//! Ids: what names a row, and what a name outside of the table does.

use crate::{
    error::GatherError,
    scheme::{Buckets, NO_ROW, TableSpec},
};

/// What an id outside of the table does. It never reads another row.
///
/// In a table whose rows are shared by hashes of ids, only negative ids are outside: every unsigned number has a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IdPolicy {
    /// The call fails with [`GatherError::BadId`], and there is no output.
    #[default]
    Error,
    /// Its row is 0.0 throughout; [`BadIds`] counts it.
    Zero,
    /// Negative signed ids count from the end, as in ONNX Gather: -1 is the last row. Any other bad id is as with
    /// [`IdPolicy::Zero`].
    Wrap,
}

/// Ids of a batch: `[batch]`, from host memory.
///
/// # Examples
/// ```
/// use gatherum::Ids;
/// let ids: Ids<'_> = (&[3_u32, 1, 4][..]).into();
/// assert_eq!(ids.len(), 3);
/// let wide: Ids<'_> = (&[-1_i64]).into();
/// assert_eq!(wide.get(0), Some(-1));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Ids<'a> {
    /// Unsigned 32-bit ids.
    U32(&'a [u32]),
    /// Unsigned 64-bit ids.
    U64(&'a [u64]),
    /// Signed 64-bit ids, as PyTorch and ONNX have them.
    I64(&'a [i64]),
}

impl<'a> Ids<'a> {
    /// Their bytes as they are, and their type.
    pub(crate) fn raw(&self) -> (&'a [u8], IdType) {
        match *self {
            Self::U32(ids) => (bytemuck::cast_slice(ids), IdType::U32),
            Self::U64(ids) => (bytemuck::cast_slice(ids), IdType::U64),
            Self::I64(ids) => (bytemuck::cast_slice(ids), IdType::I64),
        }
    }

    /// Number of ids.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U32(ids) => ids.len(),
            Self::U64(ids) => ids.len(),
            Self::I64(ids) => ids.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at `position`.
    #[must_use]
    pub fn get(&self, position: usize) -> Option<i128> {
        match self {
            Self::U32(ids) => ids.get(position).map(|id| i128::from(*id)),
            Self::U64(ids) => ids.get(position).map(|id| i128::from(*id)),
            Self::I64(ids) => ids.get(position).map(|id| i128::from(*id)),
        }
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = i128> {
        (0..self.len()).filter_map(|position| self.get(position))
    }

    /// Says which ids are another one than `id`. `out` is as long.
    pub(crate) fn mark_others(&self, id: i128, out: &mut [bool]) {
        fn mark<T: Copy + PartialEq + TryFrom<i128>>(ids: &[T], id: i128, out: &mut [bool]) {
            match T::try_from(id) {
                Ok(id) => ids.iter().zip(out).for_each(|(other, out)| *out = *other != id),
                // No id of this type is that one.
                Err(_) => out.fill(true),
            }
        }
        match self {
            Self::U32(ids) => mark(ids, id, out),
            Self::U64(ids) => mark(ids, id, out),
            Self::I64(ids) => mark(ids, id, out),
        }
    }

    /// The ids at `positions`.
    ///
    /// # Panics
    /// Where `positions` passes the end, as slices do.
    #[must_use]
    pub fn slice(&self, positions: std::ops::Range<usize>) -> Ids<'a> {
        match self {
            Self::U32(ids) => Ids::U32(&ids[positions]),
            Self::U64(ids) => Ids::U64(&ids[positions]),
            Self::I64(ids) => Ids::I64(&ids[positions]),
        }
    }
}

macro_rules! ids_from {
    ($($variant:ident $id:ty),*) => {$(
        impl<'a> From<&'a [$id]> for Ids<'a> {
            fn from(ids: &'a [$id]) -> Self {
                Self::$variant(ids)
            }
        }
        impl<'a> From<&'a Vec<$id>> for Ids<'a> {
            fn from(ids: &'a Vec<$id>) -> Self {
                Self::$variant(ids)
            }
        }
        impl<'a, const N: usize> From<&'a [$id; N]> for Ids<'a> {
            fn from(ids: &'a [$id; N]) -> Self {
                Self::$variant(ids)
            }
        }
    )*};
}
ids_from!(U32 u32, U64 u64, I64 i64);

/// Type of ids in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdType {
    /// `u32`, 4 bytes.
    U32,
    /// `u64`, 8 bytes, the low word first.
    U64,
    /// `i64`, 8 bytes, the low word first.
    I64,
}

impl IdType {
    /// Words of 4 bytes.
    #[must_use]
    pub const fn words(self) -> u32 {
        match self {
            Self::U32 => 1,
            Self::U64 | Self::I64 => 2,
        }
    }

    /// The id that these bytes, as many as it has, are.
    pub(crate) fn read(self, bytes: &[u8]) -> i128 {
        let mut id = [0; 8];
        id[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
        match self {
            Self::U32 | Self::U64 => i128::from(u64::from_le_bytes(id)),
            Self::I64 => i128::from(i64::from_le_bytes(id)),
        }
    }
}

/// Ids of a batch in a buffer of the engine's device: `[count]`.
///
/// The buffer needs `STORAGE`; with `COPY_SRC` beside it, errors can tell the value of a bad id.
#[derive(Clone, Copy, Debug)]
pub struct IdBuffer<'a> {
    /// The buffer.
    pub buffer: &'a wgpu::Buffer,
    /// Where the first id begins, in bytes: a multiple of 4.
    pub offset: u64,
    /// How many there are.
    pub count: u32,
    /// Their type.
    pub id_type: IdType,
}

/// Ids from host memory or from a buffer of the device.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum IdSource<'a> {
    /// In host memory.
    Host(Ids<'a>),
    /// On the device.
    Device(IdBuffer<'a>),
}

impl<'a, T: Into<Ids<'a>>> From<T> for IdSource<'a> {
    fn from(ids: T) -> Self {
        Self::Host(ids.into())
    }
}

impl<'a> From<IdBuffer<'a>> for IdSource<'a> {
    fn from(ids: IdBuffer<'a>) -> Self {
        Self::Device(ids)
    }
}

/// The ids of a batch that named no row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BadIds {
    /// How many.
    pub count: u64,
    /// Position of the first in the batch; `None` where there is none.
    pub first: Option<u64>,
}

impl BadIds {
    /// Adds those of a later part of the batch that starts at `position`.
    pub(crate) fn merge(&mut self, position: u64, later: Self) {
        self.count += later.count;
        let later = later.first.map(|first| first + position);
        self.first = match (self.first, later) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

/// Turns ids into numbers of stored rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolver {
    rows: u32,
    policy: IdPolicy,
    /// Which rows an id reads, where it is no row number.
    buckets: Option<Buckets>,
    /// As many.
    each: usize,
}

impl Resolver {
    pub(crate) fn new(spec: &TableSpec, policy: IdPolicy) -> Self {
        Self { rows: spec.shape().rows(), policy, buckets: spec.buckets(), each: spec.each() }
    }

    /// Rows that an id reads.
    pub(crate) fn each(self) -> usize {
        self.each
    }

    /// Fills `out` with the rows of `ids` (as long, or [`Resolver::each`] times), [`NO_ROW`] for bad ones, and says how many were
    /// bad.
    pub(crate) fn resolve(self, ids: Ids<'_>, out: &mut [u32]) -> BadIds {
        match self.buckets {
            None if self.each == 1 => self.numbers(ids, out),
            Some(buckets) if self.each == 1 => self.hashed(buckets, ids, out),
            buckets => self.several(buckets, ids, out),
        }
    }

    /// Ids that are row numbers.
    fn numbers(self, ids: Ids<'_>, out: &mut [u32]) -> BadIds {
        let rows = u64::from(self.rows);
        let unsigned = |id: u64| if id < rows { low(id) } else { NO_ROW };
        match ids {
            Ids::U32(ids) => mark(ids, out, |id| if id < self.rows { id } else { NO_ROW }),
            Ids::U64(ids) => mark(ids, out, unsigned),
            Ids::I64(ids) => mark(ids, out, |id| match u64::try_from(id) {
                Ok(id) => unsigned(id),
                Err(_) => self.counted(id).map_or(NO_ROW, low),
            }),
        }
    }

    /// Ids of which all but negative ones have a row.
    fn hashed(self, buckets: Buckets, ids: Ids<'_>, out: &mut [u32]) -> BadIds {
        match ids {
            Ids::U32(ids) => mark(ids, out, |id| buckets.row(id.into(), 0)),
            Ids::U64(ids) => mark(ids, out, |id| buckets.row(id, 0)),
            Ids::I64(ids) => mark(ids, out, |id| self.number(id).map_or(NO_ROW, |id| buckets.row(id, 0))),
        }
    }

    /// The same where each reads several, or, in a table of no rows, none.
    fn several(self, buckets: Option<Buckets>, ids: Ids<'_>, out: &mut [u32]) -> BadIds {
        let rows = |id: Option<u64>, out: &mut [u32]| {
            for (table, out) in out.iter_mut().enumerate() {
                *out = buckets.zip(id).map_or(NO_ROW, |(buckets, id)| buckets.row(id, table));
            }
        };
        let places = out.chunks_exact_mut(self.each);
        match ids {
            Ids::U32(ids) => ids.iter().zip(places).for_each(|(id, out)| rows(Some((*id).into()), out)),
            Ids::U64(ids) => ids.iter().zip(places).for_each(|(id, out)| rows(Some(*id), out)),
            Ids::I64(ids) => ids.iter().zip(places).for_each(|(id, out)| rows(self.number(*id), out)),
        }
        let mut bad = BadIds::default();
        for (position, _) in (0..).zip(out.iter().step_by(self.each)).filter(|(_, row)| **row == NO_ROW) {
            bad.merge(position, BadIds { count: 1, first: Some(0) });
        }
        bad
    }

    /// What an id counts as, where ids are hashed.
    fn number(self, id: i64) -> Option<u64> {
        u64::try_from(id).ok().or_else(|| self.counted(id))
    }

    /// The row that a negative id counts to, where it may.
    fn counted(self, id: i64) -> Option<u64> {
        let rows = u64::from(self.rows);
        (self.policy == IdPolicy::Wrap && id.unsigned_abs() <= rows).then(|| rows - id.unsigned_abs())
    }

    /// Says how many of `ids` are bad, and where the first is.
    pub(crate) fn check(self, ids: Ids<'_>) -> BadIds {
        let mut rows = [0; 1024];
        let mut bad = BadIds::default();
        let (each, most) = (self.each(), rows.len() / self.each());
        for first in (0..ids.len()).step_by(most) {
            let length = most.min(ids.len() - first);
            bad.merge(first as u64, self.resolve(ids.slice(first..first + length), &mut rows[..length * each]));
        }
        bad
    }

    /// The error for a batch with bad ids, where the policy asks for one.
    pub(crate) fn refuse(
        self,
        table: &str,
        bad: BadIds,
        id: impl Fn(u64) -> Option<i128>,
    ) -> Result<BadIds, GatherError> {
        match bad.first {
            Some(position) if self.policy == IdPolicy::Error => Err(GatherError::BadId {
                table: table.to_owned(),
                position,
                id: id(position),
                rows: u64::from(self.rows),
                count: bad.count,
            }),
            _ => Ok(bad),
        }
    }
}

/// The low word of a number under 2^32.
#[expect(clippy::cast_possible_truncation, reason = "callers have compared it with a 32-bit number of rows")]
fn low(id: u64) -> u32 {
    id as u32
}

#[inline(always)]
fn mark<T: Copy>(ids: &[T], out: &mut [u32], row: impl Fn(T) -> u32) -> BadIds {
    // Counted without a branch, so that the loop is vectorised; the first is looked for only where there is one.
    let mut count = 0u64;
    for (id, out) in ids.iter().zip(&mut *out) {
        *out = row(*id);
        count += u64::from(*out == NO_ROW);
    }
    let first = if count == 0 { None } else { out.iter().position(|row| *row == NO_ROW) };
    BadIds { count, first: first.map(|position| position as u64) }
}
