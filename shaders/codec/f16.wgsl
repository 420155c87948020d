// f16: two values a word; `unpack2x16float` is exact for every bit pattern and asks for no feature.

struct Row {
    shard: u32,
    base: u32,
}

fn open_row(shard: u32, row: u32) -> Row {
    return Row(shard, row * ROW_BYTES);
}

fn halves(low: u32, high: u32) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(low), unpack2x16float(high));
}

fn touch(row: Row) -> u32 {
    return touch_lines(row.shard, row.base);
}

fn decode16(row: Row, k: u32) -> mat4x4<f32> {
    let first = row_lane(row.shard, row.base, 2u * k);
    let second = row_lane(row.shard, row.base, 2u * k + 1u);
    return mat4x4<f32>(
        halves(first.x, first.y),
        halves(first.z, first.w),
        halves(second.x, second.y),
        halves(second.z, second.w),
    );
}
