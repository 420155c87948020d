//! What is computed.

mod best;
mod ids;
mod score;

pub(crate) use best::Best;
pub(crate) use ids::Resolver;
pub use ids::{BadIds, IdBuffer, IdPolicy, IdSource, IdType, Ids};
pub use score::Metric;
pub(crate) use score::{LANES, Panel, Queries, SPAN_COLUMNS, Sums, rows};
