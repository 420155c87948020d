// 64 bits divided by 32: schoolbook division by two digits of 16 bits (Knuth, The Art of Computer Programming, 4.3.1,
// algorithm D). Of each digit of the quotient the estimate is at most 2 too large. No loop: software adapters count turns.

// The digit (top 2^16 + next) / divisor and what is left, where top is less than the divisor, whose top bit is set.
fn digit(top: u32, next: u32, divisor: u32) -> vec2<u32> {
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
    return vec2<u32>(quotient, (top << 16u) + next - quotient * divisor);
}

// Low and high word of the quotient of `id`, low and high word, and a divisor, and the remainder.
fn divide(id: vec2<u32>, divisor: u32) -> vec3<u32> {
    let high = id.y / divisor;
    let first = id.y - high * divisor;
    if first == 0u {
        let low = id.x / divisor;
        return vec3<u32>(low, high, id.x - low * divisor);
    }
    // Shifted so that the divisor's top bit is set. By halves, as a shift by 32 is none.
    let shift = countLeadingZeros(divisor);
    let by = divisor << shift;
    let top = (first << shift) | ((id.x >> 1u) >> (31u - shift));
    let rest = id.x << shift;
    let middle = digit(top, rest >> 16u, by);
    let last = digit(middle.y, rest & 0xffffu, by);
    return vec3<u32>((middle.x << 16u) | last.x, high, last.y >> shift);
}
