// Up to five shards bound, in the order of their rows: with parameters, ids, status and output that is all the eight
// storage buffers of the default limits. Unused places repeat a shard and begin past the last row.

@group(0) @binding(4) var<storage, read> shard0: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> shard1: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> shard2: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read> shard3: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read> shard4: array<vec4<u32>>;

fn shard_of(row: u32) -> u32 {
    var shard = 0u;
    for (var next = 1u; next < SHARDS; next++) {
        shard += u32(row >= params.shards[next].first_row);
    }
    return shard;
}

fn fetch(shard: u32, lane: u32) -> vec4<u32> {
    switch shard {
        case 0u: { return shard0[lane]; }
        case 1u: { return shard1[lane]; }
        case 2u: { return shard2[lane]; }
        case 3u: { return shard3[lane]; }
        default: { return shard4[lane]; }
    }
}

fn fetch_word(shard: u32, word: u32) -> u32 {
    switch shard {
        case 0u: { return shard0[word / 4u][word % 4u]; }
        case 1u: { return shard1[word / 4u][word % 4u]; }
        case 2u: { return shard2[word / 4u][word % 4u]; }
        case 3u: { return shard3[word / 4u][word % 4u]; }
        default: { return shard4[word / 4u][word % 4u]; }
    }
}
