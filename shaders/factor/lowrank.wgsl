// lowrank: a row of few columns times a basis that all rows share.
//
//   x[c] = sum over j, from 0 up, of u[j] * basis[j][c]

// Columns that the codec stores of a row.
override CODEC_DIM: u32;
// Which part the basis is, f32 [CODEC_DIM, ROW_DIM].
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

// Columns 4 c to 4 c + 3 of row j of the basis; those past ROW_DIM repeat others.
fn basis4(start: u32, j: u32, c: u32) -> vec4<f32> {
    let row = start + j * ROW_DIM;
    if ROW_DIM % 4u == 0u {
        return bitcast<vec4<f32>>(fetch_shared(row / 4u + min(c, ROW_DIM / 4u - 1u)));
    }
    let columns = min(vec4<u32>(4u * c) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(ROW_DIM - 1u));
    return bitcast<vec4<f32>>(vec4<u32>(
        fetch_shared_word(row + columns.x),
        fetch_shared_word(row + columns.y),
        fetch_shared_word(row + columns.z),
        fetch_shared_word(row + columns.w),
    ));
}

fn load16(row: Row, k: u32) -> mat4x4<f32> {
    let start = basis_start();
    var sum = mat4x4<f32>();
    for (var first = 0u; first < CODEC_DIM; first += 16u) {
        // A value cannot be indexed by a variable on every backend; a variable can.
        var u = decode16(row, first / 16u);
        let count = min(16u, CODEC_DIM - first);
        for (var i = 0u; i < count; i++) {
            let factor = u[i / 4u][i % 4u];
            sum[0] += factor * basis4(start, first + i, 4u * k);
            sum[1] += factor * basis4(start, first + i, 4u * k + 1u);
            sum[2] += factor * basis4(start, first + i, 4u * k + 2u);
            sum[3] += factor * basis4(start, first + i, 4u * k + 3u);
        }
    }
    return sum;
}
