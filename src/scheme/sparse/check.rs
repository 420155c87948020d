//! What is wrong with parts that were made elsewhere.

use super::decode::Stored;

/// The first row, among so many, whose values cannot be found as the format says, and why.
pub(super) fn malformed(stored: &Stored<'_>, rows: u32) -> Option<(u32, String)> {
    let every = u32::try_from(stored.every).unwrap_or(u32::MAX);
    let (blocks, values) = (rows.div_ceil(every) as usize, stored.columns.len());
    if stored.starts.len() != blocks + 1 {
        return Some((0, format!("{} numbers of `starts`, not {}", stored.starts.len(), blocks + 1)));
    }
    let first = stored.starts.get(0);
    for (block, row) in (0..blocks).zip((0..rows).step_by(stored.every)) {
        let (start, end) = (stored.starts.get(block), stored.starts.get(block + 1));
        if start > end {
            return Some((row, format!("its values begin at {start} and end at {end}")));
        }
        if end - first > values {
            return Some((row, format!("its values end at {}, and there are {values}", end - first)));
        }
    }
    let end = stored.starts.get(blocks) - first;
    if end != values {
        return Some((rows.saturating_sub(1), format!("the last values end at {end}, and there are {values}")));
    }
    for (block, row) in (0..blocks).zip((0..rows).step_by(stored.every)) {
        let fault = in_block(stored, block, (rows - row).min(every));
        if let Some((among, problem)) = fault {
            return Some((row + among, problem));
        }
    }
    None
}

/// The same of the rows of a block, `rows` of them.
fn in_block(stored: &Stored<'_>, block: usize, rows: u32) -> Option<(u32, String)> {
    // Row and column of the value before.
    let mut before: Option<(u32, usize)> = None;
    for at in stored.block(block) {
        let row = stored.rows.map_or(0, |rows| rows[at].into());
        let column = stored.columns.get(at);
        if row >= rows {
            return Some((0, format!("value {at} is of row {row} of {rows}")));
        }
        if column >= stored.dim {
            return Some((row, format!("value {at} is in column {column} of {}", stored.dim)));
        }
        match before {
            Some((last, _)) if last > row => {
                return Some((row, format!("value {at} stands behind those of row {last}")));
            }
            Some((last, before)) if last == row && before >= column => {
                return Some((row, format!("value {at} is in column {column}, and the one before in {before}")));
            }
            _ => before = Some((row, column)),
        }
    }
    None
}
