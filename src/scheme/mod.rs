//! How a row is stored.
//!
//! A scheme is written as one string, `[index "/"] [factor "/"] codec`, that parses and prints back the same:
//! `f32`, `int8:affine,group=32`, `hash:rows=1000/lowrank:k=32/f16`. Each is one file here, one WGSL file of the same name under
//! `shaders/` (`codec/`, `factor/` or `index/`), and one line in the registry; `int2`, `int3` and `int4` are one family, `packed_int`, `csr` and `coo` another, `sparse`.

mod bands;
mod buckets;
mod codec;
mod f16;
mod f32;
mod hash;
mod hashed;
mod int8;
mod join;
mod lowrank;
mod multihash;
mod options;
mod packed_int;
mod part;
mod pool;
mod qr;
mod registry;
pub(crate) mod simd;
mod sparse;

use std::{fmt, ops::Range, str::FromStr, sync::Arc};

pub(crate) use buckets::{Buckets, MOST_READ, murmur3};
pub use codec::FitFigure;
pub(crate) use codec::{Codec, Misfit, NO_ROW, Rows, Shader, Stored};
pub(crate) use join::Join;
pub use packed_int::swap_nibbles;
pub(crate) use part::MOST_PARTS;
pub use part::{Category, Dtype, Part, RowSpan};
pub(crate) use pool::{BaggedRows, Pool};
use registry::Build;
pub use registry::SchemeInfo;

use crate::{
    error::{EncodeError, SchemeError},
    units::{Bytes, Shape},
};

/// How the rows of a table are stored.
///
/// # Examples
/// ```
/// use gatherum::{Scheme, Shape};
/// let scheme: Scheme = "int8:group=32,affine".parse()?;
/// assert_eq!(scheme.to_string(), "int8:affine,group=32");
///
/// // The size function: bytes of a table, without one.
/// let spec = "int8".parse::<Scheme>()?.spec(Shape::new(1_000_000, 128)?)?;
/// assert_eq!(spec.bytes().0, 128_000_000 + 4 * 1_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Scheme {
    codec: Arc<dyn Codec>,
}

impl Scheme {
    /// Every scheme there is, in the order of the documentation.
    #[must_use]
    pub fn all() -> &'static [SchemeInfo] {
        registry::SCHEMES
    }

    /// The first word of the scheme: the name of its labels, tests and benches, and of its files or its family's.
    #[must_use]
    pub fn stem(&self) -> &'static str {
        self.codec.shader().stem
    }

    /// The parts that a table of this scheme and `shape` consists of.
    ///
    /// # Errors
    /// [`EncodeError::Unfit`] where the scheme cannot store rows of that many columns.
    pub fn spec(&self, shape: Shape) -> Result<TableSpec, EncodeError> {
        self.codec.check(shape.dim()).map_err(|reason| EncodeError::Unfit {
            scheme: self.to_string(),
            dim: shape.dim(),
            reason,
        })?;
        Ok(TableSpec::new(self.clone(), shape))
    }

    /// The largest `|stored - original|` that this scheme may make in a row of these values.
    ///
    /// The argument for each bound stands in the scheme's own documentation (see [`Scheme::all`]). Where
    /// [`Scheme::bounds_rows`] is false, that is of a row that shares no stored one with others.
    #[must_use]
    pub fn error_bound(&self, row: &[f32]) -> f64 {
        self.codec.error_bound(row)
    }

    /// Whether [`Scheme::error_bound`] holds for every row of a table. It does not where rows share stored ones: one may be as
    /// far from its table's as the others pull it.
    #[must_use]
    pub fn bounds_rows(&self) -> bool {
        self.codec.buckets(1).is_none()
    }

    pub(crate) fn codec(&self) -> &Arc<dyn Codec> {
        &self.codec
    }

    pub(crate) fn of(codec: Arc<dyn Codec>) -> Self {
        Self { codec }
    }
}

impl FromStr for Scheme {
    type Err = SchemeError;

    fn from_str(text: &str) -> Result<Self, SchemeError> {
        registry::parse(text).map(|codec| Self { codec })
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.codec.fmt_scheme(f)
    }
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scheme({self})")
    }
}

impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Scheme {}

/// What a table is made of: a scheme, a shape, and the parts that follow from both.
///
/// This is the size function: pure, in `u64` bytes, needing neither data nor device. The encoder, the files, the
/// placement and the ledger all take their sizes from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpec {
    scheme: Scheme,
    shape: Shape,
    parts: Vec<Part>,
    bands: Vec<Band>,
}

/// Rows that are stored alike, as a table of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Band {
    /// Where they begin in the table.
    pub(crate) first_row: u32,
    /// Which of the table's parts are theirs.
    pub(crate) parts: Range<usize>,
    pub(crate) spec: Arc<TableSpec>,
}

impl TableSpec {
    fn new(scheme: Scheme, shape: Shape) -> Self {
        let parts = scheme.codec.parts(shape);
        let mut bands = Vec::new();
        let mut next = 0;
        for (rows, codec) in scheme.codec.bands(shape.rows()) {
            let shape = shape.with_rows(rows.end - rows.start);
            let spec = Arc::new(Self::new(Scheme { codec }, shape));
            let parts = next..next + spec.parts.len();
            next = parts.end;
            bands.push(Band { first_row: rows.start, parts, spec });
        }
        Self { scheme, shape, parts, bands }
    }

    /// Its bands; a table whose rows are all stored alike is one of them.
    pub(crate) fn bands(&self) -> Vec<Band> {
        if self.bands.is_empty() {
            return vec![Band { first_row: 0, parts: 0..self.parts.len(), spec: Arc::new(self.clone()) }];
        }
        self.bands.clone()
    }

    /// How rows are stored.
    #[must_use]
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Rows and columns.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Rows that the parts have: those of the shape, or those that rows and all other ids share by their hashes.
    #[must_use]
    pub fn stored_rows(&self) -> u32 {
        self.buckets().map_or(self.shape.rows(), Buckets::rows)
    }

    /// Which stored rows an id reads, where ids are no row numbers. A table of no rows has none for any id.
    pub(crate) fn buckets(&self) -> Option<Buckets> {
        if self.shape.rows() == 0 { None } else { self.scheme.codec.buckets(self.shape.rows()) }
    }

    /// Stored rows that an id reads.
    pub(crate) fn each(&self) -> usize {
        self.scheme.codec.buckets(1).map_or(1, Buckets::each)
    }

    /// The stored rows as a table of their own, whose ids are their numbers.
    pub(crate) fn stored(&self) -> Self {
        let codec = self.buckets().and_then(|_| self.scheme.codec.stores_by().cloned());
        let shape = Shape::new(self.stored_rows().into(), self.shape.dim().into());
        match (codec, shape) {
            (Some(codec), Ok(shape)) => Self::new(Scheme { codec }, shape),
            _ => self.clone(),
        }
    }

    /// That of a table of as many such rows, for one without bands.
    pub(crate) fn with_rows(&self, rows: u32) -> Self {
        Self::new(self.scheme.clone(), self.shape.with_rows(rows))
    }

    /// The same without what one table alone needed (see [`Codec::without_rows`]).
    pub(crate) fn without_rows(self) -> Self {
        match self.scheme.codec.without_rows() {
            Some(codec) => Self { scheme: Scheme { codec }, ..self },
            None => self,
        }
    }

    /// The stored tensors, in the order in which sources and sinks number them.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Bytes of all parts.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.parts.iter().map(|part| part.bytes().0).sum())
    }

    /// What is wrong with all parts of a table that were made elsewhere, where something of them could lead a decoder astray.
    pub(crate) fn malformed(&self, parts: &[&[u8]]) -> Option<String> {
        let starts = self.parts.iter().position(|part| part.starts_every().is_some())?;
        if parts[starts].iter().take(4).any(|byte| *byte != 0) {
            return Some(format!("part `{}` does not begin with 0", self.parts[starts].name()));
        }
        let (row, reason) = self.scheme.codec.malformed(self.stored_rows(), self.shape.dim() as usize, parts)?;
        Some(format!("row {row}: {reason}"))
    }

    /// Whether each row is stored by itself, so that it can be written alone; the reason where not.
    #[cfg(all(feature = "journal", not(target_arch = "wasm32")))]
    pub(crate) fn rows_alone(&self) -> Result<(), &'static str> {
        if self.scheme.codec.buckets(1).is_some() {
            return Err("ids share its stored rows");
        }
        let any = |is: fn(&Part) -> bool| self.parts.iter().any(is);
        if any(|part| part.counts_values() || part.starts_every().is_some()) {
            return Err("its rows have different numbers of values");
        }
        if any(Part::is_shared) { Err("its rows share a part that was fitted to all of them") } else { Ok(()) }
    }

    /// Stored values, where rows have different numbers of them; else 0.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.parts.iter().find(|part| part.counts_values()).map_or(0, |part| part.shape()[0])
    }

    /// Bytes of one row over all parts of which rows have the same number of bytes; of the largest where bands of rows are stored each in its own way.
    #[must_use]
    pub fn row_bytes(&self) -> u64 {
        let own = || self.parts.iter().map(Part::row_bytes).sum();
        self.bands.iter().map(|band| band.spec.row_bytes()).max().unwrap_or_else(own)
    }
}
