// Put: records of any width to wherever they belong.
//
//   for each (record, word) in parallel:
//       words[destination of record][word] = record's word
//
// params.batch records of params.extra1 words. No two have one destination.

// Destinations, then the records: [batch], [batch, extra1].
@group(0) @binding(1) var<storage, read> records: array<u32>;
// [rows, extra1]
@group(0) @binding(3) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn put(@builtin(global_invocation_id) id: vec3<u32>) {
    let thread = id.y * params.grid_width + id.x;
    let record = thread / params.extra1;
    if record >= params.batch {
        return;
    }
    words[records[record] * params.extra1 + thread % params.extra1] = records[params.batch + thread];
}
