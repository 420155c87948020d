// f32: values as they are.

struct Row {
    shard: u32,
    base: u32,
}

fn open_row(shard: u32, row: u32) -> Row {
    return Row(shard, row * ROW_BYTES);
}

fn touch(row: Row) -> u32 {
    return touch_lines(row.shard, row.base);
}

fn decode16(row: Row, k: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        bitcast<vec4<f32>>(row_lane(row.shard, row.base, 4u * k)),
        bitcast<vec4<f32>>(row_lane(row.shard, row.base, 4u * k + 1u)),
        bitcast<vec4<f32>>(row_lane(row.shard, row.base, 4u * k + 2u)),
        bitcast<vec4<f32>>(row_lane(row.shard, row.base, 4u * k + 3u)),
    );
}
