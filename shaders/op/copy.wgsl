// Copy: what the fastest gather could be. Each thread moves SPAN neighbouring groups of 16 bytes.

override WORKGROUP: u32 = 64u;
override SPAN: u32 = 4u;
override LANES: u32;
override GRID_WIDTH: u32;

@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> copied: array<vec4<u32>>;

@compute @workgroup_size(WORKGROUP)
fn copy(@builtin(global_invocation_id) id: vec3<u32>) {
    let begin = (id.y * GRID_WIDTH + id.x) * SPAN;
    if begin + SPAN > LANES {
        return;
    }
    for (var i = 0u; i < SPAN; i++) {
        copied[begin + i] = source[begin + i];
    }
}
