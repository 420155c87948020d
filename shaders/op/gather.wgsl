// Gather: out[position] = row of ids[position].
//
//   for each (position, share) in parallel:
//       rows = row_of(position)
//       for each 16 columns k of the share:
//           store16(position, k, rows are none ? zeros : load(rows, k))
//
// A thread takes SPAN groups of 16 columns of one row. Rows of shards not bound in this pass are another pass's. Bad ids go
// the way of all others, with zeros for columns: a loop of their own costs software adapters a fifth of the time.

@compute @workgroup_size(WORKGROUP)
fn gather(@builtin(global_invocation_id) id: vec3<u32>) {
    let thread = id.y * params.grid_width + id.x;
    let position = thread / THREADS;
    if position >= params.batch {
        return;
    }
    let share = thread % THREADS;
    let rows = row_of(position);
    let none = is_none(rows);
    if none {
        if params.answers_bad == 0u {
            return;
        }
        if share == 0u {
            atomicAdd(&status.bad, 1u);
            atomicMin(&status.first_bad, params.position + position);
        }
    } else if !in_pass(rows) {
        return;
    }
    let opened = open(select(rows, Rows(params.pass_first), none));
    // A thread that reads a whole row would wait for each cache line in turn. `touched` is the position, but known only
    // when all lines are there; loads do not depend on it, so they go ahead.
    var touched = position;
    if SPAN > 1u && THREADS == 1u {
        touched += touch_all(opened) & params.zero;
    }
    let begin = share * SPAN;
    let end = min(begin + SPAN, GROUPS);
    for (var k = begin; k < end; k++) {
        var values = mat4x4<f32>();
        if !none {
            values = load(opened, k);
        }
        store16(touched, k, values);
    }
}
