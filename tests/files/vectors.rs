//! A14: word vectors: GloVe, word2vec and fastText, plain and gzip.

use gatherum::io::{FileError, Format, Input, OpenOptions, Vocabulary, open_rows};
use gatherum::{EncodedTable, Encoder};
use proptest::prelude::*;

use super::{
    foreign::{Folder, VALUES, refused},
    formats, read, read_by,
};

/// Words with a space, with bytes that are no UTF-8, and with blanks that part nothing.
const WORDS: [&[u8]; 5] = [b"the", b". . .", b"\xff\xfe", "a\u{a0}b\u{85}".as_bytes(), b"3"];
const SINGLE: [&[u8]; 5] = [b"the", b"of", b"\xff\xfe", "a\u{a0}b\u{85}".as_bytes(), b"3"];

fn open(name: &str, bytes: &[u8]) -> Input {
    open_rows(Folder::new().file(name, bytes), &OpenOptions::default()).unwrap()
}

/// Opened plain and as gzip, read in blocks of several sizes and again from the start.
fn check(name: &str, bytes: &[u8], words: &[&[u8]], format: Format) {
    for gzip in [false, true] {
        let (name, bytes) = match gzip {
            true => (format!("{name}.gz"), formats::gzip(bytes)),
            false => (name.to_owned(), bytes.to_vec()),
        };
        let mut input = open(&name, &bytes);
        assert_eq!((input.format, input.gzip), (format, gzip), "{name}");
        assert_eq!(input.words, Some(Vocabulary::from_words(words).unwrap()), "{name}");
        for block in [1, 2, 3, 5] {
            assert_eq!(read_by(&mut input, block).unwrap(), VALUES, "{name} by {block} rows");
        }
        let mut row = [0.0; 3];
        input.rows.read_rows(3, &mut row).unwrap();
        assert_eq!(row, VALUES[9..12]);
    }
}

#[test]
fn a14_glove() {
    for end in ["\n", "\r\n", " \n"] {
        check("glove.txt", &formats::text(&WORDS, &VALUES, end), &WORDS, Format::Glove);
    }
    let mut file = formats::text(&WORDS, &VALUES, "\n");
    file.pop();
    check("glove.txt", &file, &WORDS, Format::Glove);
    file.extend(b"\n\n \n");
    check("vectors", &file, &WORDS, Format::Glove);
    check("bom.txt", &[b"\xef\xbb\xbf", &file[..]].concat(), &WORDS, Format::Glove);
}

#[test]
fn a14_glove_whose_first_word_holds_spaces_or_numbers() {
    for first in [&b". . ."[..], b"at name@domain.com", b"1 2"] {
        let words = [first, b"a", b"b", b"c", b"d"];
        check("glove.txt", &formats::text(&words, &VALUES, "\n"), &words, Format::Glove);
    }
}

#[test]
fn a14_word2vec_and_fasttext_text() {
    check("w2v.txt", &formats::headed(&WORDS, &VALUES, "\n"), &WORDS, Format::Word2VecText);
    check("wiki.vec", &formats::headed(&WORDS, &VALUES, " \n"), &WORDS, Format::Word2VecText);
    // word2vec writes text by that name too.
    check("vectors.bin", &formats::headed(&WORDS, &VALUES, "\n"), &WORDS, Format::Word2VecText);
}

#[test]
fn a14_word2vec_binary() {
    for newlines in [false, true] {
        let file = formats::word2vec_binary(&SINGLE, &VALUES, newlines);
        for name in ["w2v.bin", "vectors", "vectors.txt"] {
            check(name, &file, &SINGLE, Format::Word2VecBinary);
        }
    }
}

#[test]
fn a14_empty_files_with_a_header() {
    for name in ["a.vec", "a.bin"] {
        let mut input = open(name, b"0 7\n");
        assert_eq!((input.rows.shape().rows(), input.rows.shape().dim()), (0, 7));
        assert!(read(&mut input).is_empty());
    }
}

#[test]
fn a14_bad_lines_are_named_by_file_line_and_reason() {
    for (file, says) in [
        ("the 1 2 3\nof 1 2 3\nand 1 2\n", "a.txt, line 3: holds 2 numbers behind its word; 3 are expected"),
        ("the 1 2 3\nof 1 x 3\nand 1 2 3\n", "a.txt, line 2: \"x\" (column 1) is no number"),
        ("the 1 2 3\nof 1 1e39 3\nand 1 2 3\n", "a.txt, line 2: \"1e39\" (column 1) does not fit f32"),
        ("the 1 2 3\n\nand 1 2 3\n", "a.txt, line 2: is blank"),
        ("the 1 2 3\nof 1 2 3\nand\n", "a.txt, line 3: holds 0 numbers"),
        ("3 3\nthe 1 2 3\nof 1 2\nand 1 2 3", "a.txt, line 3: holds 2 numbers"),
        ("2 3\nthe 1 2 3\nof 1 2 \u{a0}3\n", "a.txt, line 3: \"\\u{a0}3\" (column 2)"),
        (
            "3 4\nthe 1 2 3\nof 1 2 3\nand 1 2 3",
            "a.txt, line 1: promises 4 columns; the lines behind it hold 3 numbers",
        ),
        ("3 2\nthe 1 2 3\nof 1 2 3\nand 1 2 3", "a.txt, line 1: promises 2 columns"),
        ("4 3\nthe 1 2 3\nof 1 2 3\nand 1 2 3", "promises 4 rows, the file has 3"),
        ("2 3\nthe 1 2 3\nof 1 2 3\nand 1 2 3", "promises 2 rows, the file has 3"),
        ("1152921504606846976 3\nthe 1 2 3\n", "at most 4294967294 are supported"),
        ("1 1152921504606846976\nthe 1 2 3\n", "promises 1152921504606846976 columns"),
        ("0 1152921504606846976\n", "1152921504606846976 columns; at most 1048576"),
        ("1 0\nthe\n", "0 columns"),
    ] {
        for (name, bytes) in [("a.txt", file.as_bytes().to_vec()), ("a.txt.gz", formats::gzip(file.as_bytes()))] {
            let error = refused(name, &bytes);
            assert!(error.contains(&says.replace("a.txt", name)), "{error:?} says not {says:?}");
        }
    }
}

#[test]
fn a14_bad_lines_far_down() {
    let mut file: String = (0..60_000).map(|row| format!("word{row} 0.25 -1.5 3\n")).collect();
    file.insert_str(0, "60000 3\n");
    let bad = file.replace("word50000 0.25", "word50000 zero");
    assert!(refused("a.txt", bad.as_bytes()).contains("line 50002: \"zero\" (column 0)"));
    let mut input = open("a.txt", file.as_bytes());
    let values = read_by(&mut input, 60_000).unwrap();
    assert!(values.chunks(3).all(|row| row == [0.25, -1.5, 3.0]));
}

#[test]
fn a14_bad_records_are_named() {
    let good = formats::word2vec_binary(&SINGLE, &VALUES, false);
    let promised = |rows: &str| [rows.as_bytes(), &good[1..]].concat();
    for (file, says) in [
        (good[..good.len() - 1].to_vec(), "record 4 (at byte 69): the file ends within it"),
        (good[..6].to_vec(), "record 0 (at byte 4): the file ends within it"),
        (promised("4"), "record 4 (at byte 69): the header promises 4 rows, and more bytes follow"),
        (promised("6"), "record 5 (at byte 83): the file ends within it"),
        (promised("4294967294"), "record 5"),
        (promised("1152921504606846976"), "at most 4294967294 are supported"),
        (
            formats::word2vec_binary(&[b"a\nb"], &VALUES, false),
            "record 0 (at byte 5): its word holds a newline: \"a\\nb\"",
        ),
        ([b"1 2\n".to_vec(), vec![0; 1 << 17]].concat(), "record 0 (at byte 4): a word of more than 65536 bytes"),
    ] {
        for (name, bytes) in [("a.bin", file.clone()), ("a.bin.gz", formats::gzip(&file))] {
            let error = refused(name, &bytes);
            assert!(error.contains(says), "{error:?} says not {says:?}");
        }
    }
}

#[test]
fn a14_damaged_gzip() {
    let file = formats::gzip(&formats::text(&WORDS, &VALUES, "\n"));
    let mut flipped = file.clone();
    let last = flipped.len() - 6;
    flipped[last] ^= 1;
    for bytes in
        [&file[..file.len() - 9], &file[..20], &file[..2], &flipped, &[&file[..], b"\x1f\x8b\x08junk"].concat()]
    {
        refused("a.txt.gz", bytes);
    }
    // Several members are one file, as `cat a.gz b.gz` makes it.
    let text = formats::text(&SINGLE, &VALUES, "\n");
    let (one, other) = text.split_at(text.len() / 2);
    check_members(&[formats::gzip(one), formats::gzip(other)].concat());
    let error = refused("a.npy.gz", &formats::gzip(&formats::npy(1, "<f4", false, "(1, 1)", &[0; 4])));
    assert!(error.contains("no format that is read"), "{error}");
}

fn check_members(bytes: &[u8]) {
    assert_eq!(read(&mut open("a.txt.gz", bytes)), VALUES);
}

#[test]
fn a14_non_finite_numbers_are_left_to_the_encoder() {
    let mut input = open("a.txt", b"the 1 2 3\nof 1 nan 3\nand 1 2 3\n");
    assert!(read(&mut input)[4].is_nan());
    let error = Encoder::new(&"int8".parse().unwrap()).table("a", &mut *input.rows).unwrap_err();
    assert_eq!(error.to_string(), "row 1, column 1 is NaN; a table must be finite");
}

#[test]
fn a14_vectors_become_a_table() {
    let mut input = open("glove.txt", &formats::text(&WORDS, &VALUES, "\n"));
    let (table, _) = Encoder::new(&"f32".parse().unwrap()).table("glove", &mut *input.rows).unwrap();
    let (expected, _) = EncodedTable::encode("x", &VALUES, 3, &"f32".parse().unwrap()).unwrap();
    assert!(table.parts().eq(expected.parts()));
    assert_eq!(input.words.unwrap().find(b"\xff\xfe"), Some(2));
}

#[test]
fn words_of_more_than_64_kib_are_refused() {
    let file = [b"a 1 2\n".to_vec(), vec![b'x'; 1 << 17], b" 1 2\nb 1 2\n".to_vec()].concat();
    let path = Folder::new();
    let error = open_rows(path.file("a.txt", &file), &OpenOptions::default()).unwrap_err();
    assert!(matches!(error, FileError::BadLine { line: 2, .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any finite numbers and any words without blanks come back from text and from binary, bit for bit.
    #[test]
    fn a14_any_vectors_come_back(
        dim in 1usize..6,
        rows in prop::collection::vec(("[^ \t\r\n\u{feff}]{1,5}", prop::array::uniform5(prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO)), 1..12),
    ) {
        let words: Vec<&[u8]> = rows.iter().map(|(word, _)| word.as_bytes()).collect();
        let values: Vec<f32> = rows.iter().flat_map(|(_, row)| row[..dim].to_vec()).collect();
        let bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
        for (name, file) in [
            ("a.vec", formats::headed(&words, &values, "\n")),
            ("a.bin", formats::word2vec_binary(&words, &values, true)),
        ] {
            let mut input = open(name, &file);
            let read: Vec<u32> = read(&mut input).iter().map(|value| value.to_bits()).collect();
            prop_assert_eq!(&read, &bits, "{}", name);
            prop_assert!(input.words.unwrap().iter().eq(words.iter().copied()));
        }
    }
}
