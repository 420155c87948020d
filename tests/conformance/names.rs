//! What ids name, read naively: by the scheme string, in numbers of 128 bits, without the library's code.

use gatherum::{IdPolicy, Scheme, TableSpec};

/// How the ids of a table are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    /// Rows of the table.
    pub(crate) rows: u32,
    hash: Option<Hash>,
}

/// Stored rows that ids share.
#[derive(Clone, Copy, Debug)]
struct Hash {
    rows: u32,
    mixed: bool,
}

impl Hash {
    /// What the scheme string says: `hash:rows=N,fn=mix/CODEC`.
    fn of(scheme: &Scheme) -> Option<Self> {
        let text = scheme.to_string();
        let options = text.strip_prefix("hash:rows=")?.split('/').next()?;
        let rows = options.split(',').next()?.parse().expect("a number of rows");
        Some(Self { rows, mixed: options.contains("fn=mix") })
    }

    fn row(self, id: u64) -> u32 {
        let number = if self.mixed { u128::from(murmur3(&id.to_le_bytes())) } else { u128::from(id) };
        u32::try_from(number % u128::from(self.rows)).expect("less than a number of rows")
    }
}

impl Names {
    /// Ids that are row numbers.
    pub(crate) fn direct(rows: u32) -> Self {
        Self { rows, hash: None }
    }

    pub(crate) fn of(spec: &TableSpec) -> Self {
        let rows = spec.shape().rows();
        Self { rows, hash: Hash::of(spec.scheme()).filter(|_| rows > 0) }
    }

    /// Rows that are stored.
    pub(crate) fn stored_rows(&self) -> u32 {
        self.hash.map_or(self.rows, |hash| hash.rows)
    }

    /// The stored row that an id names.
    pub(crate) fn row(&self, id: i128, policy: IdPolicy) -> Option<u32> {
        let rows = i128::from(self.rows);
        let wraps = policy == IdPolicy::Wrap && (-rows..0).contains(&id);
        let id = u64::try_from(if wraps { id + rows } else { id }).ok()?;
        match self.hash {
            Some(hash) => Some(hash.row(id)),
            None => u32::try_from(id).ok().filter(|id| *id < self.rows),
        }
    }

    /// The stored row of a row of the table.
    pub(crate) fn stored(&self, row: u32) -> u32 {
        self.row(row.into(), IdPolicy::Error).expect("a row of the table")
    }
}

/// How the stored rows of a scheme are stored, and the scheme with so many of them, or one.
pub(crate) fn resized(scheme: &Scheme, rows: u32) -> (Scheme, Scheme) {
    let Some(hash) = Hash::of(scheme) else { return (scheme.clone(), scheme.clone()) };
    let text = scheme.to_string();
    let (_, codec) = text.split_once('/').expect("a codec behind the index");
    let large = text.replacen(&format!("rows={}", hash.rows), &format!("rows={}", rows.max(1)), 1);
    (codec.parse().expect("a codec"), large.parse().expect("a scheme"))
}

/// `MurmurHash3_x86_32` with seed 0 of any bytes, as it was published.
pub(crate) fn murmur3(bytes: &[u8]) -> u32 {
    let scramble = |word: u32| word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let mut hash = 0_u32;
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
