// f16 rows that begin on a word: DIM even.

@group(0) @binding(3) var<storage, read_write> out: array<u32>;

fn store16(position: u32, k: u32, values: mat4x4<f32>) {
    var block = values;
    let at = params.out_start + position * (DIM / 2u) + 8u * k;
    let count = min(8u, DIM / 2u - 8u * k);
    for (var i = 0u; i < count; i++) {
        out[at + i] = half_pair(block[i / 2u][i % 2u * 2u], block[i / 2u][i % 2u * 2u + 1u]);
    }
}
