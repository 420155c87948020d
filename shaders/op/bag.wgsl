// Bag: the rows of a bag as one, by sum or by maximum.
//
//   for each (piece, share) in parallel:
//       for each 16 columns k of the share:
//           values = piece begins its bag ? nothing : stored16(row, k)
//           for each position from begin to end:
//               values = values + load(row_of(position), k) * weight
//           store16(row, k, values, times scale in the last pass)
//
// One accumulator a column, ids in their order, products rounded before they are added: no answer depends on the grain or the
// device. A piece is a bag, or a stretch of a long one; further stretches and passes go on with what the output has. Behind the
// ids lie the weights and the pieces, as storage bindings are few. The host has counted bad ids; here they are skipped, or rows
// of zeros to a maximum.

// Whether the maximum is asked for; the sum else.
override MAX: bool = false;
override WEIGHTED: bool = false;

// No stored value is less.
const LEAST: f32 = -3.4028234663852886e38;

// Of the first word of a piece, beside its output row: not the first of its bag; of a bag without ids.
const CONTINUES: u32 = 0x80000000u;
const EMPTY: u32 = 0x40000000u;

// Whole numbers in the order of the values, one for both zeros: drivers make floats' `maximum` of a comparison of floats, and
// that may answer with either zero.
fn order(values: vec4<f32>) -> vec4<i32> {
    let bits = bitcast<vec4<i32>>(values);
    let sizes = bits & vec4<i32>(0x7fffffff);
    return select(sizes, -sizes, bits < vec4<i32>(0));
}

// The first of equals.
fn greater(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return select(a, b, order(b) > order(a));
}

fn take(so_far: mat4x4<f32>, values: mat4x4<f32>) -> mat4x4<f32> {
    if MAX {
        return mat4x4<f32>(
            greater(so_far[0], values[0]),
            greater(so_far[1], values[1]),
            greater(so_far[2], values[2]),
            greater(so_far[3], values[3]),
        );
    }
    return so_far + mat4x4<f32>(settled(values[0]), settled(values[1]), settled(values[2]), settled(values[3]));
}

fn nothing() -> mat4x4<f32> {
    if MAX {
        let least = vec4<f32>(LEAST);
        return mat4x4<f32>(least, least, least, least);
    }
    return mat4x4<f32>();
}

@compute @workgroup_size(WORKGROUP)
fn bag(@builtin(global_invocation_id) id: vec3<u32>) {
    let thread = id.y * params.grid_width + id.x;
    let piece = params.extra1 + thread / THREADS * 4u;
    if thread / THREADS >= params.batch {
        return;
    }
    let place = ids[piece];
    let begin = ids[piece + 1u];
    let end = ids[piece + 2u];
    let scale = select(1.0, bitcast<f32>(ids[piece + 3u]), params.last_pass == 1u);
    let begins = (place & CONTINUES) == 0u && params.answers_bad == 1u;
    let position = place & ~(CONTINUES | EMPTY);
    let first = thread % THREADS * SPAN;
    for (var k = first; k < min(first + SPAN, GROUPS); k++) {
        if (place & EMPTY) != 0u {
            store16(position, k, mat4x4<f32>());
            continue;
        }
        var values = nothing();
        if !begins {
            values = stored16(position, k);
        }
        for (var i = begin; i < end; i++) {
            let rows = row_of(i);
            if is_none(rows) {
                if MAX {
                    values = take(values, mat4x4<f32>());
                }
                continue;
            }
            if !in_pass(rows) {
                continue;
            }
            var added = load(open(rows), k);
            if WEIGHTED {
                added = added * bitcast<f32>(ids[params.extra2 + i]);
            }
            values = take(values, added);
        }
        store16(position, k, values * scale);
    }
}
