// qr: each id reads a row of its remainder by REMAINDERS and, behind those, one of its quotient.
//
//   rows = id mod REMAINDERS, REMAINDERS + (id div REMAINDERS) mod quotients
//
// There are as many quotients as the table's own rows have. All 64 bits count, by arithmetic of 32 bits.

override REMAINDERS: u32;

fn rows_of(id: vec2<u32>) -> Rows {
    let divided = divide(id, REMAINDERS);
    let quotients = (params.rows - 1u) / REMAINDERS + 1u;
    let first = divided.z;
    return Rows(first, REMAINDERS + divide(divided.xy, quotients).z, first, first);
}
