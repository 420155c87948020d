// f32 rows of any length, at any word.

@group(0) @binding(3) var<storage, read_write> out: array<f32>;

fn store16(position: u32, k: u32, values: mat4x4<f32>) {
    // A value cannot be indexed by a variable on every backend; a variable can.
    var block = values;
    let at = params.out_start + position * DIM + 16u * k;
    let count = min(16u, DIM - 16u * k);
    for (var i = 0u; i < count; i++) {
        out[at + i] = block[i / 4u][i % 4u];
    }
}
