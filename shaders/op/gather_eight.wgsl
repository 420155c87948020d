// Gather by eight positions a thread, for factors whose shared parts are then read once for eight rows.
//
//   for each (eight positions, share) in parallel:
//       rows = row_of(each position)
//       for each 16 columns k of the share:
//           values = load16_of8(rows, k)
//           for each position whose row is bound, or bad: store16(position, k, its values, or zeros)
//
// A position that is left out, as its row is another pass's or it is past the batch, stands for the first row bound.

@compute @workgroup_size(WORKGROUP)
fn gather_eight(@builtin(global_invocation_id) id: vec3<u32>) {
    let thread = id.y * params.grid_width + id.x;
    let first = thread / THREADS * 8u;
    if first >= params.batch {
        return;
    }
    let share = thread % THREADS;
    var opened: array<Row, 8>;
    // What is stored: 0 nothing, 1 zeros, 2 the row.
    var stored: array<u32, 8>;
    for (var i = 0u; i < 8u; i++) {
        var row = params.pass_first;
        if first + i < params.batch {
            let found = row_of(first + i);
            if found == NO_ROW {
                stored[i] = params.answers_bad;
                if params.answers_bad == 1u && share == 0u {
                    atomicAdd(&status.bad, 1u);
                    atomicMin(&status.first_bad, params.position + first + i);
                }
            } else if found - params.pass_first < params.pass_rows {
                stored[i] = 2u;
                row = found;
            }
        }
        let shard = shard_of(row);
        opened[i] = open_row(shard, row - params.shards[shard].first_row);
    }
    let begin = share * SPAN;
    let end = min(begin + SPAN, GROUPS);
    for (var k = begin; k < end; k++) {
        var values = load16_of8(opened, k);
        for (var i = 0u; i < 8u; i++) {
            if stored[i] == 2u {
                store16(first + i, k, values[i]);
            } else if stored[i] == 1u {
                store16(first + i, k, mat4x4<f32>());
            }
        }
    }
}
