//! A14: GGUF files, whose quantised rows become tables without loss.

use gatherum::{
    EncodedTable, Encoder, Scheme, TableSource,
    io::{FileError, Format, OpenOptions, open_rows},
};

use super::{
    foreign::{Folder, VALUES, refused},
    formats::{self, GgufTensor},
    read, read_by,
};

/// The numbers of ggml's types.
const F32: u32 = 0;
const F16: u32 = 1;
const Q4_0: u32 = 2;
const Q4_1: u32 = 3;
const Q8_0: u32 = 8;
const Q4_K: u32 = 12;
const F64: u32 = 28;
const BF16: u32 = 30;

fn named(tensor: &str) -> OpenOptions {
    OpenOptions { tensor: Some(tensor.into()), words: None }
}

/// A number that looks random and depends on `seed` alone.
fn hash(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 29).wrapping_mul(0x94d0_49bb_1331_11eb) >> 16
}

/// `blocks` blocks of 32 columns: `numbers` halves, of either sign and many sizes, then `bytes` of codes.
fn blocks(blocks: usize, numbers: usize, bytes: usize) -> Vec<u8> {
    let mut data = Vec::new();
    for block in 0..blocks as u64 {
        for number in 0..numbers as u64 {
            let random = hash(block * 2 + number).to_le_bytes();
            // Exponents of 2^-9 to 2^2: the offset of a block is less than 2^11 times its step.
            data.extend([random[0], random[1] & 0x83 | ((6 + random[2] % 12) << 2)]);
        }
        data.extend((0..bytes as u64).map(|at| hash(block << 20 | at << 8 | 77).to_le_bytes()[0]));
    }
    data
}

/// A table of one tensor: its rows, and the table that a scheme makes of them.
fn compressed(tensor: GgufTensor<'_>, scheme: &str) -> (Vec<f32>, EncodedTable, f64) {
    let folder = Folder::new();
    let path = folder.file("model.gguf", &formats::gguf(&[], &[tensor]));
    let mut input = open_rows(path, &OpenOptions::default()).unwrap();
    let values = read(&mut input);
    let scheme: Scheme = scheme.parse().unwrap();
    let (table, report) = Encoder::new(&scheme).table("model", &mut *input.rows).unwrap();
    (values, table, report.max_error)
}

#[test]
fn a14_gguf_of_every_type() {
    let folder = Folder::new();
    for (kind, dtype) in [(F32, "F32"), (F16, "F16"), (F64, "F64"), (BF16, "BF16")] {
        let file = formats::gguf(
            &[("general.name", 8, formats::gguf_text(b"a model")), ("rope.scale", 6, vec![0; 4])],
            &[
                ("norm", F32, &[3], vec![0; 12]),
                ("other", Q4_K, &[256, 1], vec![0; 144]),
                ("emb", kind, &[3, 5], formats::numbers(dtype, &VALUES)),
            ],
        );
        let path = folder.file("model.bin", &file);
        for options in [OpenOptions::default(), named("emb")] {
            let mut input = open_rows(&path, &options).unwrap();
            assert_eq!((input.format, input.tensor.as_deref()), (Format::Gguf, Some("emb")));
            assert!(input.words.is_none());
            assert_eq!(read(&mut input), VALUES, "{dtype}");
        }
    }
}

#[test]
fn a14_gguf_blocks_by_hand() {
    let folder = Folder::new();
    // d = 0.5, m = -2; the codes of columns 0 and 16 are 15 and 0, those of 1 and 17 are 1 and 9.
    let nibbles = [&[0x0f, 0x91][..], &[0x88; 14]].concat();
    let mut codes = vec![0u8; 32];
    codes[..3].copy_from_slice(&[127, 0x81, 0x80]);
    for (kind, bytes, expected) in [
        (Q4_0, [&[0x00, 0x38][..], &nibbles].concat(), [3.5, -3.5, 0.0, -4.0, 0.5]),
        (Q4_1, [&[0x00, 0x38, 0x00, 0xc0][..], &nibbles].concat(), [5.5, -1.5, 2.0, -2.0, 2.5]),
        (Q8_0, [&[0x00, 0x38][..], &codes].concat(), [63.5, -63.5, -64.0, 0.0, 0.0]),
    ] {
        let path = folder.file("q.gguf", &formats::gguf(&[], &[("q", kind, &[32, 2], [&bytes[..], &bytes].concat())]));
        let mut input = open_rows(path, &OpenOptions::default()).unwrap();
        for row in read_by(&mut input, 1).unwrap().chunks(32) {
            assert_eq!([row[0], row[1], row[2], row[16], row[17]], expected, "type {kind}");
        }
    }
}

/// Every block of Q4_0, whatever its codes and scale: the same values, and codes of the same size.
#[test]
fn q4_0_becomes_int4_without_loss() {
    let (rows, dim) = (2000, 96);
    let data = blocks(rows * dim / 32, 1, 16);
    let bytes = data.len() as u64;
    let (values, table, max_error) =
        compressed(("token_embd.weight", Q4_0, &[dim as u64, rows as u64], data), "int4:group=32");
    assert_eq!(max_error, 0.0);
    for (index, value) in values.iter().enumerate() {
        let (row, column) = (u32::try_from(index / dim).unwrap(), u32::try_from(index % dim).unwrap());
        assert_eq!(table.reference(row, column), f64::from(*value), "[{row}, {column}]");
    }
    assert_eq!(table.spec().bytes().0, bytes);
}

/// Blocks that use few of their codes, as quantisers other than ggml's own make them.
#[test]
fn q4_0_of_few_codes_becomes_int4_without_loss() {
    for (low, most) in [(5, 6), (8, 2), (0, 3), (6, 5), (8, 1), (12, 4)] {
        let mut data = blocks(64, 1, 16);
        for block in data.chunks_mut(18) {
            block[2..].iter_mut().for_each(|byte| *byte = (low + *byte % most) | (low + *byte / 16 % most) << 4);
        }
        let (_, _, max_error) = compressed(("w", Q4_0, &[64, 32], data), "int4:group=32");
        assert_eq!(max_error, 0.0, "{most} codes from {low} on");
    }
}

/// Blocks as ggml quantises them, whose least code is 0 (Q4_1) or whose largest is 127 (Q8_0).
#[test]
fn q4_1_and_q8_0_become_tables_without_loss() {
    let mut data = blocks(3000, 2, 16);
    data.chunks_mut(20).for_each(|block| {
        block[1] &= 0x7f;
        block[4] = 0xf0;
    });
    let (_, _, max_error) = compressed(("w", Q4_1, &[96, 1000], data), "int4:affine,group=32");
    assert_eq!(max_error, 0.0, "Q4_1");

    let mut data = blocks(3000, 1, 32);
    for block in data.chunks_mut(34) {
        block[2..].iter_mut().for_each(|code| *code = if *code == 0x80 { 0 } else { *code });
        block[9] = 127;
    }
    let (_, _, max_error) = compressed(("w", Q8_0, &[96, 1000], data), "int8:group=32");
    assert_eq!(max_error, 0.0, "Q8_0");
}

#[test]
fn a14_gguf_tensors_and_words_are_found() {
    let folder = Folder::new();
    let data = || formats::numbers("F32", &VALUES);
    let tokens = |words: &[&[u8]]| ("tokenizer.ggml.tokens", 9, formats::gguf_texts(words));
    let words: [&[u8]; 5] = [b"<s>", b"the", "\u{2581}of".as_bytes(), b"", b"\xff"];
    // The table is found by its name among others of 2 dimensions.
    let tensors = [
        ("output.weight", F32, &[3u64, 5][..], data()),
        ("token_embd.weight", F32, &[3, 5], data()),
        ("small", F32, &[5, 3], data()),
    ];
    let path = folder.file("m.gguf", &formats::gguf(&[tokens(&words)], &tensors));
    let mut input = open_rows(&path, &OpenOptions::default()).unwrap();
    assert_eq!(input.tensor.as_deref(), Some("token_embd.weight"));
    assert_eq!(read(&mut input), VALUES);
    let found = input.words.unwrap();
    assert_eq!((found.len(), found.find("the"), found.get(4)), (5, Some(1), &b"\xff"[..]));
    assert!(open_rows(&path, &named("small")).unwrap().words.is_none(), "5 words for 3 rows are no rows' words");
    let error = open_rows(&path, &named("none")).unwrap_err().to_string();
    assert!(error.contains("no tensor `none`; there are: `output.weight` F32 [5, 3], `token"), "{error}");

    let several = formats::gguf(&[], &[("a", F32, &[3, 5], data()), ("b", F16, &[1, 1], vec![0; 2])]);
    let error = open_rows(folder.file("s.gguf", &several), &OpenOptions::default()).unwrap_err();
    assert!(matches!(error, FileError::Ambiguous { .. }), "{error}");
    assert!(error.to_string().contains("`a` F32 [5, 3], `b` F16 [1, 1]"), "{error}");
    // A word that no vocabulary holds: rows without words, not an error.
    let path = folder.file("n.gguf", &formats::gguf(&[tokens(&[b"a", b"b\n", b"c", b"d", b"e"])], &tensors));
    assert!(open_rows(&path, &OpenOptions::default()).unwrap().words.is_none());
}

#[test]
fn a14_gguf_headers_that_are_refused() {
    let data = formats::numbers("F32", &VALUES);
    let one = |kind, sizes: &[u64]| formats::gguf(&[], &[("w", kind, sizes, data.clone())]);
    let good = one(F32, &[3, 5]);
    let patched = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let huge = u64::MAX.to_le_bytes();
    for (file, says) in [
        (good[..good.len() - 1].to_vec(), "it is cut short"),
        (good[..20].to_vec(), "it is cut short"),
        (b"GGUF".to_vec(), "it is cut short"),
        (patched(4, &[1]), "version 1; versions 2 and 3"),
        (patched(4, &[0, 0, 0, 3]), "version 50331648"),
        (patched(8, &huge), "it claims 18446744073709551615 tensors"),
        (patched(16, &huge), "it claims 18446744073709551615 entries"),
        (patched(24, &huge), "a name of 18446744073709551615 bytes"),
        (patched(49, &[99]), "an entry of type 99"),
        (patched(53, &[0; 4]), "an alignment of 0"),
        (one(Q4_K, &[256, 1]), "tensor `w` holds Q4_K; rows are read from F32, F16"),
        (one(31, &[3, 5]), "no tensor of 2 dimensions"),
        (one(F32, &[3, 5, 1]), "no tensor of 2 dimensions"),
        (one(F32, &[1; 9]), "tensor `w` has 9 dimensions"),
        (one(F32, &[0, 5]), "0 columns"),
        (one(F32, &[4, u64::MAX]), "are supported"),
        (one(F32, &[3, 6]), "it is cut short"),
        (one(F32, &[1 << 20, (1 << 32) - 2]), "it is cut short"),
        (one(Q8_0, &[48, 1]), "tensor `w` has 48 columns; blocks have 32"),
        (formats::gguf(&[("a", 8, huge.to_vec())], &[]), "it is cut short"),
        (formats::gguf(&[("a", 9, [&10u32.to_le_bytes()[..], &huge].concat())], &[]), "it is cut short"),
        (formats::gguf(&[("a", 9, [&9u32.to_le_bytes()[..], &huge].concat())], &[]), "an entry of type"),
    ] {
        let wants_name = says.starts_with("tensor `w` holds");
        let error = if wants_name {
            let folder = Folder::new();
            open_rows(folder.file("a.gguf", &file), &named("w")).unwrap_err().to_string()
        } else {
            refused("a.gguf", &file)
        };
        assert!(error.contains(says), "{error:?} says not {says:?}");
    }
}

#[test]
fn scales_that_are_no_numbers_are_refused_by_row() {
    let folder = Folder::new();
    let block = [&[0x00, 0x7e][..], &[0x88; 16]].concat();
    let path = folder.file("q.gguf", &formats::gguf(&[], &[("q", Q4_0, &[32, 1], block)]));
    let mut input = open_rows(path, &OpenOptions::default()).unwrap();
    let error = Encoder::new(&"int4".parse().unwrap()).table("q", &mut *input.rows).unwrap_err().to_string();
    assert!(error.contains("row 0, column 0"), "{error}");
}
