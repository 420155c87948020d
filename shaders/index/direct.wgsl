// Ids that are row numbers: u32, u64 or i64, the wide ones as two words, low first.

fn row_of(position: u32) -> Rows {
    let at = params.ids_start + position * ID_WORDS;
    let low = ids[at];
    if ID_WORDS == 1u {
        return select(NO_ROW, low, low < params.rows);
    }
    let high = ids[at + 1u];
    if high == 0u {
        return select(NO_ROW, low, low < params.rows);
    }
    // -1 to -rows are 2^64 - 1 down to 2^64 - rows: the high word all ones, and the low word one that wraps around when
    // rows are added.
    let from_end = low + params.rows;
    return select(NO_ROW, from_end, WRAP && high == 0xffffffffu && from_end < params.rows);
}
