//! What is computed.

mod bag;
mod best;
mod ids;
mod score;
mod span;

pub use bag::{BagMode, Bags};
pub(crate) use bag::{CheckedBags, STRETCH};
pub(crate) use best::Best;
pub(crate) use ids::Resolver;
pub use ids::{BadIds, IdBuffer, IdPolicy, IdSource, IdType, Ids};
pub use score::Metric;
pub(crate) use score::{LANES, Panel, Queries, Sums, rows};
pub(crate) use span::{MOST_TURNS, longest_span};
