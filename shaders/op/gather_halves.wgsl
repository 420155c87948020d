// Gather to f16 rows of an odd number of columns: two rows may share a word, so a thread makes a word.
//
//   for each word w of the output in parallel:
//       out[w] = half(element 2 w), half(element 2 w + 1)
//
// The first pass writes every word, zero bits where a row is another pass's; later passes add their rows' bits.

@group(0) @binding(3) var<storage, read_write> out: array<u32>;

fn element(index: u32) -> u32 {
    let position = index / DIM;
    if position >= params.batch {
        return 0u;
    }
    let column = index % DIM;
    let rows = row_of(position);
    if is_none(rows) {
        if params.answers_bad == 1u && column == 0u {
            atomicAdd(&status.bad, 1u);
            atomicMin(&status.first_bad, params.position + position);
        }
        return 0u;
    }
    if !in_pass(rows) {
        return 0u;
    }
    var block = load(open(rows), column / 16u);
    return half_bits(block[column % 16u / 4u][column % 4u]);
}

@compute @workgroup_size(WORKGROUP)
fn gather_halves(@builtin(global_invocation_id) id: vec3<u32>) {
    let word = id.y * params.grid_width + id.x;
    if word >= (params.batch * DIM + 1u) / 2u {
        return;
    }
    let pair = element(2u * word) | (element(2u * word + 1u) << 16u);
    if params.answers_bad == 1u {
        out[params.out_start + word] = pair;
    } else {
        out[params.out_start + word] |= pair;
    }
}
