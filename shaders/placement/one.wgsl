// One shard bound: a table that fits a binding, or one shard of a larger one.

@group(0) @binding(4) var<storage, read> shard0: array<vec4<u32>>;

fn shard_of(row: u32) -> u32 {
    return 0u;
}

fn fetch(shard: u32, lane: u32) -> vec4<u32> {
    return shard0[lane];
}

fn fetch_word(shard: u32, word: u32) -> u32 {
    return shard0[word / 4u][word % 4u];
}

fn fetch_shared(lane: u32) -> vec4<u32> {
    return shard0[lane];
}

fn fetch_shared_word(word: u32) -> u32 {
    return shard0[word / 4u][word % 4u];
}
