//! Pipelines from the files under `shaders/`, put one behind another.

use crate::scheme::{Scheme, TableSpec};

/// How results are laid out: which `shaders/out/` file, and which operation can use it.
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
    /// Scores of so many queries a thread, and the squares of rows where asked for.
    Scores { tile: u8, squares: bool },
}

impl Sink {
    pub(crate) const ALL: [Self; 7] = [
        Self::F32x4,
        Self::F32x1,
        Self::F16x8,
        Self::F16x2,
        Self::F16x1,
        Self::Scores { tile: 1, squares: false },
        Self::Scores { tile: 4, squares: true },
    ];

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
        const GATHER: &str = include_str!("../../shaders/op/gather.wgsl");
        const GATHER_HALVES: &str = include_str!("../../shaders/op/gather_halves.wgsl");
        const SCORE: &str = include_str!("../../shaders/op/score.wgsl");
        match self {
            Self::F32x4 => &[F32X4, GATHER],
            Self::F32x1 => &[F32X1, GATHER],
            Self::F16x8 => &[HALF, F16X8, GATHER],
            Self::F16x2 => &[HALF, F16X2, GATHER],
            Self::F16x1 => &[HALF, GATHER_HALVES],
            Self::Scores { .. } => &[SCORE],
        }
    }

    /// The operation.
    fn stem(self) -> &'static str {
        if matches!(self, Self::Scores { .. }) { "score" } else { "gather" }
    }

    /// What says which row an id names: nothing where there are no ids.
    pub(crate) fn index(self) -> Option<&'static str> {
        match self {
            Self::Scores { .. } => None,
            _ => Some(include_str!("../../shaders/index/direct.wgsl")),
        }
    }

    /// Values of its own constants.
    pub(crate) fn constants(self) -> Vec<(&'static str, f64)> {
        match self {
            Self::Scores { tile, squares } => {
                vec![("TILE", f64::from(tile)), ("SQUARES", f64::from(u8::from(squares)))]
            }
            _ => Vec::new(),
        }
    }

    /// The entry point, which is the stem of the operation's file.
    pub(crate) fn entry(self) -> &'static str {
        match self {
            Self::F16x1 => "gather_halves",
            Self::Scores { .. } => "score",
            _ => "gather",
        }
    }
}

/// Which shards a pipeline binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bound {
    /// One.
    One,
    /// So many, up to [`SHARDS_A_PASS`](super::params::SHARDS_A_PASS).
    Several(u8),
}

impl Bound {
    fn source(self) -> &'static str {
        match self {
            Self::One => include_str!("../../shaders/placement/one.wgsl"),
            Self::Several(_) => include_str!("../../shaders/placement/several.wgsl"),
        }
    }
}

/// The text of a pipeline.
pub(crate) fn compose(scheme: &Scheme, bound: Bound, sink: Sink) -> String {
    let mut text = String::new();
    let shader = scheme.codec().shader();
    let parts = [
        include_str!("../../shaders/contract.wgsl"),
        sink.index().unwrap_or_default(),
        bound.source(),
        include_str!("../../shaders/codec/packed.wgsl"),
        shader.codec,
        shader.factor,
    ];
    for part in parts.iter().chain(sink.sources()) {
        text.push_str(part);
        text.push('\n');
    }
    text
}

/// Values of the constants that follow from the table; the recorder adds those of the call.
pub(crate) fn table_constants(spec: &TableSpec, bound: Bound) -> Vec<(&'static str, f64)> {
    let dim = spec.shape().dim();
    #[expect(clippy::cast_precision_loss, reason = "a row has under 2^32 bytes")]
    let row_bytes = spec.parts()[0].row_bytes() as f64;
    let mut constants = vec![("DIM", f64::from(dim)), ("ROW_BYTES", row_bytes)];
    constants.extend(spec.scheme().codec().constants(dim));
    if let Bound::Several(shards) = bound {
        constants.push(("BOUND", f64::from(shards)));
    }
    constants
}

/// A composed pipeline, for the shader gates.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ComposedShader {
    /// `gather.int8.one.F32x4`.
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
            for sink in Sink::ALL {
                let dims: &[u64] = match sink {
                    Sink::F32x4 => &[100, 128],
                    Sink::F32x1 => &[1, 13],
                    Sink::F16x8 => &[8, 128],
                    Sink::F16x2 => &[100, 2],
                    Sink::F16x1 => &[1, 257],
                    // All their rows are in one shard.
                    Sink::Scores { .. } if bound != Bound::One => &[],
                    Sink::Scores { .. } => &[100, 128],
                };
                for &dim in dims {
                    let shape = crate::Shape::new(1000, dim);
                    let Some(spec) = shape.ok().and_then(|shape| scheme.spec(shape).ok()) else { continue };
                    shaders.push(ComposedShader {
                        label: format!("{}.{scheme}.{bound:?}.{sink:?}.{dim}", sink.stem()),
                        source: compose(&scheme, bound, sink),
                        entry: sink.entry(),
                        constants: [table_constants(&spec, bound), sink.constants()].concat(),
                    });
                }
            }
        }
    }
    shaders
}
