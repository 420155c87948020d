// hash: ids of any value, each of which reads one of HASH_ROWS rows; wide ones as two words, low first.
//
//   row = (HASH_MIX ? murmur3(id) : id) mod HASH_ROWS
//
// All 64 bits count, by arithmetic of 32 bits. Negative ids name no row, or count from the end of the table's rows.

// Whether ids of two words are signed.
override SIGNED: bool = false;
// Stored rows.
override HASH_ROWS: u32;
// Whether ids are mixed before the remainder is taken.
override HASH_MIX: bool = false;

// (high 2^32 + low) mod HASH_ROWS: schoolbook division by two digits of 16 bits (Knuth, The Art of Computer Programming,
// 4.3.1, algorithm D). Of each digit of the quotient the estimate is at most 2 too large. No loop: software adapters count
// turns.
fn remainder(high: u32, low: u32) -> u32 {
    let first = high % HASH_ROWS;
    if first == 0u {
        return low % HASH_ROWS;
    }
    // Shifted so that the divisor's top bit is set. By halves, as a shift by 32 is none.
    let shift = countLeadingZeros(HASH_ROWS);
    let divisor = HASH_ROWS << shift;
    let top = (first << shift) | ((low >> 1u) >> (31u - shift));
    let rest = low << shift;
    let middle = digit(top, rest >> 16u, divisor);
    return digit(middle, rest & 0xffffu, divisor) >> shift;
}

// (top 2^16 + next) mod divisor, where top is less than the divisor.
fn digit(top: u32, next: u32, divisor: u32) -> u32 {
    let high = divisor >> 16u;
    let low = divisor & 0xffffu;
    var quotient = top / high;
    var left = top - quotient * high;
    if quotient >= 0x10000u || quotient * low > (left << 16u) + next {
        quotient -= 1u;
        left += high;
        if left < 0x10000u && (quotient >= 0x10000u || quotient * low > (left << 16u) + next) {
            quotient -= 1u;
        }
    }
    return (top << 16u) + next - quotient * divisor;
}

fn rotate(word: u32, by: u32) -> u32 {
    return (word << by) | (word >> (32u - by));
}

fn mix_word(hash: u32, word: u32) -> u32 {
    return rotate(hash ^ (rotate(word * 0xcc9e2d51u, 15u) * 0x1b873593u), 13u) * 5u + 0xe6546b64u;
}

// MurmurHash3_x86_32 of 8 bytes, with seed 0.
fn murmur3(high: u32, low: u32) -> u32 {
    var hash = mix_word(mix_word(0u, low), high) ^ 8u;
    hash = (hash ^ (hash >> 16u)) * 0x85ebca6bu;
    hash = (hash ^ (hash >> 13u)) * 0xc2b2ae35u;
    return hash ^ (hash >> 16u);
}

fn row_of(position: u32) -> u32 {
    let at = params.ids_start + position * ID_WORDS;
    var low = ids[at];
    var high = 0u;
    if ID_WORDS == 2u {
        high = ids[at + 1u];
        if SIGNED && high >= 0x80000000u {
            // As in direct.wgsl.
            let from_end = low + params.rows;
            if !WRAP || high != 0xffffffffu || from_end >= params.rows {
                return NO_ROW;
            }
            low = from_end;
            high = 0u;
        }
    }
    if HASH_MIX {
        return murmur3(high, low) % HASH_ROWS;
    }
    return remainder(high, low);
}
