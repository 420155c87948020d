// What a row is when it is made, by words; `src/table/dynamic/init.rs` says how, and is its twin.

// 0: zeros, 1: uniform, 2: normal.
override KIND: u32 = 1u;
override SEED_LOW: u32 = 0u;
override SEED_HIGH: u32 = 0u;
override LOW: f32 = 0.0;
override HIGH: f32 = 0.0;
override STEP: f32 = 0.0;
// Whether values are f16, two a word.
override HALVES: bool = false;

// Words of a row of the table.
override ROW_WORDS: u32 = select(DIM, DIM / 2u, HALVES);

// What of an id its row depends on.
fn hashes(id: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(murmur3(id, SEED_LOW), murmur3(id, SEED_HIGH ^ 0x9e3779b9u));
}

fn mix(word: u32) -> u32 {
    var mixed = (word ^ (word >> 16u)) * 0x85ebca6bu;
    mixed = (mixed ^ (mixed >> 13u)) * 0xc2b2ae35u;
    return mixed ^ (mixed >> 16u);
}

fn drawn(hash: vec2<u32>, draw: u32) -> u32 {
    return mix(mix(hash.x + draw * 0x9e3779b9u) ^ hash.y);
}

fn halves_of(word: u32) -> u32 {
    return (word & 0xffffu) + (word >> 16u);
}

fn initial_value(hash: vec2<u32>, column: u32) -> f32 {
    if KIND == 1u {
        let part = settled1(f32(drawn(hash, column) >> 8u) * STEP);
        return min(max(LOW + part, LOW), HIGH);
    }
    if KIND == 2u {
        let first = 4u * column;
        let low = halves_of(drawn(hash, first)) + halves_of(drawn(hash, first + 1u));
        let high = halves_of(drawn(hash, first + 2u)) + halves_of(drawn(hash, first + 3u));
        return (f32(low + high) - 262140.0) * STEP;
    }
    return 0.0;
}
