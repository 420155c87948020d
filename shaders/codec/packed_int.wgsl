// int2, int3, int4: x = (c - OFFSET) * s, or c * s + b where affine; one step a row or a group of columns. 0 is never -0.0.
//
//   words = the 2 BITS bytes of 16 columns, at whatever byte they begin
//   for each column j:
//       code = bits BITS j to BITS j + BITS - 1 of words
//
// Shift and mask of unsigned codes are the fastest way on software adapters, and the same elsewhere. A negative scale turns
// the difference round while it is a whole number: in f32 drivers may reorder what makes 0, and its sign with it.

// Bits of a code: 2, 3 or 4.
override BITS: u32;
// Whether a step has a bias.
override AFFINE: bool = false;
// Whether steps are halves, else f32.
override HALF: bool = true;
// Columns of a group, a multiple of 16; 0 where the row is one group.
override GROUP: u32 = 0u;

override MASK: u32 = (1u << BITS) - 1u;
// The code of 0 where there is no bias.
override OFFSET: u32 = 1u << (BITS - 1u);
override ROW_STEPS: u32 = select((CODEC_DIM + GROUP - 1u) / max(GROUP, 1u), 1u, GROUP == 0u);
// Steps are counted in halves where each is one, else in words.
override STEP_UNITS: u32 = select(1u, 2u, AFFINE && !HALF);
override WORD_UNITS: u32 = select(1u, 2u, HALF && !AFFINE);

struct Row {
    shard: u32,
    base: u32,
    // Where the row's first step is.
    steps: u32,
    // The step of the whole row, where it is one group.
    step: vec2<f32>,
}

fn load_step(shard: u32, at: u32) -> vec2<f32> {
    let word = fetch_word(shard, at / WORD_UNITS);
    if HALF {
        let halves = unpack2x16float(word);
        if AFFINE {
            return halves;
        }
        return vec2<f32>(select(halves.x, halves.y, at % 2u == 1u), 0.0);
    }
    if AFFINE {
        return vec2<f32>(bitcast<f32>(word), bitcast<f32>(fetch_word(shard, at + 1u)));
    }
    return vec2<f32>(bitcast<f32>(word), 0.0);
}

fn open_row(shard: u32, row: u32) -> Row {
    let steps = params.shards[shard].part1 * WORD_UNITS + row * ROW_STEPS * STEP_UNITS;
    return Row(shard, row * ROW_BYTES, steps, load_step(shard, steps));
}

fn touch(row: Row) -> u32 {
    return touch_lines(row.shard, row.base);
}

// 16 columns from byte `at` of part 0 on: the last 16 of a row may pass its end, by less than what may be read there.
fn words16(shard: u32, at: u32) -> vec2<u32> {
    let word = at / 4u;
    var low = vec2<u32>(fetch_word(shard, word), 0u);
    if BITS > 2u || ROW_BYTES % 4u != 0u {
        low.y = fetch_word(shard, word + 1u);
    }
    if BITS != 3u && ROW_BYTES % 4u == 0u {
        return low;
    }
    let shift = (at % 4u) * 8u;
    var high = vec2<u32>(low.y, 0u);
    if BITS == 4u || ROW_BYTES % 2u != 0u {
        if shift + 16u * BITS > 64u {
            high.y = fetch_word(shard, word + 2u);
        }
    }
    // By two shifts, the second of which drops all of `high` where `shift` is 0.
    return (low >> vec2<u32>(shift)) | ((high << vec2<u32>(31u - shift)) << vec2<u32>(1u));
}

// Codes 4 quad to 4 quad + 3 of 16, in the low bits.
fn quad_bits(words: vec2<u32>, quad: u32) -> u32 {
    let bit = 4u * BITS * quad;
    if bit >= 32u {
        return words.y >> (bit - 32u);
    }
    if bit + 4u * BITS <= 32u {
        return words.x >> bit;
    }
    return (words.x >> bit) | (words.y << (32u - bit));
}

fn decode4(step: vec2<f32>, bits: u32) -> vec4<f32> {
    let codes = (vec4<u32>(bits) >> vec4<u32>(0u, BITS, 2u * BITS, 3u * BITS)) & vec4<u32>(MASK);
    if AFFINE {
        return vec4<f32>(vec4<i32>(codes)) * step.x + step.y;
    }
    let steps = vec4<i32>(codes) - i32(OFFSET);
    return vec4<f32>(select(steps, -steps, step.x < 0.0)) * abs(step.x);
}

fn decode16(row: Row, k: u32) -> mat4x4<f32> {
    let words = words16(row.shard, row.base + 2u * BITS * k);
    var step = row.step;
    if GROUP != 0u {
        step = load_step(row.shard, row.steps + 16u * k / max(GROUP, 1u) * STEP_UNITS);
    }
    return mat4x4<f32>(
        decode4(step, quad_bits(words, 0u)),
        decode4(step, quad_bits(words, 1u)),
        decode4(step, quad_bits(words, 2u)),
        decode4(step, quad_bits(words, 3u)),
    );
}
