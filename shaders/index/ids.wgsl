// What every index reads: ids of one word or two, low first.

// How many ids named no row, and the least position of one.
struct Status {
    bad: atomic<u32>,
    first_bad: atomic<u32>,
}

@group(0) @binding(1) var<storage, read> ids: array<u32>;
@group(0) @binding(2) var<storage, read_write> status: Status;

// Words of an id.
override ID_WORDS: u32 = 1u;
// Whether -1 to -rows count from the end (signed ids only).
override WRAP: bool = false;
