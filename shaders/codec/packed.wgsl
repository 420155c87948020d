// Rows of codes that follow one another without a gap, read by 16 bytes wherever they begin.

// Bytes of a row in part 0.
override ROW_BYTES: u32;
// Its last 16 bytes, or fewer.
override LAST_LANE: u32 = (ROW_BYTES - 1u) / 16u;

// Bytes 16 lane to 16 lane + 15 of the row that begins at byte `base`. Past the row's end they may be anything; past its
// last lane, the last lane is read again.
fn row_lane(shard: u32, base: u32, lane: u32) -> vec4<u32> {
    let within = min(lane, LAST_LANE);
    if ROW_BYTES % 16u == 0u {
        return fetch(shard, base / 16u + within);
    }
    let word = base / 4u + within * 4u;
    let low = vec4<u32>(
        fetch_word(shard, word),
        fetch_word(shard, word + 1u),
        fetch_word(shard, word + 2u),
        fetch_word(shard, word + 3u),
    );
    if ROW_BYTES % 4u == 0u {
        return low;
    }
    let shift = (base % 4u) * 8u;
    if shift == 0u {
        return low;
    }
    let high = vec4<u32>(low.yzw, fetch_word(shard, word + 4u));
    return (low >> vec4<u32>(shift)) | (high << vec4<u32>(32u - shift));
}

// A word of each 64 bytes of a row after the first.
fn touch_lines(shard: u32, base: u32) -> u32 {
    var words = 0u;
    for (var byte = 64u; byte < ROW_BYTES; byte += 64u) {
        words |= fetch_word(shard, (base + byte) / 4u);
    }
    return words;
}
