// f32 rows of any length, at any word.

@group(0) @binding(3) var<storage, read_write> out: array<f32>;

fn store4(at: u32, left: u32, values: vec4<f32>) {
    if left > 0u { out[at] = values.x; }
    if left > 1u { out[at + 1u] = values.y; }
    if left > 2u { out[at + 2u] = values.z; }
    if left > 3u { out[at + 3u] = values.w; }
}

fn store16(position: u32, k: u32, values: mat4x4<f32>) {
    let at = params.out_start + position * DIM + 16u * k;
    let left = DIM - 16u * k;
    store4(at, left, values[0]);
    store4(at + 4u, left - min(4u, left), values[1]);
    store4(at + 8u, left - min(8u, left), values[2]);
    store4(at + 12u, left - min(12u, left), values[3]);
}

fn stored4(at: u32, last: u32) -> vec4<f32> {
    return vec4<f32>(out[at], out[at + min(1u, last)], out[at + min(2u, last)], out[at + min(3u, last)]);
}

// Columns past the last repeat it.
fn stored16(position: u32, k: u32) -> mat4x4<f32> {
    let at = params.out_start + position * DIM + 16u * k;
    let last = DIM - 16u * k - 1u;
    return mat4x4<f32>(
        stored4(at, last),
        stored4(at + min(4u, last), last - min(4u, last)),
        stored4(at + min(8u, last), last - min(8u, last)),
        stored4(at + min(12u, last), last - min(12u, last)),
    );
}
