// f32 rows that begin on 16 bytes: DIM a multiple of 4.

@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;

fn store16(position: u32, k: u32, values: mat4x4<f32>) {
    let at = params.out_start / 4u + position * (DIM / 4u) + 4u * k;
    let left = DIM / 4u - 4u * k;
    out[at] = values[0];
    if DIM % 16u == 0u || left > 1u { out[at + 1u] = values[1]; }
    if DIM % 16u == 0u || left > 2u { out[at + 2u] = values[2]; }
    if DIM % 16u == 0u || left > 3u { out[at + 3u] = values[3]; }
}

fn stored16(position: u32, k: u32) -> mat4x4<f32> {
    let at = params.out_start / 4u + position * (DIM / 4u) + 4u * k;
    let last = DIM / 4u - 4u * k - 1u;
    return mat4x4<f32>(out[at], out[at + min(1u, last)], out[at + min(2u, last)], out[at + min(3u, last)]);
}
