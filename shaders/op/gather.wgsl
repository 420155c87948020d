// Gather: out[position] = row of ids[position].
//
//   for each (position, share) in parallel:
//       row = row_of(position)
//       if row is none: count it, write zeros
//       else for each 16 columns k of the share: store16(position, k, load16(row, k))
//
// A thread takes SPAN groups of 16 columns of one row. Rows of shards not bound in this pass are another pass's.

@compute @workgroup_size(WORKGROUP)
fn gather(@builtin(global_invocation_id) id: vec3<u32>) {
    let thread = id.y * params.grid_width + id.x;
    let position = thread / THREADS;
    if position >= params.batch {
        return;
    }
    let share = thread % THREADS;
    let begin = share * SPAN;
    let end = min(begin + SPAN, GROUPS);
    let row = row_of(position);
    if row == NO_ROW {
        if params.answers_bad == 1u {
            if share == 0u {
                atomicAdd(&status.bad, 1u);
                atomicMin(&status.first_bad, params.position + position);
            }
            for (var k = begin; k < end; k++) {
                store16(position, k, mat4x4<f32>());
            }
        }
        return;
    }
    if row - params.pass_first >= params.pass_rows {
        return;
    }
    let shard = shard_of(row);
    let opened = open_row(shard, row - params.shards[shard].first_row);
    for (var k = begin; k < end; k++) {
        store16(position, k, load16(opened, k));
    }
}
