//! Bags with all their options.

use gatherum::{BagMode, Bags};
use wasm_bindgen::prelude::*;

use crate::{error::bad_argument, ids::OwnIds};

/// Where bags begin, and how they are folded.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawBags {
    bounds: OwnIds,
    kind: Kind,
    mode: BagMode,
    weights: Option<Vec<f32>>,
    padding: Option<i128>,
    normalised: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Offsets,
    OffsetsWithLast,
    Lengths,
}

#[wasm_bindgen]
impl RawBags {
    /// Bags by `bounds`, which are `offsets`, `offsets-with-last` or `lengths`, folded by `sum`, `mean` or `max`.
    #[wasm_bindgen(constructor)]
    pub fn new(bounds: &JsValue, kind: &str, mode: &str) -> Result<RawBags, JsValue> {
        let kind = match kind {
            "offsets" => Kind::Offsets,
            "offsets-with-last" => Kind::OffsetsWithLast,
            "lengths" => Kind::Lengths,
            other => return Err(bad_argument(&format!("no kind of bounds is called `{other}`"))),
        };
        let mode = match mode {
            "sum" => BagMode::Sum,
            "mean" => BagMode::Mean,
            "max" => BagMode::Max,
            other => return Err(bad_argument(&format!("mode is `{other}`; it may be sum, mean or max"))),
        };
        let bounds = OwnIds::new("the bounds of bags", bounds)?;
        Ok(Self { bounds, kind, mode, weights: None, padding: None, normalised: false })
    }

    /// A weight for each id.
    #[wasm_bindgen(js_name = setWeights)]
    pub fn set_weights(&mut self, weights: Vec<f32>) {
        self.weights = Some(weights);
    }

    /// An id to ignore, a `BigInt`.
    #[wasm_bindgen(js_name = setPadding)]
    pub fn set_padding(&mut self, id: JsValue) -> Result<(), JsValue> {
        let id = i128::try_from(id).map_err(|_| bad_argument("paddingId must be a whole number or a BigInt"))?;
        self.padding = Some(id);
        Ok(())
    }

    /// Divides each result by its L2 norm.
    #[wasm_bindgen(js_name = normalise)]
    pub fn normalise(&mut self) {
        self.normalised = true;
    }
}

impl RawBags {
    pub(crate) fn borrow(&self) -> Bags<'_> {
        let bounds = self.bounds.borrow();
        let mut bags = match self.kind {
            Kind::Offsets => Bags::offsets(bounds, self.mode),
            Kind::OffsetsWithLast => Bags::offsets_with_last(bounds, self.mode),
            Kind::Lengths => Bags::lengths(bounds, self.mode),
        };
        if let Some(weights) = &self.weights {
            bags = bags.weights(weights);
        }
        if let Some(id) = self.padding {
            bags = bags.padding_id(id);
        }
        if self.normalised { bags.l2_normalised() } else { bags }
    }
}
