// Find: the slot of each id, from the map of ids that the host keeps (src/table/dynamic/map.rs).
//
//   for each position in parallel:
//       for each bucket from murmur3(id) mod buckets on, at most extra2 of them:
//           until it is empty or has the id
//       slots[position] = its slot, or NO_ROW, and the id is added to the missed ones
//
// params.batch ids, params.rows buckets; params.extra1 is the seed. Ids that are missed are counted in any case, and kept where
// params.last_pass is 1: in no order, one as often as it is missed.

// Words of an id, the low one first.
override ID_WORDS: u32 = 2u;

struct Missed {
    count: atomic<u32>,
    // Low word, high word.
    ids: array<u32>,
}

@group(0) @binding(1) var<storage, read> ids: array<u32>;
@group(0) @binding(2) var<storage, read_write> missed: Missed;
@group(0) @binding(3) var<storage, read_write> slots: array<u32>;
// Low word, high word and slot: [rows, 3]. A slot of NO_ROW is that of an empty bucket.
@group(0) @binding(4) var<storage, read> buckets: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn find(@builtin(global_invocation_id) id: vec3<u32>) {
    let position = id.y * params.grid_width + id.x;
    if position >= params.batch {
        return;
    }
    let at = params.ids_start + position * ID_WORDS;
    let low = ids[at];
    var high = 0u;
    if ID_WORDS == 2u {
        high = ids[at + 1u];
    }
    var found = NO_ROW;
    var bucket = murmur3(vec2<u32>(low, high), params.extra1) % params.rows;
    for (var turn = 0u; turn < params.extra2; turn++) {
        let slot = buckets[3u * bucket + 2u];
        if slot == NO_ROW {
            break;
        }
        if buckets[3u * bucket] == low && buckets[3u * bucket + 1u] == high {
            found = slot;
            break;
        }
        bucket = select(bucket + 1u, 0u, bucket + 1u == params.rows);
    }
    slots[position] = found;
    if found == NO_ROW {
        let place = atomicAdd(&missed.count, 1u);
        if params.last_pass == 1u {
            missed.ids[2u * place] = low;
            missed.ids[2u * place + 1u] = high;
        }
    }
}
