// MurmurHash3_x86_32 of the 8 bytes of an id, low and high word.

fn rotate(word: u32, by: u32) -> u32 {
    return (word << by) | (word >> (32u - by));
}

fn mix_word(hash: u32, word: u32) -> u32 {
    return rotate(hash ^ (rotate(word * 0xcc9e2d51u, 15u) * 0x1b873593u), 13u) * 5u + 0xe6546b64u;
}

fn murmur3(id: vec2<u32>, seed: u32) -> u32 {
    var hash = mix_word(mix_word(seed, id.x), id.y) ^ 8u;
    hash = (hash ^ (hash >> 16u)) * 0x85ebca6bu;
    hash = (hash ^ (hash >> 13u)) * 0xc2b2ae35u;
    return hash ^ (hash >> 16u);
}
