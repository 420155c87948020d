// int8: x = c * s, or c * s + b where affine; one step a row or a group of columns.

// Whether a step has a bias.
override AFFINE: bool = false;
// Columns of a group, a multiple of 4; 0 where the row is one group.
override GROUP: u32 = 0u;

override STEP_WORDS: u32 = select(1u, 2u, AFFINE);
override ROW_STEPS: u32 = select((CODEC_DIM + GROUP - 1u) / max(GROUP, 1u), 1u, GROUP == 0u);

struct Row {
    shard: u32,
    base: u32,
    // Word of the row's first step.
    steps: u32,
    // The step of the whole row, where it is one group.
    step: vec2<f32>,
}

fn load_step(shard: u32, word: u32) -> vec2<f32> {
    let scale = bitcast<f32>(fetch_word(shard, word));
    if AFFINE {
        return vec2<f32>(scale, bitcast<f32>(fetch_word(shard, word + 1u)));
    }
    return vec2<f32>(scale, 0.0);
}

fn open_row(shard: u32, row: u32) -> Row {
    let steps = params.shards[shard].part1 + row * ROW_STEPS * STEP_WORDS;
    return Row(shard, row * ROW_BYTES, steps, load_step(shard, steps));
}

// Four codes of a word. Signed bytes become unsigned by flipping the top bit: shift, mask and an exact subtraction in f32
// are faster on software adapters than unpack4xI8, and the same elsewhere.
fn codes4(word: u32) -> vec4<f32> {
    let shifted = vec4<u32>(word, word >> 8u, word >> 16u, word >> 24u) & vec4<u32>(255u);
    return vec4<f32>(vec4<i32>(shifted)) - 128.0;
}

fn decode4(row: Row, column: u32, word: u32) -> vec4<f32> {
    var step = row.step;
    if GROUP != 0u {
        step = load_step(row.shard, row.steps + min(column / max(GROUP, 1u), ROW_STEPS - 1u) * STEP_WORDS);
    }
    let scaled = codes4(word) * step.x;
    if AFFINE {
        return scaled + step.y;
    }
    return scaled;
}

fn touch(row: Row) -> u32 {
    return touch_lines(row.shard, row.base);
}

fn decode16(row: Row, k: u32) -> mat4x4<f32> {
    let words = row_lane(row.shard, row.base, k) ^ vec4<u32>(0x80808080u);
    let column = 16u * k;
    return mat4x4<f32>(
        decode4(row, column, words.x),
        decode4(row, column + 4u, words.y),
        decode4(row, column + 8u, words.z),
        decode4(row, column + 12u, words.w),
    );
}
