//! Rows of a batch, each encoded by itself.

use super::WritableError;
use crate::{
    error::EncodeError,
    op::Ids,
    scheme::{Band, TableSpec},
    table::encode_alone,
};

/// A row and its bytes of all parts.
pub(super) type Encoded = (u32, Box<[u8]>);

/// Encodes `values: [ids, dim]`: rows and their bytes, in the order of the ids, but for bands.
pub(super) fn rows(file: &str, spec: &TableSpec, ids: Ids<'_>, values: &[f32]) -> Result<Vec<Encoded>, WritableError> {
    let (rows, dim) = (spec.shape().rows(), spec.shape().dim());
    let needed = (ids.len() as u64).saturating_mul(dim.into());
    if needed != values.len() as u64 {
        let (ids, got) = (ids.len() as u64, values.len() as u64);
        return Err(WritableError::Length { file: file.to_owned(), ids, dim, needed, got });
    }
    let mut places = Vec::with_capacity(ids.len());
    for (position, id) in ids.iter().enumerate() {
        match u32::try_from(id).ok().filter(|row| *row < rows) {
            Some(row) => places.push(row),
            None => return Err(WritableError::NoRow { file: file.to_owned(), position: position as u64, id, rows }),
        }
    }
    let bands = spec.bands();
    let mut encoded = Vec::with_capacity(places.len());
    for band in &bands {
        let end = band.first_row + band.spec.shape().rows();
        let own: Vec<usize> = (0..places.len()).filter(|at| (band.first_row..end).contains(&places[*at])).collect();
        encode_band(band, dim as usize, &places, &own, values, &mut encoded)
            .map_err(|(at, error)| WritableError::Encode { file: file.to_owned(), position: at as u64, error })?;
    }
    Ok(encoded)
}

/// Encodes the rows at the positions `own`; an error comes with its position.
fn encode_band(
    band: &Band,
    dim: usize,
    places: &[u32],
    own: &[usize],
    values: &[f32],
    encoded: &mut Vec<Encoded>,
) -> Result<(), (usize, EncodeError)> {
    let picked: Vec<f32>;
    let values = if own.len() == places.len() {
        values
    } else {
        picked = own.iter().flat_map(|at| &values[at * dim..(at + 1) * dim]).copied().collect();
        &picked
    };
    let parts = encode_alone(&band.spec, values).map_err(|error| named(error, own, places))?;
    for (number, at) in own.iter().enumerate() {
        let mut row = Vec::new();
        for (part, bytes) in band.spec.parts().iter().zip(&parts) {
            let length = usize::try_from(part.row_bytes()).unwrap_or(usize::MAX);
            row.extend_from_slice(&bytes[number * length..][..length]);
        }
        encoded.push((places[*at], row.into()));
    }
    Ok(())
}

/// An error of a row among those encoded, as one of the table's row, and its position.
fn named(error: EncodeError, own: &[usize], places: &[u32]) -> (usize, EncodeError) {
    let at = |row: u64| usize::try_from(row).ok().and_then(|row| own.get(row)).copied().unwrap_or_default();
    let row = |at: usize| places.get(at).copied().unwrap_or_default().into();
    match error {
        EncodeError::NotFinite { row: number, column, value } => {
            (at(number), EncodeError::NotFinite { row: row(at(number)), column, value })
        }
        EncodeError::Precision { row: number, column, value, scheme, reason } => {
            (at(number), EncodeError::Precision { row: row(at(number)), column, value, scheme, reason })
        }
        other => (0, other),
    }
}
