// f16 rows that begin on 16 bytes: DIM a multiple of 8.

@group(0) @binding(3) var<storage, read_write> out: array<vec4<u32>>;

fn eight(low: vec4<f32>, high: vec4<f32>) -> vec4<u32> {
    return vec4<u32>(
        half_pair(low.x, low.y),
        half_pair(low.z, low.w),
        half_pair(high.x, high.y),
        half_pair(high.z, high.w),
    );
}

fn store16(position: u32, k: u32, values: mat4x4<f32>) {
    let at = params.out_start / 4u + position * (DIM / 8u) + 2u * k;
    out[at] = eight(values[0], values[1]);
    if DIM % 16u == 0u || DIM / 8u - 2u * k > 1u {
        out[at + 1u] = eight(values[2], values[3]);
    }
}
