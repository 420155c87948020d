//! What is computed.

mod ids;

pub(crate) use ids::Resolver;
pub use ids::{BadIds, IdBuffer, IdPolicy, IdSource, IdType, Ids};
