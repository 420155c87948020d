// Ids that are hashed: every unsigned one reads rows. Negative ids read none, or count from the end of the table's rows.

// Whether ids of two words are signed.
override SIGNED: bool = false;

fn row_of(position: u32) -> Rows {
    let at = params.ids_start + position * ID_WORDS;
    let low = ids[at];
    if ID_WORDS == 1u {
        return rows_of(vec2<u32>(low, 0u));
    }
    let high = ids[at + 1u];
    if SIGNED && high >= 0x80000000u {
        // As in direct.wgsl.
        let from_end = low + params.rows;
        if !WRAP || high != 0xffffffffu || from_end >= params.rows {
            return Rows(NO_ROW);
        }
        return rows_of(vec2<u32>(from_end, 0u));
    }
    return rows_of(vec2<u32>(low, high));
}
