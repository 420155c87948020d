// Up to five shards bound, in the order of their rows: with ids, status and output that is all the eight storage buffers of
// the default limits. Places from BOUND on repeat a shard and are never read.

// Shards bound; what follows from fewer than five is left out by the driver's compiler.
override BOUND: u32 = 5u;

@group(0) @binding(4) var<storage, read> shard0: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> shard1: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> shard2: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read> shard3: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read> shard4: array<vec4<u32>>;

fn shard_of(row: u32) -> u32 {
    var shard = 0u;
    for (var next = 1u; next < BOUND; next++) {
        shard += u32(row >= params.shards[next].first_row);
    }
    return shard;
}

fn fetch(shard: u32, lane: u32) -> vec4<u32> {
    if BOUND > 4u && shard == 4u {
        return shard4[lane];
    }
    if BOUND > 3u && shard == 3u {
        return shard3[lane];
    }
    if BOUND > 2u && shard == 2u {
        return shard2[lane];
    }
    if BOUND > 1u && shard == 1u {
        return shard1[lane];
    }
    return shard0[lane];
}

fn fetch_word(shard: u32, word: u32) -> u32 {
    if BOUND > 4u && shard == 4u {
        return shard4[word / 4u][word % 4u];
    }
    if BOUND > 3u && shard == 3u {
        return shard3[word / 4u][word % 4u];
    }
    if BOUND > 2u && shard == 2u {
        return shard2[word / 4u][word % 4u];
    }
    if BOUND > 1u && shard == 1u {
        return shard1[word / 4u][word % 4u];
    }
    return shard0[word / 4u][word % 4u];
}

// Every shard has a copy of what all rows share.
fn fetch_shared(lane: u32) -> vec4<u32> {
    return shard0[lane];
}

fn fetch_shared_word(word: u32) -> u32 {
    return shard0[word / 4u][word % 4u];
}
