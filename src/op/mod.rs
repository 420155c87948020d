//! What is computed.

mod bag;
mod ids;

pub use bag::{BagMode, Bags};
pub(crate) use bag::{CheckedBags, STRETCH};
pub(crate) use ids::Resolver;
pub use ids::{BadIds, IdBuffer, IdPolicy, IdSource, IdType, Ids};
