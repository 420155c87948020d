// Every id's rows, by the index that stands before this.

@group(0) @binding(3) var<storage, read_write> found: array<vec4<u32>>;

@compute @workgroup_size(WORKGROUP)
fn all_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&found) {
        found[id.x] = vec4<u32>() + row_of(id.x);
    }
}
