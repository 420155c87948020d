// Normalise: each row of the output divided by its L2 norm; rows of zeros stay as they are.
//
//   for each row in parallel:
//       scale = the power of 2 that brings the largest magnitude to 1..2
//       norm2 = sum of (x * scale)^2       # in 16 lanes, then over these
//       x = (x * scale) * inverse_root(norm2)
//
// The scale keeps squares from overflowing. `sqrt` and `/` may round as a driver likes: the root is found by sums and products,
// as the host finds it. A turn takes 64 columns, since a row may have a million and software adapters count turns.

// A value that no compiler may join to what is done with it next: Mesa's for GL regroups chains of three sums or products.
fn settled(values: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(bitcast<vec4<u32>>(values) | vec4<u32>(params.zero));
}

fn settled1(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) | params.zero);
}

fn columns(position: u32, k: u32) -> mat4x4<f32> {
    if k >= GROUPS {
        return mat4x4<f32>();
    }
    let values = stored16(position, k);
    let left = vec4<u32>(DIM - 16u * k);
    let lane = vec4<u32>(0u, 1u, 2u, 3u);
    let none = vec4<f32>();
    return mat4x4<f32>(
        select(none, values[0], lane < left),
        select(none, values[1], lane + 4u < left),
        select(none, values[2], lane + 8u < left),
        select(none, values[3], lane + 12u < left),
    );
}

fn largest(values: mat4x4<f32>) -> vec4<f32> {
    return max(max(abs(values[0]), abs(values[1])), max(abs(values[2]), abs(values[3])));
}

fn add_squares(lanes: mat4x4<f32>, values: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(
        settled(lanes[0] + settled(values[0] * values[0])),
        settled(lanes[1] + settled(values[1] * values[1])),
        settled(lanes[2] + settled(values[2] * values[2])),
        settled(lanes[3] + settled(values[3] * values[3])),
    );
}

// 1 / sqrt(x) for x of at least 1: from its exponent and mantissa halved, by Newton's steps, each of which squares the error.
fn inverse_root(x: f32) -> f32 {
    let half = 0.5 * x;
    var y = bitcast<f32>(0x5f375a86u - (bitcast<u32>(x) >> 1u));
    y = y * (1.5 - settled1(settled1(half * y) * y));
    y = y * (1.5 - settled1(settled1(half * y) * y));
    y = y * (1.5 - settled1(settled1(half * y) * y));
    y = y * (1.5 - settled1(settled1(half * y) * y));
    return y;
}

fn normal(position: u32, k: u32, scale: f32, inverse: f32) {
    if k < GROUPS {
        store16(position, k, (stored16(position, k) * scale) * inverse);
    }
}

@compute @workgroup_size(WORKGROUP)
fn normalise(@builtin(global_invocation_id) id: vec3<u32>) {
    let position = id.y * params.grid_width + id.x;
    if position >= params.batch {
        return;
    }
    var top = vec4<f32>();
    for (var k = 0u; k < GROUPS; k += 4u) {
        let low = max(largest(columns(position, k)), largest(columns(position, k + 1u)));
        let high = max(largest(columns(position, k + 2u)), largest(columns(position, k + 3u)));
        top = max(top, max(low, high));
    }
    let exponent = bitcast<u32>(max(max(top.x, top.y), max(top.z, top.w))) >> 23u;
    if exponent == 0u {
        return;
    }
    let scale = bitcast<f32>((254u - min(exponent, 253u)) << 23u);
    var lanes = mat4x4<f32>();
    for (var k = 0u; k < GROUPS; k += 4u) {
        lanes = add_squares(lanes, columns(position, k) * scale);
        lanes = add_squares(lanes, columns(position, k + 1u) * scale);
        lanes = add_squares(lanes, columns(position, k + 2u) * scale);
        lanes = add_squares(lanes, columns(position, k + 3u) * scale);
    }
    let sums = settled(settled(lanes[0] + lanes[1]) + lanes[2]) + lanes[3];
    let inverse = inverse_root(settled1(settled1(sums.x + sums.y) + sums.z) + sums.w);
    for (var k = 0u; k < GROUPS; k += 4u) {
        normal(position, k, scale, inverse);
        normal(position, k + 1u, scale, inverse);
        normal(position, k + 2u, scale, inverse);
        normal(position, k + 3u, scale, inverse);
    }
}
