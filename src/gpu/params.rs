//! The uniform block of every kernel, as `shaders/contract.wgsl` declares it.

use bytemuck::{Pod, Zeroable};

/// Shards that one pass binds: with ids, status and output they are the eight storage buffers of the default limits.
pub(crate) const SHARDS_A_PASS: usize = 5;

/// `struct Shard`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(crate) struct ShardParams {
    pub(crate) first_row: u32,
    pub(crate) part1: u32,
    pub(crate) part2: u32,
    pub(crate) part3: u32,
}

/// `struct Params`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(crate) struct Params {
    /// Of the table: what ids are compared with.
    pub(crate) rows: u32,
    pub(crate) batch: u32,
    pub(crate) grid_width: u32,
    pub(crate) position: u32,
    pub(crate) ids_start: u32,
    pub(crate) out_start: u32,
    pub(crate) pass_first: u32,
    pub(crate) pass_rows: u32,
    pub(crate) answers_bad: u32,
    /// 0: see `touch` in the contract.
    pub(crate) zero: u32,
    /// What an operation makes of them.
    pub(crate) extra1: u32,
    pub(crate) extra2: u32,
    pub(crate) last_pass: u32,
    pub(crate) shard_rows: u32,
    pub(crate) pass_groups: u32,
    /// Shards begin on 16 bytes.
    pub(crate) padding: u32,
    pub(crate) shards: [ShardParams; SHARDS_A_PASS],
}

/// Names, offsets and sizes of the members of [`Params`], for the test that compares them with the shader's.
pub(crate) fn params_layout() -> Vec<(&'static str, usize, usize)> {
    macro_rules! members {
        ($($name:ident),*) => {{
            let value = Params::zeroed();
            vec![$((stringify!($name), std::mem::offset_of!(Params, $name), size_of_val(&value.$name))),*]
        }};
    }
    members!(
        rows,
        batch,
        grid_width,
        position,
        ids_start,
        out_start,
        pass_first,
        pass_rows,
        answers_bad,
        zero,
        extra1,
        extra2,
        last_pass,
        shard_rows,
        pass_groups,
        shards
    )
}
