//! What ids name, read naively: by the scheme string, in numbers of 128 bits, without the library's code.

use gatherum::{IdPolicy, Scheme, TableSpec};

use crate::fixture::narrow;

/// The stored rows that an id reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Read {
    rows: [u32; 4],
    count: usize,
}

impl Read {
    pub(crate) fn of(rows: &[u32]) -> Self {
        let mut all = [0; 4];
        all[..rows.len()].copy_from_slice(rows);
        Self { rows: all, count: rows.len() }
    }

    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows[..self.count]
    }

    /// The same of other row numbers.
    pub(crate) fn map(&self, row: impl Fn(u32) -> u32) -> Self {
        Self::of(&self.rows().iter().map(|stored| row(*stored)).collect::<Vec<_>>())
    }
}

impl From<u32> for Read {
    fn from(row: u32) -> Self {
        Self::of(&[row])
    }
}

/// How the ids of a table are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    /// Rows of the table.
    pub(crate) rows: u32,
    index: Option<Index>,
}

/// Stored rows that ids share.
#[derive(Clone, Copy, Debug)]
enum Index {
    Hash { rows: u32, mixed: bool },
    MultiHash { tables: u32, rows: u32 },
    Quotient { rows: u32, op: Op },
}

/// What is made of two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Add,
    Mul,
    Concat,
}

impl Index {
    /// What the scheme string says: `hash:rows=N,fn=mix/CODEC`.
    fn of(scheme: &Scheme) -> Option<Self> {
        let text = scheme.to_string();
        let (name, options) = text.split_once('/')?.0.split_once(':')?;
        let option = |name: &str| options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
        let number = |name: &str| option(name).expect("a number").parse().expect("a number");
        match name {
            "hash" => Some(Self::Hash { rows: number("rows"), mixed: option("fn") == Some("mix") }),
            "multihash" => Some(Self::MultiHash { tables: number("k"), rows: number("rows") }),
            "qr" => {
                let op = [("add", Op::Add), ("mul", Op::Mul), ("concat", Op::Concat)];
                let op = op.iter().find(|(name, _)| option("op").unwrap_or("add") == *name);
                Some(Self::Quotient { rows: number("rows"), op: op.expect("an operation").1 })
            }
            _ => None,
        }
    }

    /// Those that a table of `rows` stores.
    fn stored_rows(self, of: u32) -> u32 {
        match self {
            Self::Hash { rows, .. } | Self::MultiHash { rows, .. } => rows,
            Self::Quotient { rows, .. } => rows + of.div_ceil(rows),
        }
    }

    fn read(self, of: u32, id: u64) -> Read {
        let modulo =
            |number: u128, rows: u32| u32::try_from(number % u128::from(rows)).expect("less than a number of rows");
        let hash = |seed: u32| u128::from(murmur3(&id.to_le_bytes(), seed));
        let id = u128::from(id);
        match self {
            Self::Hash { rows, mixed } => Read::from(modulo(if mixed { hash(0) } else { id }, rows)),
            Self::MultiHash { tables, rows } => {
                let mut start = 0;
                let read = (0..tables).map(|table| {
                    let length = rows / tables + u32::from(table < rows % tables);
                    start += length;
                    start - length + modulo(hash(0x9e37_79b9_u32.wrapping_mul(table)), length)
                });
                Read::of(&read.collect::<Vec<_>>())
            }
            Self::Quotient { rows, .. } => {
                Read::of(&[modulo(id, rows), rows + modulo(id / u128::from(rows), of.div_ceil(rows))])
            }
        }
    }

    fn op(self) -> Op {
        if let Self::Quotient { op, .. } = self { op } else { Op::Add }
    }
}

impl Names {
    /// Ids that are row numbers.
    pub(crate) fn direct(rows: u32) -> Self {
        Self { rows, index: None }
    }

    pub(crate) fn of(spec: &TableSpec) -> Self {
        let rows = spec.shape().rows();
        Self { rows, index: Index::of(spec.scheme()).filter(|_| rows > 0) }
    }

    /// Rows that are stored.
    pub(crate) fn stored_rows(&self) -> u32 {
        self.index.map_or(self.rows, |index| index.stored_rows(self.rows))
    }

    /// The stored rows that an id names.
    pub(crate) fn row(&self, id: i128, policy: IdPolicy) -> Option<Read> {
        let rows = i128::from(self.rows);
        let wraps = policy == IdPolicy::Wrap && (-rows..0).contains(&id);
        let id = u64::try_from(if wraps { id + rows } else { id }).ok()?;
        match self.index {
            Some(index) => Some(index.read(self.rows, id)),
            None => u32::try_from(id).ok().filter(|id| *id < self.rows).map(Read::from),
        }
    }

    /// The stored rows of a row of the table.
    pub(crate) fn stored(&self, row: u32) -> Read {
        self.row(row.into(), IdPolicy::Error).expect("a row of the table")
    }

    /// Columns of a stored row, which are as many as those that the first one gives.
    pub(crate) fn width(&self, dim: usize) -> usize {
        self.index.map_or(dim, |index| if index.op() == Op::Concat { dim.div_ceil(2) } else { dim })
    }

    /// What is read of `stored` rows, in f64, each step rounded to f32 if `rounded`.
    pub(crate) fn join<'a, T: Copy + Into<f64> + 'a>(
        &self,
        read: Read,
        dim: usize,
        rounded: bool,
        stored: impl Fn(u32) -> &'a [T],
    ) -> Vec<f64> {
        let round = |value: f64| if rounded { f64::from(narrow(value)) } else { value };
        let op = self.index.map_or(Op::Add, Index::op);
        let mut rows = read.rows().iter().map(|row| stored(*row).iter().map(|value| (*value).into()));
        let mut joined: Vec<f64> = rows.next().expect("a row").collect();
        for row in rows {
            match op {
                Op::Concat => joined.extend(row),
                Op::Add => joined.iter_mut().zip(row).for_each(|(sum, value)| *sum = round(round(*sum) + round(value))),
                Op::Mul => joined.iter_mut().zip(row).for_each(|(sum, value)| *sum = round(round(*sum) * round(value))),
            }
        }
        joined.truncate(dim);
        joined
    }

    /// The same of f32 rows.
    pub(crate) fn join_f32<'a>(&self, read: Read, dim: usize, stored: impl Fn(u32) -> &'a [f32]) -> Vec<f32> {
        self.join(read, dim, true, stored).into_iter().map(narrow).collect()
    }

    /// How far a joined row may be from the reference in f64, of rows that are each as far as `slacks` say: to first order, and
    /// 1 % for the rest.
    pub(crate) fn slack(&self, rows: &[(&[f64], f64)]) -> f64 {
        let largest = |row: &[f64]| row.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        let unit = 2f64.powi(-24);
        let slacks = rows.iter().map(|(_, slack)| slack);
        let sizes = || rows.iter().map(|(row, _)| largest(row));
        match self.index.map_or(Op::Add, Index::op) {
            Op::Concat => slacks.fold(0.0, |most, slack| most.max(*slack)),
            Op::Add if rows.len() == 1 => slacks.sum(),
            Op::Add => 1.01 * (slacks.sum::<f64>() + 4.0 * unit * sizes().sum::<f64>()),
            Op::Mul => {
                let (one, other) = (largest(rows[0].0), largest(rows[1].0));
                1.01 * (rows[0].1 * other + rows[1].1 * one + 4.0 * unit * one * other) + f64::from(f32::MIN_POSITIVE)
            }
        }
    }
}

/// How the stored rows of a scheme are stored, and the scheme with so many of them, or few more.
pub(crate) fn resized(scheme: &Scheme, rows: u32) -> (Scheme, Scheme) {
    let Some(index) = Index::of(scheme) else { return (scheme.clone(), scheme.clone()) };
    let (Index::Hash { rows: before, .. }
    | Index::MultiHash { rows: before, .. }
    | Index::Quotient { rows: before, .. }) = index;
    let text = scheme.to_string();
    let (_, codec) = text.split_once('/').expect("a codec behind the index");
    let large = text.replacen(&format!("rows={before}"), &format!("rows={}", rows.max(4)), 1);
    (codec.parse().expect("a codec"), large.parse().expect("a scheme"))
}

/// `MurmurHash3_x86_32` of any bytes, as it was published.
pub(crate) fn murmur3(bytes: &[u8], seed: u32) -> u32 {
    let scramble = |word: u32| word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let mut hash = seed;
    let (words, rest) = bytes.as_chunks();
    for word in words {
        hash = (hash ^ scramble(u32::from_le_bytes(*word))).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if !rest.is_empty() {
        hash ^= scramble(rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)));
    }
    hash ^= u32::try_from(bytes.len()).expect("few bytes");
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
