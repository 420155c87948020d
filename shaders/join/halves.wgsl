// Two rows, one behind the other: the first gives ROW_DIM columns, the second those that are left.

// Groups of 16 columns that are the first row's, and columns of it behind them.
override WHOLE: u32 = ROW_DIM / 16u;
override REST: u32 = ROW_DIM % 16u;

// Columns `column` to `column + 3` of 32.
fn four(columns: ptr<function, array<vec4<f32>, 8>>, column: u32) -> vec4<f32> {
    return vec4<f32>(
        (*columns)[column / 4u][column % 4u],
        (*columns)[(column + 1u) / 4u][(column + 1u) % 4u],
        (*columns)[(column + 2u) / 4u][(column + 2u) % 4u],
        (*columns)[(column + 3u) / 4u][(column + 3u) % 4u],
    );
}

fn load(opened: Opened, k: u32) -> mat4x4<f32> {
    var row = opened.first;
    var group = k;
    if REST == 0u {
        if k >= WHOLE {
            row = opened.second;
            group = k - WHOLE;
        }
        return load16(row, group);
    }
    if k > WHOLE {
        row = opened.second;
        group = k - WHOLE - 1u;
    }
    let before = load16(row, group);
    if k < WHOLE {
        return before;
    }
    // The last REST columns of a group of the second row, or of those of the first, and then those of the next group.
    let next = load16(opened.second, min(k - WHOLE, (ROW_DIM - 1u) / 16u));
    var columns = array<vec4<f32>, 8>(before[0], before[1], before[2], before[3], next[0], next[1], next[2], next[3]);
    let begin = 16u - REST;
    let values = mat4x4<f32>(
        four(&columns, begin),
        four(&columns, begin + 4u),
        four(&columns, begin + 8u),
        four(&columns, begin + 12u),
    );
    if k > WHOLE {
        return values;
    }
    let lanes = vec4<u32>(0u, 1u, 2u, 3u);
    let rest = vec4<u32>(REST);
    return mat4x4<f32>(
        select(values[0], before[0], lanes < rest),
        select(values[1], before[1], lanes + 4u < rest),
        select(values[2], before[2], lanes + 8u < rest),
        select(values[3], before[3], lanes + 12u < rest),
    );
}
