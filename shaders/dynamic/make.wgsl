// Make: the rows of new ids.
//
//   for each (id, word) in parallel:
//       words[row of id][word] = initial word of the id
//
// params.batch ids.

// Low word, high word and row: [batch, 3].
@group(0) @binding(1) var<storage, read> records: array<u32>;
// [rows, ROW_WORDS]
@group(0) @binding(3) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn make(@builtin(global_invocation_id) id: vec3<u32>) {
    let thread = id.y * params.grid_width + id.x;
    let record = thread / ROW_WORDS;
    if record >= params.batch {
        return;
    }
    let word = thread % ROW_WORDS;
    let hash = hashes(vec2<u32>(records[3u * record], records[3u * record + 1u]));
    let to = records[3u * record + 2u] * ROW_WORDS + word;
    if HALVES {
        words[to] = half_pair(initial_value(hash, 2u * word), initial_value(hash, 2u * word + 1u));
    } else {
        words[to] = bitcast<u32>(initial_value(hash, word));
    }
}
