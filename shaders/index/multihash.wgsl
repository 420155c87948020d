// multihash: each id reads ROWS rows, one in each of ROWS tables that HASH_ROWS rows are cut into.
//
//   row n = start of table n + murmur3(id, seed n) mod rows of table n

// Stored rows, of all tables.
override HASH_ROWS: u32;

fn hashed(id: vec2<u32>, table: u32) -> u32 {
    // The first tables have a row more where there are rows left.
    let rows = HASH_ROWS / ROWS;
    let more = HASH_ROWS % ROWS;
    let start = table * rows + min(table, more);
    return start + murmur3(id, table * 0x9e3779b9u) % (rows + select(0u, 1u, table < more));
}

fn rows_of(id: vec2<u32>) -> Rows {
    let first = hashed(id, 0u);
    var rows = Rows(first, hashed(id, 1u), first, first);
    if ROWS > 2u {
        rows.z = hashed(id, 2u);
    }
    if ROWS > 3u {
        rows.w = hashed(id, 3u);
    }
    return rows;
}
