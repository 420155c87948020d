//! Errors as objects with a `code`, a `message` and the numbers that a caller acts on.

use gatherum::{
    BagsError, DeviceError, EngineError, GatherError, OverBudget, ScoreError, ShardCause, ShardError, SourceError,
    TableError,
    io::{FileError, StreamError},
};
use js_sys::Object;
use wasm_bindgen::{JsCast, JsValue};

use crate::object::{number, object, set};

/// An error of the library, on its way to JavaScript.
pub(crate) trait ToJs: std::error::Error {
    /// What kind it is.
    fn code(&self) -> &'static str;

    /// Adds what it carries.
    fn details(&self, _object: &Object) {}

    /// The object.
    fn to_js(&self) -> JsValue {
        let error = object([("code", self.code().into()), ("message", self.to_string().into())]);
        if let Some(object) = error.dyn_ref::<Object>() {
            self.details(object);
        }
        error
    }
}

/// An argument that cannot be taken.
pub(crate) fn bad_argument(message: &str) -> JsValue {
    object([("code", "bad-argument".into()), ("message", message.into())])
}

impl ToJs for OverBudget {
    fn code(&self) -> &'static str {
        "over-budget"
    }

    fn details(&self, object: &Object) {
        for (name, bytes) in
            [("needed", self.needed), ("budget", self.budget), ("live", self.live), ("largest", self.largest)]
        {
            set(object, name, &number(bytes.0));
        }
    }
}

impl ToJs for DeviceError {
    fn code(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "device-lost",
            Self::OutOfMemory { .. } => "out-of-memory",
            _ => "device-refused",
        }
    }
}

impl ToJs for EngineError {
    fn code(&self) -> &'static str {
        match self {
            Self::Device(error) => error.code(),
            _ => "no-adapter",
        }
    }
}

impl ToJs for SourceError {
    fn code(&self) -> &'static str {
        // What came is not what was stored; what did not come is the network's.
        if matches!(self, Self::Invalid(_)) { "damaged-file" } else { "network" }
    }
}

impl ToJs for ShardError {
    fn code(&self) -> &'static str {
        match &*self.cause {
            ShardCause::Source { error, .. } => error.code(),
            ShardCause::OverBudget(error) => error.code(),
            ShardCause::Device(error) => error.code(),
            _ => "network",
        }
    }

    fn details(&self, object: &Object) {
        if let ShardCause::OverBudget(error) = &*self.cause {
            error.details(object);
        }
    }
}

impl ToJs for FileError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotTable { .. } => "not-a-table",
            Self::Version { .. } | Self::NoBlocks { .. } => "unknown-version",
            Self::Scheme { .. } => "unknown-scheme",
            Self::Source(error) => error.code(),
            _ => "damaged-file",
        }
    }
}

impl ToJs for TableError {
    fn code(&self) -> &'static str {
        match self {
            Self::OverBudget(error) => error.code(),
            Self::RowTooLarge { .. } => "row-too-large",
            Self::Device(error) => error.code(),
            Self::NotOnDemand { .. } | Self::ShardBudget { .. } => "bad-argument",
            // What is left of sources here is memory that the host has not.
            _ => "out-of-memory",
        }
    }

    fn details(&self, object: &Object) {
        if let Self::OverBudget(error) = self {
            error.details(object);
        }
    }
}

impl ToJs for StreamError {
    fn code(&self) -> &'static str {
        match self {
            Self::File(error) => error.code(),
            Self::Table(error) => error.code(),
            _ => "damaged-file",
        }
    }

    fn details(&self, object: &Object) {
        if let Self::Table(error) = self {
            error.details(object);
        }
    }
}

impl ToJs for BagsError {
    fn code(&self) -> &'static str {
        "bad-bags"
    }
}

impl ToJs for GatherError {
    fn code(&self) -> &'static str {
        match self {
            Self::BadId { .. } => "bad-id",
            Self::Bags { error, .. } => error.code(),
            Self::NoDevice { .. } => "host-backend",
            Self::OverBudget(error) => error.code(),
            Self::Device(error) => error.code(),
            Self::Shard(error) => error.code(),
            _ => "too-large",
        }
    }

    fn details(&self, object: &Object) {
        match self {
            Self::BadId { table, position, id, rows, count } => {
                set(object, "table", &table.into());
                set(object, "position", &number(*position));
                set(object, "rows", &number(*rows));
                set(object, "count", &number(*count));
                if let Some(id) = id {
                    set(object, "id", &JsValue::from(*id));
                }
            }
            Self::OverBudget(error) => error.details(object),
            Self::Shard(error) => error.details(object),
            _ => {}
        }
    }
}

impl ToJs for ScoreError {
    fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too-large",
            Self::OverBudget(error) => error.code(),
            Self::Device(error) => error.code(),
            _ => "bad-query",
        }
    }

    fn details(&self, object: &Object) {
        if let Self::OverBudget(error) = self {
            error.details(object);
        }
    }
}
