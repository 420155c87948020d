// sparse: of a row, only the values that are stored, in the order of their columns.
//
//   decode16(row, k):
//       from the first stored value at column 16 k or behind it, or from where decode16(row, k - 1) ended, if that was last,
//       while the column is one of 16 k to 16 k + 15: the value goes to its place among zeros
//
// Parts: values, columns, and where rows begin. That is a pointer a row (CSR), or one for each ROWS_EVERY rows and the number of
// a value's row among them (COO). Pointers count from the table's first value, and a shard's from its own first.

// Bytes of a value, f32 or f16, and of a column number.
override VALUE_BYTES: u32;
override COLUMN_BYTES: u32;
override ROWS_EVERY: u32 = 1u;

// The stored values of a row.
struct Row {
    shard: u32,
    begin: u32,
    end: u32,
}

// Which row was read last, and where it was left: the next value, and the next 16 columns.
var<private> latest: Row;
var<private> cursor: u32;
var<private> upcoming: u32;

// Item `at` of a part of whole numbers that begins at word `start`.
fn number(shard: u32, start: u32, at: u32, bytes: u32) -> u32 {
    if bytes == 4u {
        return fetch_word(shard, start + at);
    }
    if bytes == 2u {
        return (fetch_word(shard, start + at / 2u) >> (at % 2u * 16u)) & 0xffffu;
    }
    return (fetch_word(shard, start + at / 4u) >> (at % 4u * 8u)) & 0xffu;
}

// The first of items `begin` to `end`, which ascend, that is not less than `least`; `end` where there is none.
fn lower_bound(shard: u32, start: u32, begin: u32, end: u32, bytes: u32, least: u32) -> u32 {
    var low = begin;
    var high = end;
    while low < high {
        let middle = (low + high) / 2u;
        if number(shard, start, middle, bytes) < least {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

fn open_row(shard: u32, row: u32) -> Row {
    let pointers = select(params.shards[shard].part2, params.shards[shard].part3, ROWS_EVERY > 1u);
    let first = fetch_word(shard, pointers);
    let block = pointers + row / ROWS_EVERY;
    var opened = Row(shard, fetch_word(shard, block) - first, fetch_word(shard, block + 1u) - first);
    if ROWS_EVERY > 1u {
        let rows = params.shards[shard].part2;
        let among = row % ROWS_EVERY;
        let begin = lower_bound(shard, rows, opened.begin, opened.end, 1u, among);
        opened = Row(shard, begin, lower_bound(shard, rows, begin, opened.end, 1u, among + 1u));
    }
    latest = opened;
    cursor = opened.begin;
    upcoming = 0u;
    return opened;
}

// Rows are of different lengths, and short.
fn touch(row: Row) -> u32 {
    return 0u;
}

fn value_bits(shard: u32, at: u32) -> u32 {
    if VALUE_BYTES == 4u {
        return fetch_word(shard, at);
    }
    return bitcast<u32>(unpack2x16float(fetch_word(shard, at / 2u) >> (at % 2u * 16u)).x);
}

fn decode16(row: Row, k: u32) -> mat4x4<f32> {
    let columns = params.shards[row.shard].part1;
    if k != upcoming || row.begin != latest.begin || row.shard != latest.shard {
        cursor = lower_bound(row.shard, columns, row.begin, row.end, COLUMN_BYTES, 16u * k);
    }
    latest = row;
    upcoming = k + 1u;
    let lanes = vec4<u32>(0u, 1u, 2u, 3u);
    var bits0 = vec4<u32>();
    var bits1 = vec4<u32>();
    var bits2 = vec4<u32>();
    var bits3 = vec4<u32>();
    while cursor < row.end {
        let place = number(row.shard, columns, cursor, COLUMN_BYTES) - 16u * k;
        if place >= 16u {
            break;
        }
        let value = vec4<u32>(value_bits(row.shard, cursor));
        let at = vec4<u32>(place);
        // Bits and no sums: those of subnormal values are left alone.
        bits0 |= select(vec4<u32>(), value, at == lanes);
        bits1 |= select(vec4<u32>(), value, at == lanes + 4u);
        bits2 |= select(vec4<u32>(), value, at == lanes + 8u);
        bits3 |= select(vec4<u32>(), value, at == lanes + 12u);
        cursor += 1u;
    }
    return mat4x4<f32>(
        bitcast<vec4<f32>>(bits0),
        bitcast<vec4<f32>>(bits1),
        bitcast<vec4<f32>>(bits2),
        bitcast<vec4<f32>>(bits3),
    );
}
