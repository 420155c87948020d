// hash: ids of any value, each of which reads one of HASH_ROWS rows.
//
//   row = (HASH_MIX ? murmur3(id) : id) mod HASH_ROWS
//
// All 64 bits count, by arithmetic of 32 bits.

// Stored rows.
override HASH_ROWS: u32;
// Whether ids are mixed before the remainder is taken.
override HASH_MIX: bool = false;

fn rows_of(id: vec2<u32>) -> Rows {
    if HASH_MIX {
        return murmur3(id, 0u) % HASH_ROWS;
    }
    return divide(id, HASH_ROWS).z;
}
