//! Rows of a sparse matrix that lies in memory.

use rayon::prelude::*;

use super::RowSource;
use crate::{
    error::{SourceError, SparseError},
    units::Shape,
};

/// What becomes of several values for one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// Their sum, in f64, rounded to f32: what SciPy makes of them.
    #[default]
    Sum,
    /// [`SparseError::Duplicate`].
    Refuse,
}

/// The values of a matrix that are not zero, row by row: a source of rows for any scheme. `csr/f32` and `coo/f32` keep it as
/// it is.
///
/// Memory: 12 bytes a value, and nothing a row.
///
/// # Examples
/// ```
/// use gatherum::{Duplicates, Encoder, Shape, SparseRows};
/// // [[0, 5, 0], [0, 0, 0], [1, 0, 2]], in any order.
/// let shape = Shape::new(3, 3)?;
/// let mut rows = SparseRows::from_triples(shape, &[2, 0, 2], &[2, 1, 0], &[2.0, 5.0, 1.0], Duplicates::Refuse)?;
/// let (table, _) = Encoder::new(&"csr/f32".parse()?).table("sparse", &mut rows)?;
/// # use gatherum::TableSource;
/// assert_eq!(table.spec().bytes().0, 3 * (4 + 1) + 4 * 4);
/// assert_eq!([table.reference(0, 1), table.reference(1, 1), table.reference(2, 2)], [5.0, 0.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SparseRows {
    shape: Shape,
    /// In the order of rows, and of columns in a row; none twice.
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    row: u32,
    column: u32,
    value: f32,
}

impl SparseRows {
    /// Takes compressed sparse rows: row `r` has `values[starts[r]..starts[r + 1]]`, each in its column; columns ascend.
    /// `starts: [rows + 1]`, `columns: [n]`, `values: [n]`.
    ///
    /// # Errors
    /// [`SparseError`] for the first thing that is not so: it names the row, the index of the value and the numbers.
    pub fn from_csr(shape: Shape, starts: &[u64], columns: &[u32], values: &[f32]) -> Result<Self, SparseError> {
        check_starts(shape, starts, columns.len(), values.len())?;
        let mut entries: Vec<Entry> = Vec::with_capacity(values.len());
        for (row, ends) in (0u32..).zip(starts.windows(2)) {
            for index in ends[0]..ends[1] {
                let (column, value) = (columns[entries.len()], values[entries.len()]);
                check_column(shape, row.into(), index, column)?;
                match entries.last() {
                    Some(last) if last.row == row && last.column >= column => {
                        return Err(SparseError::Order { row: row.into(), index, before: last.column, column });
                    }
                    _ => entries.push(Entry { row, column, value }),
                }
            }
        }
        Ok(Self { shape, entries })
    }

    /// Takes coordinates, in any order: `values[i]` is at `rows[i]`, `columns[i]`.
    ///
    /// # Errors
    /// [`SparseError`] where the slices have different lengths, for the first coordinate that the shape does not have, and for
    /// the first place that has two values where those are refused.
    pub fn from_triples(
        shape: Shape,
        rows: &[u32],
        columns: &[u32],
        values: &[f32],
        duplicates: Duplicates,
    ) -> Result<Self, SparseError> {
        for (what, length) in [("columns", columns.len()), ("values", values.len())] {
            if length != rows.len() {
                return Err(SparseError::Length { what, has: length as u64, needed: rows.len() as u64 });
            }
        }
        let mut entries = Vec::with_capacity(values.len());
        for (index, ((&row, &column), &value)) in (0..).zip(rows.iter().zip(columns).zip(values)) {
            if row >= shape.rows() {
                return Err(SparseError::Row { index, row: row.into(), rows: shape.rows() });
            }
            check_column(shape, row.into(), index, column)?;
            entries.push(Entry { row, column, value });
        }
        // Stable: duplicates are added in their order.
        entries.par_sort_by_key(|entry| (entry.row, entry.column));
        let same = |one: &Entry, other: &Entry| (one.row, one.column) == (other.row, other.column);
        if let Some(twice) = entries.windows(2).find(|two| same(&two[0], &two[1])) {
            if duplicates == Duplicates::Refuse {
                return Err(SparseError::Duplicate { row: twice[0].row.into(), column: twice[0].column });
            }
            entries = entries.chunk_by(same).map(|same| Entry { value: sum(same), ..same[0] }).collect();
        }
        Ok(Self { shape, entries })
    }

    /// Values that are there, zeros among them where they were given.
    #[must_use]
    pub fn nonzeros(&self) -> u64 {
        self.entries.len() as u64
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
fn sum(same: &[Entry]) -> f32 {
    match same {
        [entry] => entry.value,
        _ => same.iter().map(|entry| f64::from(entry.value)).sum::<f64>() as f32,
    }
}

/// Checks that starts ascend from 0 and end with the values.
fn check_starts(shape: Shape, starts: &[u64], columns: usize, values: usize) -> Result<(), SparseError> {
    let needed = u64::from(shape.rows()) + 1;
    if starts.len() as u64 != needed {
        return Err(SparseError::Length { what: "starts", has: starts.len() as u64, needed });
    }
    if columns != values {
        return Err(SparseError::Length { what: "columns", has: columns as u64, needed: values as u64 });
    }
    let bad =
        |row: usize, start: u64, end: u64| SparseError::Starts { row: row as u64, start, end, values: values as u64 };
    if starts[0] != 0 {
        return Err(bad(0, starts[0], starts.get(1).copied().unwrap_or(starts[0])));
    }
    for (row, ends) in starts.windows(2).enumerate() {
        if ends[0] > ends[1] || ends[1] > values as u64 {
            return Err(bad(row, ends[0], ends[1]));
        }
    }
    let last = starts[starts.len() - 1];
    if last != values as u64 {
        return Err(bad(starts.len().saturating_sub(2), last, last));
    }
    Ok(())
}

fn check_column(shape: Shape, row: u64, index: u64, column: u32) -> Result<(), SparseError> {
    match column < shape.dim() {
        true => Ok(()),
        false => Err(SparseError::Column { row, index, column: column.into(), dim: shape.dim() }),
    }
}

impl RowSource for SparseRows {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn read_rows(&mut self, first: u32, out: &mut [f32]) -> Result<(), SourceError> {
        out.fill(0.0);
        let dim = self.shape.dim() as usize;
        let from = &self.entries[self.entries.partition_point(|entry| entry.row < first)..];
        for entry in from {
            let Some(row) = out.chunks_exact_mut(dim).nth((entry.row - first) as usize) else { break };
            row[entry.column as usize] = entry.value;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(rows: u64, dim: u64) -> Shape {
        Shape::new(rows, dim).unwrap()
    }

    fn dense(mut rows: SparseRows) -> Vec<f32> {
        let mut out = vec![f32::NAN; rows.shape.rows() as usize * rows.shape.dim() as usize];
        rows.read_rows(0, &mut out).unwrap();
        out
    }

    #[test]
    fn rows_and_triples_are_one_matrix() {
        let csr = SparseRows::from_csr(shape(4, 3), &[0, 1, 1, 4, 4], &[1, 0, 1, 2], &[5.0, 1.0, -1.0, 2.0]).unwrap();
        let (rows, columns) = ([2, 2, 0, 2], [2, 0, 1, 1]);
        let coo =
            SparseRows::from_triples(shape(4, 3), &rows, &columns, &[2.0, 1.0, 5.0, -1.0], Duplicates::Refuse).unwrap();
        assert_eq!(csr, coo);
        assert_eq!(dense(coo), [0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 1.0, -1.0, 2.0, 0.0, 0.0, 0.0]);
        let none = SparseRows::from_triples(shape(2, 1), &[], &[], &[], Duplicates::Sum).unwrap();
        assert_eq!((none.nonzeros(), dense(none)), (0, vec![0.0, 0.0]));
        assert!(SparseRows::from_csr(shape(0, 3), &[0], &[], &[]).is_ok());
    }

    #[test]
    fn duplicates_are_added_or_refused() {
        let make = |duplicates| {
            SparseRows::from_triples(shape(2, 2), &[1, 0, 1, 1], &[1, 0, 1, 1], &[1e8, 3.0, 1.0, -1e8], duplicates)
        };
        let rows = make(Duplicates::Sum).unwrap();
        assert_eq!(rows.nonzeros(), 2);
        assert_eq!(dense(rows), [3.0, 0.0, 0.0, 1.0], "added in f64");
        assert!(matches!(make(Duplicates::Refuse), Err(SparseError::Duplicate { row: 1, column: 1 })));
    }

    #[test]
    fn malformed_structures_are_refused_with_the_place() {
        let csr = |starts: &[u64], columns: &[u32], values: &[f32]| {
            SparseRows::from_csr(shape(3, 4), starts, columns, values).unwrap_err().to_string()
        };
        let ones = [1.0; 3];
        for (error, says) in [
            (csr(&[0, 1, 3], &[0, 1, 2], &ones), "`starts` has 3 items, not 4"),
            (csr(&[0, 1, 2, 3], &[0, 1], &ones), "`columns` has 2 items, not 3"),
            (csr(&[1, 1, 2, 3], &[0, 1, 2], &ones), "row 0: its values begin at 1 and end at 1, of 3"),
            (csr(&[0, 2, 1, 3], &[0, 1, 2], &ones), "row 1: its values begin at 2 and end at 1, of 3"),
            (csr(&[0, 1, 2, u64::MAX], &[0, 1, 2], &ones), "row 2: its values begin at 2 and end at 1844"),
            (csr(&[0, 1, 2, 2], &[0, 1, 2], &ones), "row 2: its values begin at 2 and end at 2, of 3"),
            (csr(&[0, 1, 2, 3], &[0, 4, 2], &ones), "row 1: value 1 is in column 4 of 4"),
            (csr(&[0, 3, 3, 3], &[0, 2, 1], &ones), "row 0: value 2 is in column 1, and the one before in 2"),
            (csr(&[0, 3, 3, 3], &[0, 2, 2], &ones), "row 0: value 2 is in column 2, and the one before in 2"),
        ] {
            assert!(error.contains(says), "{error}, not {says}");
        }
        let triples = |rows: &[u32], columns: &[u32], values: &[f32]| {
            SparseRows::from_triples(shape(3, 4), rows, columns, values, Duplicates::Sum).unwrap_err().to_string()
        };
        for (error, says) in [
            (triples(&[0, 1], &[0], &[1.0, 1.0]), "`columns` has 1 items, not 2"),
            (triples(&[0, 1], &[0, 1], &[1.0]), "`values` has 1 items, not 2"),
            (triples(&[0, 3], &[0, 1], &[1.0, 1.0]), "value 1 is in row 3 of 3"),
            (triples(&[0, 2], &[0, u32::MAX], &[1.0, 1.0]), "row 2: value 1 is in column 4294967295 of 4"),
        ] {
            assert!(error.contains(says), "{error}, not {says}");
        }
    }
}
