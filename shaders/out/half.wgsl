// f32 to IEEE binary16, rounded to nearest, ties to even. `pack2x16float` leaves the rounding to the driver.

fn half_bits(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude >= 0x47800000u {
        // 65536 and more: infinity. Tables hold no NaN.
        return sign | 0x7c00u;
    }
    if magnitude < 0x38800000u {
        // Under 2^-14: in units of 2^-24, which adding 0.5 leaves in the low bits, rounded by the addition.
        return sign | (bitcast<u32>(bitcast<f32>(magnitude) + 0.5) - 0x3f000000u);
    }
    // Round the 13 bits that go; a carry runs into the exponent, up to infinity, as it should.
    let rounded = magnitude + 0xfffu + ((magnitude >> 13u) & 1u);
    return sign | ((rounded >> 13u) - (112u << 10u));
}

fn half_pair(low: f32, high: f32) -> u32 {
    return half_bits(low) | (half_bits(high) << 16u);
}
