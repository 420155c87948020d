// Fill: rows that were not there, in the output of a gather.
//
//   for each word of the output in parallel:
//       for each element of it whose id has no slot:
//           element = initial value of the id
//
// A thread owns a word, so that halves of two rows may share it. Rows are those that the table would make: rounded to its type
// first, then to the output's. params.batch rows from params.position on; params.extra1 words.

// Whether the output is f16.
override OUT_HALVES: bool = false;
override ID_WORDS: u32 = 2u;

@group(0) @binding(1) var<storage, read> ids: array<u32>;
@group(0) @binding(2) var<storage, read_write> slots: array<u32>;
@group(0) @binding(3) var<storage, read_write> words: array<u32>;

fn element(position: u32, column: u32) -> f32 {
    let at = params.ids_start + position * ID_WORDS;
    var high = 0u;
    if ID_WORDS == 2u {
        high = ids[at + 1u];
    }
    let value = initial_value(hashes(vec2<u32>(ids[at], high)), column);
    if HALVES {
        return unpack2x16float(half_bits(value)).x;
    }
    return value;
}

@compute @workgroup_size(WORKGROUP)
fn fill(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = id.y * params.grid_width + id.x;
    if word >= params.extra1 {
        return;
    }
    let to = params.out_start + word;
    if !OUT_HALVES {
        let position = params.position + word / DIM;
        if slots[position] == NO_ROW {
            words[to] = bitcast<u32>(element(position, word % DIM));
        }
        return;
    }
    let first = params.position + 2u * word / DIM;
    if slots[first] == NO_ROW {
        words[to] = (words[to] & 0xffff0000u) | half_bits(element(first, 2u * word % DIM));
    }
    let row = (2u * word + 1u) / DIM;
    let second = params.position + row;
    if row < params.batch && slots[second] == NO_ROW {
        words[to] = (words[to] & 0xffffu) | (half_bits(element(second, (2u * word + 1u) % DIM)) << 16u);
    }
}
