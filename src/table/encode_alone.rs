//! Rows encoded each alone, to be written into a table that is there.

use super::encode_block::Block;
use crate::{error::EncodeError, scheme::TableSpec};

/// Encodes `values: [n, dim]` as rows of a table of `spec`, all of whose rows are stored alike and alone: the bytes of each part,
/// row behind row.
///
/// # Errors
/// [`EncodeError::NotFinite`] and [`EncodeError::Precision`], with the row's number among those given.
pub(crate) fn encode_alone(spec: &TableSpec, values: &[f32]) -> Result<Vec<Vec<u8>>, EncodeError> {
    let mut block = Block::new(spec);
    block.encode(0, values)?;
    Ok(block.parts().into_iter().map(<[u8]>::to_vec).collect())
}
