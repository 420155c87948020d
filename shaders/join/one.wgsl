// An id reads one row.

alias Rows = u32;
alias Opened = Row;

fn numbered(row: u32) -> Rows {
    return row;
}

fn is_none(rows: Rows) -> bool {
    return rows == NO_ROW;
}

fn in_pass(rows: Rows) -> bool {
    return rows - params.pass_first < params.pass_rows;
}

fn open(rows: Rows) -> Opened {
    let shard = shard_of(rows);
    return open_row(shard, rows - params.shards[shard].first_row);
}

fn touch_all(opened: Opened) -> u32 {
    return touch(opened);
}

fn load(opened: Opened, k: u32) -> mat4x4<f32> {
    return load16(opened, k);
}
