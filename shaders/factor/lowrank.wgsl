// lowrank: a row of few columns times a basis that all rows share.
//
//   x[c] = sum over j, from 0 up, of u[j] * basis[j][c]

// Columns that the codec stores of a row.
override CODEC_DIM: u32;
// Which part the basis is, f32 [CODEC_DIM, DIM].
override BASIS_PART: u32 = 1u;

// Word at which the basis begins in the first shard bound: a multiple of 4.
fn basis_start() -> u32 {
    if BASIS_PART == 1u {
        return params.shards[0].part1;
    }
    if BASIS_PART == 2u {
        return params.shards[0].part2;
    }
    return params.shards[0].part3;
}

// Columns 4 c to 4 c + 3 of row j of the basis; those past DIM repeat others.
fn basis4(start: u32, j: u32, c: u32) -> vec4<f32> {
    let row = start + min(j, CODEC_DIM - 1u) * DIM;
    if DIM % 4u == 0u {
        return bitcast<vec4<f32>>(fetch_shared(row / 4u + min(c, DIM / 4u - 1u)));
    }
    let columns = min(vec4<u32>(4u * c) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(DIM - 1u));
    return bitcast<vec4<f32>>(vec4<u32>(
        fetch_shared_word(row + columns.x),
        fetch_shared_word(row + columns.y),
        fetch_shared_word(row + columns.z),
        fetch_shared_word(row + columns.w),
    ));
}

// Factors j to j + 3, zeros past CODEC_DIM, where the codec may give anything.
fn factors(u: vec4<f32>, j: u32) -> vec4<f32> {
    if CODEC_DIM % 4u == 0u && (CODEC_DIM % 16u == 0u || j < CODEC_DIM) {
        return u;
    }
    return select(vec4<f32>(), u, vec4<u32>(j, j + 1u, j + 2u, j + 3u) < vec4<u32>(CODEC_DIM));
}

fn basis16(start: u32, j: u32, k: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        basis4(start, j, 4u * k),
        basis4(start, j, 4u * k + 1u),
        basis4(start, j, 4u * k + 2u),
        basis4(start, j, 4u * k + 3u),
    );
}

fn load16(row: Row, k: u32) -> mat4x4<f32> {
    let start = basis_start();
    var sum = mat4x4<f32>();
    for (var first = 0u; first < CODEC_DIM; first += 16u) {
        var u = decode16(row, first / 16u);
        for (var i = 0u; i < 16u; i += 4u) {
            var some = factors(u[i / 4u], first + i);
            for (var next = 0u; next < 4u; next++) {
                sum += some[next] * basis16(start, first + i + next, k);
            }
        }
    }
    return sum;
}

// Sums of four columns for eight rows: one column of a matrix is a row's.
struct Sums {
    low: mat4x4<f32>,
    high: mat4x4<f32>,
}

fn outer(one: vec4<f32>, other: vec4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(one * other.x, one * other.y, one * other.z, one * other.w);
}

// Factors j to j + 3 of four rows: column i of the matrix has factor j + i.
fn turned(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, j: u32) -> mat4x4<f32> {
    return transpose(mat4x4<f32>(factors(a, j), factors(b, j), factors(c, j), factors(d, j)));
}

fn add(sums: Sums, low: vec4<f32>, high: vec4<f32>, basis: vec4<f32>) -> Sums {
    return Sums(sums.low + outer(basis, low), sums.high + outer(basis, high));
}

// The same for eight rows, in the same order of sums; the basis is read once. Unrolled only as far as shaders compile in
// reasonable time.
fn load16_of8(rows: array<Row, 8>, k: u32) -> array<mat4x4<f32>, 8> {
    let start = basis_start();
    var s0 = Sums();
    var s1 = Sums();
    var s2 = Sums();
    var s3 = Sums();
    for (var first = 0u; first < CODEC_DIM; first += 16u) {
        let at = first / 16u;
        var u0 = decode16(rows[0], at);
        var u1 = decode16(rows[1], at);
        var u2 = decode16(rows[2], at);
        var u3 = decode16(rows[3], at);
        var u4 = decode16(rows[4], at);
        var u5 = decode16(rows[5], at);
        var u6 = decode16(rows[6], at);
        var u7 = decode16(rows[7], at);
        for (var i = 0u; i < 4u; i++) {
            let j = first + 4u * i;
            var low = turned(u0[i], u1[i], u2[i], u3[i], j);
            var high = turned(u4[i], u5[i], u6[i], u7[i], j);
            for (var next = 0u; next < 4u; next++) {
                s0 = add(s0, low[next], high[next], basis4(start, j + next, 4u * k));
                s1 = add(s1, low[next], high[next], basis4(start, j + next, 4u * k + 1u));
                s2 = add(s2, low[next], high[next], basis4(start, j + next, 4u * k + 2u));
                s3 = add(s3, low[next], high[next], basis4(start, j + next, 4u * k + 3u));
            }
        }
    }
    return array<mat4x4<f32>, 8>(
        mat4x4<f32>(s0.low[0], s1.low[0], s2.low[0], s3.low[0]),
        mat4x4<f32>(s0.low[1], s1.low[1], s2.low[1], s3.low[1]),
        mat4x4<f32>(s0.low[2], s1.low[2], s2.low[2], s3.low[2]),
        mat4x4<f32>(s0.low[3], s1.low[3], s2.low[3], s3.low[3]),
        mat4x4<f32>(s0.high[0], s1.high[0], s2.high[0], s3.high[0]),
        mat4x4<f32>(s0.high[1], s1.high[1], s2.high[1], s3.high[1]),
        mat4x4<f32>(s0.high[2], s1.high[2], s2.high[2], s3.high[2]),
        mat4x4<f32>(s0.high[3], s1.high[3], s2.high[3], s3.high[3]),
    );
}
