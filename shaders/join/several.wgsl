// An id reads several rows, up to four, which sum.wgsl, product.wgsl or halves.wgsl joins.
//
// Where there are more shards than a pass binds, they are grouped, so that any ROWS groups are bound together in some pass. A pass
// has the ids whose rows are in just its groups, so that each id is read whole, and once.

// Rows that an id reads: 2 to 4. Places from ROWS on repeat the first.
override ROWS: u32 = 2u;
// Shards of a group.
override GROUP_SHARDS: u32 = SHARDS / ROWS;

alias Rows = vec4<u32>;

struct Opened {
    first: Row,
    second: Row,
    third: Row,
    fourth: Row,
}

fn numbered(row: u32) -> Rows {
    return rows_of(vec2<u32>(row, 0u));
}

fn is_none(rows: Rows) -> bool {
    return rows.x == NO_ROW;
}

// The bit of the group that a row is in, or more than there are where it is not bound.
fn group_bit(row: u32) -> u32 {
    let shard = shard_of(row);
    let bound = row - params.shards[shard].first_row < params.shard_rows;
    return select(0xffffffffu, 1u << (shard / GROUP_SHARDS), bound);
}

fn in_pass(rows: Rows) -> bool {
    if params.pass_groups == 0u {
        return true;
    }
    let groups = group_bit(rows.x) | group_bit(rows.y) | group_bit(rows.z) | group_bit(rows.w);
    return groups == params.pass_groups;
}

fn open_one(row: u32) -> Row {
    let shard = shard_of(row);
    return open_row(shard, row - params.shards[shard].first_row);
}

fn open(rows: Rows) -> Opened {
    let first = open_one(rows.x);
    var opened = Opened(first, open_one(rows.y), first, first);
    if ROWS > 2u {
        opened.third = open_one(rows.z);
    }
    if ROWS > 3u {
        opened.fourth = open_one(rows.w);
    }
    return opened;
}

fn touch_all(opened: Opened) -> u32 {
    var touched = touch(opened.first) | touch(opened.second);
    if ROWS > 2u {
        touched |= touch(opened.third);
    }
    if ROWS > 3u {
        touched |= touch(opened.fourth);
    }
    return touched;
}

fn settled16(values: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(settled(values[0]), settled(values[1]), settled(values[2]), settled(values[3]));
}
