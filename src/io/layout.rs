//! The table file: version 1.
//!
//! A table is a `.safetensors` file: any reader of those opens it as plain tensors. Words in capitals are as in RFC 2119.
//!
//! ```text
//! byte 0        8                  8 + n
//!      | n: U64 | header: n bytes  | tensor | tensor | ... | words |
//!
//! header: JSON, padded with spaces so that 8 + n is a multiple of 8
//! { "__metadata__": { "format": "gatherum", "format_version": "1",
//!                     "scheme": "int8", "rows": "341479", "dim": "100",
//!                     "checksum": "xxh3:<16 hex>",                          of the description
//!                     "checksum.codes": "xxh3:<16 hex>", ... },             of each tensor
//!   "codes":  { "dtype": "I8",  "shape": [341479, 100], "data_offsets": [1365916, 35513816] },
//!   "scales": { "dtype": "F32", "shape": [341479, 1],   "data_offsets": [0, 1365916] },
//!   "words":  { "dtype": "U8",  "shape": [3128704],     "data_offsets": [35513816, 38642520] } }
//! ```
//!
//! - The metadata MUST hold the keys above. It MAY hold others; a reader MUST ignore those.
//! - A reader MUST refuse a `format_version` that it does not know.
//! - There MUST be one tensor for each part of the scheme at that shape, of the part's name, type and dimensions, and no
//!   tensor beside them but `words`.
//! - `words` MAY be there: the words of all rows in order, a newline between each two. A word holds no newline. A table of
//!   0 rows has 0 bytes of words.
//! - Tensors MUST follow each other without gap or overlap, and the file MUST end with the last (safetensors says so too).
//!   They MAY come in any order. A writer SHOULD put wider types first, so that each tensor is aligned to its type.
//! - A checksum is XXH3 (64 bits, seed 0) as 16 lower-case hexadecimal digits. There MUST be one for each tensor, `words`
//!   included. The description's is of these lines, each ended by a newline, with parts in the scheme's order:
//!
//! ```text
//! gatherum 1
//! scheme int8
//! rows 341479
//! dim 100
//! part codes I8 [341479, 100] xxh3:0123456789abcdef
//! part scales F32 [341479, 1] xxh3:0123456789abcdef
//! words 3128704 xxh3:0123456789abcdef
//! ```
//!
//! - The metadata MAY say checksums of blocks, by which a reader of some rows believes what it has read. A writer SHOULD
//!   write them; a reader that reads all MAY ignore them, and one that reads on demand MUST refuse a table without.
//!   `block_bytes` is the size of a block, a power of two from 4096 to 2^30. `blocks.NAME` is, for each part, the XXH3 of each
//!   of its blocks, 16 lower-case hexadecimal digits each and nothing between; the last block has the bytes that are left.
//!   `checksum.blocks` is that of these lines, the first with the description's checksum:
//!
//! ```text
//! description xxh3:0123456789abcdef
//! block_bytes 16384
//! blocks codes 0123456789abcdef0123456789abcdef...
//! blocks scales 0123456789abcdef
//! ```

use std::{collections::HashMap, fmt::Write as _};

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{
    block_sums::{self, BlockSums},
    header::Header,
};
use crate::scheme::{Part, TableSpec};

pub(super) const FORMAT: &str = "gatherum";
pub(super) const VERSION: &str = "1";
/// Name of the words' tensor; no scheme has a part of that name.
pub(super) const WORDS: &str = "words";

/// Whether the header is that of a table, whatever its version.
pub(super) fn is_ours(header: &Header) -> bool {
    header.metadata.metadata().as_ref().and_then(|metadata| metadata.get("format")).is_some_and(|name| name == FORMAT)
}

/// A checksum as it is written.
pub(super) fn written(checksum: u64) -> String {
    format!("xxh3:{checksum:016x}")
}

/// What a table file holds, but for the bytes.
#[derive(Clone, Debug)]
pub(super) struct Contents<'a> {
    pub(super) spec: &'a TableSpec,
    /// Bytes of the words' tensor.
    pub(super) words: Option<u64>,
    /// Of each part in the scheme's order, and of the words.
    pub(super) checksums: Vec<String>,
    /// Of the blocks of each part.
    pub(super) blocks: Option<&'a BlockSums>,
}

/// The part numbers in the order in which a writer puts them: wider types first.
pub(super) fn order(spec: &TableSpec) -> Vec<usize> {
    let mut order: Vec<usize> = (0..spec.parts().len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(spec.parts()[*number].dtype().bytes()));
    order
}

impl Contents<'_> {
    /// The lines that the description's checksum is of.
    fn description(&self) -> String {
        let (spec, shape) = (self.spec, self.spec.shape());
        let mut text =
            format!("{FORMAT} {VERSION}\nscheme {}\nrows {}\ndim {}\n", spec.scheme(), shape.rows(), shape.dim());
        let mut checksums = self.checksums.iter();
        for (part, checksum) in spec.parts().iter().zip(&mut checksums) {
            // Writing to a String does not fail.
            let _ = writeln!(text, "part {} {} {:?} {checksum}", part.name(), part.dtype(), part.shape());
        }
        if let (Some(bytes), Some(checksum)) = (self.words, checksums.next()) {
            let _ = writeln!(text, "words {bytes} {checksum}");
        }
        text
    }

    /// The description's checksum.
    pub(super) fn checksum(&self) -> String {
        written(xxh3_64(self.description().as_bytes()))
    }

    /// The first bytes of the file, up to the first tensor. Their number does not depend on the checksums.
    /// The metadata says what `others` does beside what tables say.
    pub(super) fn header(&self, others: &HashMap<String, String>) -> Vec<u8> {
        let (spec, shape) = (self.spec, self.spec.shape());
        let mut metadata: Map<_, _> = others.iter().map(|(key, text)| (key.clone(), text.clone().into())).collect();
        let mut note = |key: &str, value: &str| metadata.insert(key.to_owned(), Value::from(value));
        note("format", FORMAT);
        note("format_version", VERSION);
        note("scheme", &spec.scheme().to_string());
        note("rows", &shape.rows().to_string());
        note("dim", &shape.dim().to_string());
        note("checksum", &self.checksum());
        let names = spec.parts().iter().map(Part::name).chain([WORDS]);
        for (name, checksum) in names.zip(&self.checksums) {
            note(&format!("checksum.{name}"), checksum);
        }
        if let Some(blocks) = self.blocks {
            note(block_sums::BLOCK_BYTES, &blocks.block.to_string());
            note(block_sums::CHECKSUM, &blocks.checksum(spec, &self.checksum()));
            for (number, part) in spec.parts().iter().enumerate() {
                note(&block_sums::key(part.name()), &blocks.digits(number));
            }
        }
        let mut tensors = Map::new();
        tensors.insert("__metadata__".to_owned(), Value::Object(metadata));
        let mut end = 0;
        let mut tensor = |name: &str, dtype: &str, shape: &[u64], bytes: u64| {
            let value = json!({ "dtype": dtype, "shape": shape, "data_offsets": [end, end + bytes] });
            tensors.insert(name.to_owned(), value);
            end += bytes;
        };
        for number in order(spec) {
            let part = &spec.parts()[number];
            tensor(part.name(), &part.dtype().to_string(), part.shape(), part.bytes().0);
        }
        if let Some(bytes) = self.words {
            tensor(WORDS, "U8", &[bytes], bytes);
        }
        let mut json = Value::Object(tensors).to_string();
        json.push_str(&" ".repeat(json.len().next_multiple_of(8) - json.len()));
        let mut header = (json.len() as u64).to_le_bytes().to_vec();
        header.extend_from_slice(json.as_bytes());
        header
    }
}

/// The checksum of bytes that come in pieces.
pub(super) fn hasher() -> Xxh3 {
    Xxh3::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scheme, Shape};

    #[test]
    fn the_header_is_as_the_format_says() {
        let spec = "int8".parse::<Scheme>().unwrap().spec(Shape::new(341_479, 100).unwrap()).unwrap();
        let sums = vec![written(1), written(2), written(0x0123_4567_89ab_cdef)];
        let contents = Contents { spec: &spec, words: Some(3_128_704), checksums: sums, blocks: None };
        let header = contents.header(&HashMap::new());
        assert_eq!(header.len() % 8, 0);
        let json: Value = serde_json::from_slice(&header[8..]).unwrap();
        assert_eq!(json["codes"]["data_offsets"], json!([1_365_916, 35_513_816]));
        assert_eq!(json["scales"]["data_offsets"], json!([0, 1_365_916]));
        assert_eq!(json["words"]["data_offsets"], json!([35_513_816, 38_642_520]));
        assert_eq!(json["__metadata__"]["checksum.codes"], "xxh3:0000000000000001");
        assert_eq!(
            contents.description(),
            "gatherum 1\nscheme int8\nrows 341479\ndim 100\n\
             part codes I8 [341479, 100] xxh3:0000000000000001\n\
             part scales F32 [341479, 1] xxh3:0000000000000002\n\
             words 3128704 xxh3:0123456789abcdef\n"
        );
    }

    #[test]
    fn no_part_is_called_words() {
        for text in Scheme::all().iter().flat_map(|info| info.variants) {
            let spec = text.parse::<Scheme>().unwrap().spec(Shape::new(1, 64).unwrap()).unwrap();
            assert!(spec.parts().iter().all(|part| part.name() != WORDS));
        }
    }
}
