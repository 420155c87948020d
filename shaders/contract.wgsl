// What joins the parts of a pipeline. A pipeline is this file and one of each: index, placement, codec, factor, join, out,
// op.
//
//   index      row_of(position) -> Rows             the stored rows that the id at a position reads, or Rows(NO_ROW);
//                                                   operations on all rows have no ids, and no index unless ids are hashed
//              rows_of(id) -> Rows                  where ids are hashed: the same of an id's low and high word
//   join       Rows, Opened                         what an id reads: one stored row or several; the same, opened
//              numbered(row) -> Rows                what is row of an operation on all rows
//              is_none(rows) -> bool                whether it is Rows(NO_ROW)
//              in_pass(rows) -> bool                whether this pass has them, and no other
//              open(rows) -> Opened                 of rows that are in the pass
//              touch_all(opened) -> u32             as touch
//              load(opened, k) -> mat4x4<f32>       the columns 16 k to 16 k + 15 that an id reads; those past DIM may be
//                                                   anything
//   placement  shard_of(row) -> u32                 the shard, among those bound, that a row is in
//              fetch(shard, lane) -> vec4<u32>      16 bytes of a shard
//              fetch_word(shard, word) -> u32       4 bytes of a shard
//              fetch_shared(lane) -> vec4<u32>      16 bytes of the first shard bound: of what all rows share, its copy
//              fetch_shared_word(word) -> u32       4 bytes of it
//   codec      struct Row                           what is read once a row
//              open_row(shard, row) -> Row          row counts from the shard's first
//              touch(row) -> u32                    any word of each further cache line of the row, so that all are
//                                                   on their way before the first is waited for
//              decode16(row, k) -> mat4x4<f32>      stored columns 16 k to 16 k + 15; those past CODEC_DIM may be anything
//   factor     CODEC_DIM                            columns that the codec stores of a row
//              load16(row, k) -> mat4x4<f32>        columns 16 k to 16 k + 15 of a stored row; those past ROW_DIM may be
//                                                   anything
//   out        store16(position, k, values)         the same columns of the output, those past DIM left out
//              stored16(position, k) -> mat4x4<f32> what was stored there; f32 only
//   op         the entry point
//
// Rows are compared with the table's before anything is multiplied; every address follows from a row so checked.

// Columns of a row.
override DIM: u32;
// Columns of a stored row.
override ROW_DIM: u32 = DIM;
// Threads of a workgroup.
override WORKGROUP: u32 = 64u;
// Groups of 16 columns that one thread decodes: 1 is the fine grain, GROUPS the coarse.
override SPAN: u32 = 1u;

// Groups of 16 columns in a row, and threads that share a row.
override GROUPS: u32 = (DIM + 15u) / 16u;
override THREADS: u32 = (GROUPS + SPAN - 1u) / SPAN;

const NO_ROW: u32 = 0xffffffffu;
const SHARDS: u32 = 5u;

// Where a shard's rows begin, and its parts after the first (which begins at 0), in 4-byte words.
struct Shard {
    first_row: u32,
    part1: u32,
    part2: u32,
    part3: u32,
}

struct Params {
    // Rows of the table: what ids are compared with.
    rows: u32,
    // Ids of this dispatch, or queries.
    batch: u32,
    // Threads in a row of the grid.
    grid_width: u32,
    // Position of the first id in the whole batch.
    position: u32,
    // Words and elements to skip at the start of the bindings of ids and output.
    ids_start: u32,
    out_start: u32,
    // The rows that are bound now: pass_rows of them from pass_first on.
    pass_first: u32,
    pass_rows: u32,
    // 1 in the pass that answers for bad ids.
    answers_bad: u32,
    // 0, which compilers cannot know (see `settled`).
    zero: u32,
    // What an operation makes of them.
    extra1: u32,
    extra2: u32,
    // 1 in the last pass.
    last_pass: u32,
    // Where an id reads several rows, and the shards are more than a pass binds: rows of a shard, and the bits of the groups
    // of shards bound, all of which an id of this pass reads. 0 where all shards are bound.
    shard_rows: u32,
    pass_groups: u32,
    @align(16) shards: array<Shard, SHARDS>,
}

@group(0) @binding(0) var<uniform> params: Params;

// Values that no compiler may join to what is done with them next: GPUs' make one rounding of a product and a sum, Mesa's for
// GL regroups chains of three sums or products.
fn settled(values: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(bitcast<vec4<u32>>(values) | vec4<u32>(params.zero));
}

fn settled1(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) | params.zero);
}
