//! Pipelines from the files under `shaders/`, put one behind another.

use super::params::SHARDS_A_PASS;
use crate::scheme::{Pool, Scheme, TableSpec};

/// How results are laid out: which `shaders/out/` file, by `store16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sink {
    /// f32 rows on 16 bytes.
    F32x4,
    /// f32 rows on 4 bytes.
    F32x1,
    /// f16 rows on 16 bytes.
    F16x8,
    /// f16 rows on 4 bytes.
    F16x2,
    /// f16 rows on 2 bytes.
    F16x1,
    /// No rows: the operation stores what it has by itself.
    Own,
}

impl Sink {
    /// Dimensions that it takes, for the shader gates.
    fn dims(self) -> [u64; 2] {
        match self {
            Self::F32x4 => [100, 128],
            Self::F32x1 => [1, 13],
            Self::F16x8 => [8, 128],
            Self::F16x2 => [100, 2],
            Self::F16x1 => [1, 257],
            Self::Own => [100, 128],
        }
    }

    /// The fastest sink for f32 rows of `dim` columns from `offset` on, in bytes.
    pub(crate) fn f32(dim: u32, offset: u64) -> Self {
        if dim.is_multiple_of(4) && offset.is_multiple_of(16) { Self::F32x4 } else { Self::F32x1 }
    }

    /// The fastest sink for f16 rows of `dim` columns from `offset` on, in bytes.
    pub(crate) fn f16(dim: u32, offset: u64) -> Self {
        match dim {
            dim if dim.is_multiple_of(8) && offset.is_multiple_of(16) => Self::F16x8,
            dim if dim.is_multiple_of(2) => Self::F16x2,
            _ => Self::F16x1,
        }
    }

    fn sources(self) -> &'static [&'static str] {
        const F32X4: &str = include_str!("../../shaders/out/f32x4.wgsl");
        const F32X1: &str = include_str!("../../shaders/out/f32x1.wgsl");
        const HALF: &str = include_str!("../../shaders/out/half.wgsl");
        const F16X8: &str = include_str!("../../shaders/out/f16x8.wgsl");
        const F16X2: &str = include_str!("../../shaders/out/f16x2.wgsl");
        match self {
            Self::F32x4 => &[F32X4],
            Self::F32x1 => &[F32X1],
            Self::F16x8 => &[HALF, F16X8],
            Self::F16x2 => &[HALF, F16X2],
            Self::F16x1 => &[HALF],
            Self::Own => &[],
        }
    }
}

/// What is computed: which `shaders/op/` file, and its constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// Rows by id.
    Gather,
    /// The same as f16 rows on 2 bytes.
    GatherHalves,
    /// Rows of a bag as one.
    Bag {
        /// How.
        pool: Pool,
        /// Whether rows have weights.
        weighted: bool,
    },
    /// Rows of the output divided by their L2 norms.
    Normalise,
    /// Sums of the products of all rows and some queries.
    Score {
        /// Queries a thread.
        tile: u8,
        /// Whether rows are multiplied with themselves too.
        squares: bool,
    },
}

impl Op {
    fn source(self) -> &'static str {
        match self {
            Self::Gather => include_str!("../../shaders/op/gather.wgsl"),
            Self::GatherHalves => include_str!("../../shaders/op/gather_halves.wgsl"),
            Self::Bag { .. } => include_str!("../../shaders/op/bag.wgsl"),
            Self::Normalise => include_str!("../../shaders/op/normalise.wgsl"),
            Self::Score { .. } => include_str!("../../shaders/op/score.wgsl"),
        }
    }

    /// The entry point, which is the stem of the operation's file.
    pub(crate) fn entry(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::GatherHalves => "gather_halves",
            Self::Bag { .. } => "bag",
            Self::Normalise => "normalise",
            Self::Score { .. } => "score",
        }
    }

    /// Values of the operation's own `override` constants.
    pub(crate) fn constants(self) -> Vec<(&'static str, f64)> {
        let flag = |value| f64::from(u8::from(value));
        match self {
            Self::Bag { pool, weighted } => vec![("MAX", flag(pool == Pool::Max)), ("WEIGHTED", flag(weighted))],
            Self::Score { tile, squares } => vec![("TILE", f64::from(tile)), ("SQUARES", flag(squares))],
            _ => Vec::new(),
        }
    }

    /// Whether it counts bad ids on the device, or has a second result, where that would be.
    pub(crate) fn has_status(self) -> bool {
        matches!(self, Self::Gather | Self::GatherHalves | Self::Score { .. })
    }

    /// Whether rows are named by ids; not for an operation on all rows.
    pub(crate) fn has_ids(self) -> bool {
        !matches!(self, Self::Score { .. })
    }

    /// Whether it comes with so many shards: rows that are scored together are all in one, unless each is of several.
    fn takes(self, bound: Bound, scheme: &Scheme) -> bool {
        bound == Bound::One || !matches!(self, Self::Score { .. }) || several(scheme)
    }

    /// Whether it needs to know which stored rows an id reads: a number of a stored row is one itself.
    fn hashes(self, scheme: &Scheme) -> bool {
        self.has_ids() || several(scheme)
    }

    /// The sinks it writes to, by way of `store16` or by itself.
    fn sinks(self) -> &'static [Sink] {
        match self {
            Self::Gather => &[Sink::F32x4, Sink::F32x1, Sink::F16x8, Sink::F16x2],
            Self::GatherHalves => &[Sink::F16x1],
            Self::Bag { .. } | Self::Normalise => &[Sink::F32x4, Sink::F32x1],
            Self::Score { .. } => &[Sink::Own],
        }
    }

    /// Every operation there is.
    fn all() -> Vec<Self> {
        let bags = [(Pool::Sum, false), (Pool::Sum, true), (Pool::Max, false)];
        let bags = bags.map(|(pool, weighted)| Self::Bag { pool, weighted });
        let scores = [(1, false), (4, true)].map(|(tile, squares)| Self::Score { tile, squares });
        [Self::Gather, Self::GatherHalves, Self::Normalise].into_iter().chain(bags).chain(scores).collect()
    }
}

/// Which shards a pipeline binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bound {
    /// One.
    One,
    /// So many, up to [`SHARDS_A_PASS`].
    Several(u8),
}

impl Bound {
    /// As many as a pass binds.
    #[expect(clippy::cast_possible_truncation, reason = "a pass binds few")]
    pub(crate) const MOST: Self = Self::Several(SHARDS_A_PASS as u8);

    /// How many bindings there are for shards.
    pub(crate) fn places(self) -> usize {
        if self == Self::One { 1 } else { SHARDS_A_PASS }
    }

    fn source(self) -> &'static str {
        match self {
            Self::One => include_str!("../../shaders/placement/one.wgsl"),
            Self::Several(_) => include_str!("../../shaders/placement/several.wgsl"),
        }
    }
}

/// Whether an id reads several stored rows.
fn several(scheme: &Scheme) -> bool {
    scheme.codec().buckets(1).is_some_and(|buckets| buckets.each() > 1)
}

/// The text of a pipeline.
pub(crate) fn compose(scheme: &Scheme, bound: Bound, sink: Sink, op: Op) -> String {
    let shader = scheme.codec().shader();
    let mut parts = vec![include_str!("../../shaders/contract.wgsl")];
    if op.has_ids() {
        parts.extend([include_str!("../../shaders/index/ids.wgsl"), shader.ids]);
    }
    if op.hashes(scheme) {
        parts.extend(shader.index);
    }
    parts.extend([bound.source(), include_str!("../../shaders/codec/packed.wgsl"), shader.codec, shader.factor]);
    parts.extend(shader.join.iter().chain(sink.sources()).chain([&op.source()]));
    let mut text = String::new();
    for part in parts {
        text.push_str(part);
        text.push('\n');
    }
    text
}

/// Values of the constants that follow from the table; the recorder adds those of the call.
pub(crate) fn table_constants(spec: &TableSpec, bound: Bound, op: Op) -> Vec<(&'static str, f64)> {
    let dim = spec.shape().dim();
    // A row of which there is no such number has a decoder that does not ask for it; shaders compute with it all the same.
    #[expect(clippy::cast_precision_loss, reason = "a row has under 2^32 bytes")]
    let row_bytes = spec.parts()[0].row_bytes().max(1) as f64;
    let mut constants = vec![("DIM", f64::from(dim)), ("ROW_BYTES", row_bytes)];
    constants.extend(spec.scheme().codec().constants(dim));
    if let Some(buckets) = spec.buckets().filter(|_| op.hashes(spec.scheme())) {
        constants.extend(buckets.constants());
    }
    if let Bound::Several(shards) = bound {
        constants.push(("BOUND", f64::from(shards)));
    }
    constants
}

/// A composed pipeline, for the shader gates.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ComposedShader {
    /// `gather int8 One F32x4 128`: operation, scheme, shards, output, columns.
    pub label: String,
    /// WGSL.
    pub source: String,
    /// The entry point.
    pub entry: &'static str,
    /// Values of `override` constants.
    pub constants: Vec<(&'static str, f64)>,
}

/// Every pipeline the engine may make, for each variant of each scheme, at a dimension that the sink takes.
pub(crate) fn composed_shaders() -> Vec<ComposedShader> {
    let mut shaders = Vec::new();
    let variants = Scheme::all().iter().flat_map(|info| info.variants);
    for scheme in variants.filter_map(|text| text.parse::<Scheme>().ok()) {
        for bound in [Bound::One, Bound::Several(5)] {
            for op in Op::all().into_iter().filter(|op| op.takes(bound, &scheme)) {
                for (sink, dim) in op.sinks().iter().flat_map(|sink| sink.dims().map(|dim| (*sink, dim))) {
                    let shape = crate::Shape::new(1000, dim);
                    let Some(spec) = shape.ok().and_then(|shape| scheme.spec(shape).ok()) else { continue };
                    let constants = op.constants();
                    let stem = op.entry();
                    let flags: String = constants.iter().map(|(_, value)| format!(".{value}")).collect();
                    shaders.push(ComposedShader {
                        label: format!("{stem} {scheme} {bound:?} {sink:?} {dim}{flags}"),
                        source: compose(&scheme, bound, sink, op),
                        entry: op.entry(),
                        constants: table_constants(&spec, bound, op).into_iter().chain(constants).collect(),
                    });
                }
            }
        }
    }
    shaders.extend(super::dynamic::composed_shaders());
    shaders
}
