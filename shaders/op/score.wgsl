// Score: sums of the products of each query and each row, and of each row with itself.
//
//   for each (row, tile of TILE queries, span of 16 SPAN columns) in parallel:
//       lanes = 16 zeros a query
//       for each 16 columns k of the span:
//           lanes += load(row, k) * the queries' columns k
//       scores[span, query, row] = the sum of the query's lanes
//
// A row is decoded once for a tile. Products are added lane by lane and the lanes in the order of `total`, as the host does,
// so the bits are the same wherever a multiplication and an addition are two roundings. Rows of shards not bound in this pass
// are another pass's; spans are added by whoever reads them.

// Queries that a thread takes: 1 or 4.
override TILE: u32 = 4u;
// Whether rows are multiplied with themselves too.
override SQUARES: bool = false;

// [tiles, GROUPS, 4 lanes of 4 columns, TILE]; zeros for queries and columns that are not there.
@group(0) @binding(1) var<storage, read> queries: array<vec4<f32>>;
// [spans, rows]
@group(0) @binding(2) var<storage, read_write> squares: array<f32>;
// [spans, queries, rows]
@group(0) @binding(3) var<storage, read_write> scores: array<f32>;

// 16 lanes of one sum.
fn add_query(sum: mat4x4<f32>, values: mat4x4<f32>, at: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        sum[0] + values[0] * queries[at],
        sum[1] + values[1] * queries[at + TILE],
        sum[2] + values[2] * queries[at + 2u * TILE],
        sum[3] + values[3] * queries[at + 3u * TILE],
    );
}

fn add_square(sum: mat4x4<f32>, values: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(
        sum[0] + values[0] * values[0],
        sum[1] + values[1] * values[1],
        sum[2] + values[2] * values[2],
        sum[3] + values[3] * values[3],
    );
}

// The last columns of a row, with zeros for those past DIM.
fn cut(values: mat4x4<f32>) -> mat4x4<f32> {
    let lanes = vec4<u32>(0u, 1u, 2u, 3u);
    let left = vec4<u32>(DIM - 16u * (GROUPS - 1u));
    return mat4x4<f32>(
        select(vec4<f32>(), values[0], lanes < left),
        select(vec4<f32>(), values[1], lanes + 4u < left),
        select(vec4<f32>(), values[2], lanes + 8u < left),
        select(vec4<f32>(), values[3], lanes + 12u < left),
    );
}

fn total(sum: mat4x4<f32>) -> f32 {
    let quarters = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    return (quarters.x + quarters.y) + (quarters.z + quarters.w);
}

@compute @workgroup_size(WORKGROUP)
fn score(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = id.y * params.grid_width + id.x;
    if at >= params.pass_rows {
        return;
    }
    let tile = id.z / THREADS;
    let span = id.z % THREADS;
    let rows = numbered(params.pass_first + at);
    if !in_pass(rows) {
        return;
    }
    let opened = open(rows);
    let squared = SQUARES && tile == 0u;
    var sum0 = mat4x4<f32>();
    var sum1 = mat4x4<f32>();
    var sum2 = mat4x4<f32>();
    var sum3 = mat4x4<f32>();
    var square = mat4x4<f32>();
    // Mesa reorders sums that it sees whole, as it does those of a loop it can unroll: `zero` keeps it from that.
    let end = min((span + 1u) * SPAN, GROUPS) + params.zero;
    for (var k = span * SPAN; k < end; k++) {
        var values = load(opened, k);
        if DIM % 16u != 0u && k == GROUPS - 1u {
            values = cut(values);
        }
        let first = (tile * GROUPS + k) * 4u * TILE;
        sum0 = add_query(sum0, values, first);
        if TILE > 1u {
            sum1 = add_query(sum1, values, first + 1u);
            sum2 = add_query(sum2, values, first + 2u);
            sum3 = add_query(sum3, values, first + 3u);
        }
        if squared {
            square = add_square(square, values);
        }
    }
    let query = tile * TILE;
    let out = (span * params.batch + query) * params.pass_rows + at;
    scores[out] = total(sum0);
    if TILE > 1u && query + 1u < params.batch {
        scores[out + params.pass_rows] = total(sum1);
    }
    if TILE > 1u && query + 2u < params.batch {
        scores[out + 2u * params.pass_rows] = total(sum2);
    }
    if TILE > 1u && query + 3u < params.batch {
        scores[out + 3u * params.pass_rows] = total(sum3);
    }
    if squared {
        squares[span * params.pass_rows + at] = total(square);
    }
}
