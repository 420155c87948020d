//! Files of each format, made from their definitions and not by the library's own writers.

use std::io::Write;

/// A `.npy` file: `data` are the numbers' bytes.
pub(crate) fn npy(version: u8, descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    npy_header(version, header.as_bytes(), data)
}

/// A `.npy` file of any header text.
pub(crate) fn npy_header(version: u8, header: &[u8], data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    match version {
        1 => file.extend(u16::try_from(header.len()).unwrap().to_le_bytes()),
        _ => file.extend(u32::try_from(header.len()).unwrap().to_le_bytes()),
    }
    file.extend_from_slice(header);
    file.extend_from_slice(data);
    file
}

/// A safetensors file of that header text.
pub(crate) fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(data);
    file
}

/// A safetensors file of tensors: name, type, shape, bytes.
pub(crate) fn tensors(tensors: &[(&str, &str, &[u64], Vec<u8>)]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut all = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        let (start, end) = (all.len(), all.len() + bytes.len());
        let info = serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, end] });
        header.insert((*name).to_owned(), info);
        all.extend_from_slice(bytes);
    }
    safetensors(&serde_json::Value::Object(header).to_string(), &all)
}

/// A string of a GGUF file.
pub(crate) fn gguf_text(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text].concat()
}

/// A tensor of a GGUF file: name, ggml's type, sizes with the columns first, bytes.
pub(crate) type GgufTensor<'a> = (&'a str, u32, &'a [u64], Vec<u8>);

/// A GGUF file of version 3: entries are key, type and the value's bytes; tensors lie on multiples of 64 bytes.
pub(crate) fn gguf(entries: &[(&str, u32, Vec<u8>)], tensors: &[GgufTensor<'_>]) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend((entries.len() as u64 + 1).to_le_bytes());
    let alignment = ("general.alignment", 4, 64u32.to_le_bytes().to_vec());
    for (key, kind, value) in entries.iter().chain([&alignment]) {
        file.extend([gguf_text(key.as_bytes()), kind.to_le_bytes().to_vec(), value.clone()].concat());
    }
    let mut data = Vec::new();
    for (name, kind, sizes, bytes) in tensors {
        data.resize(data.len().next_multiple_of(64), 0);
        file.extend(gguf_text(name.as_bytes()));
        file.extend(u32::try_from(sizes.len()).unwrap().to_le_bytes());
        file.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
        file.extend(kind.to_le_bytes());
        file.extend((data.len() as u64).to_le_bytes());
        data.extend(bytes);
    }
    file.resize(file.len().next_multiple_of(64), 0);
    [file, data].concat()
}

/// An entry of a GGUF file that is an array of strings.
pub(crate) fn gguf_texts(texts: &[&[u8]]) -> Vec<u8> {
    let mut value = 8u32.to_le_bytes().to_vec();
    value.extend((texts.len() as u64).to_le_bytes());
    value.extend(texts.iter().flat_map(|text| gguf_text(text)));
    value
}

/// Numbers as bytes of a type: `F16`, `BF16`, `F32`, `F64`, little endian.
pub(crate) fn numbers(dtype: &str, values: &[f32]) -> Vec<u8> {
    let each = values.iter();
    match dtype {
        "F16" => each.flat_map(|value| half(*value).to_le_bytes()).collect(),
        "BF16" => each.flat_map(|value| value.to_le_bytes()[2..].to_vec()).collect(),
        "F32" => each.flat_map(|value| value.to_le_bytes()).collect(),
        "F64" => each.flat_map(|value| f64::from(*value).to_le_bytes()).collect(),
        other => panic!("no type {other}"),
    }
}

/// Bytes of numbers of `size` bytes, each reversed.
pub(crate) fn swapped(bytes: &[u8], size: usize) -> Vec<u8> {
    bytes.chunks(size).flat_map(|number| number.iter().rev().copied()).collect()
}

/// Column after column.
pub(crate) fn transposed(values: &[f32], dim: usize) -> Vec<f32> {
    (0..dim).flat_map(|column| values.iter().skip(column).step_by(dim).copied()).collect()
}

/// Half precision of a number that it holds exactly and that is not subnormal.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = u16::try_from(bits >> 31).unwrap() << 15;
    if value == 0.0 {
        return sign;
    }
    let exponent = u16::try_from((bits >> 23 & 255) - 112).unwrap();
    sign | exponent << 10 | u16::try_from(bits >> 13 & 1023).unwrap()
}

/// word2vec's binary format.
pub(crate) fn word2vec_binary(words: &[&[u8]], values: &[f32], newlines: bool) -> Vec<u8> {
    let dim = values.len() / words.len();
    let mut file = format!("{} {dim}\n", words.len()).into_bytes();
    for (word, row) in words.iter().zip(values.chunks(dim)) {
        file.extend_from_slice(word);
        file.push(b' ');
        file.extend(numbers("F32", row));
        if newlines {
            file.push(b'\n');
        }
    }
    file
}

/// Word vectors as text, without a header.
pub(crate) fn text(words: &[&[u8]], values: &[f32], end: &str) -> Vec<u8> {
    let mut file = Vec::new();
    for (word, row) in words.iter().zip(values.chunks(values.len() / words.len())) {
        file.extend_from_slice(word);
        for value in row {
            write!(file, " {value}").unwrap();
        }
        file.extend_from_slice(end.as_bytes());
    }
    file
}

/// The same behind a header.
pub(crate) fn headed(words: &[&[u8]], values: &[f32], end: &str) -> Vec<u8> {
    let mut file = format!("{} {}\n", words.len(), values.len() / words.len()).into_bytes();
    file.extend(text(words, values, end));
    file
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    // Stored blocks need no compressor: the test depends on none.
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let chunks: Vec<&[u8]> = bytes.chunks(60_000).collect();
    for (number, chunk) in chunks.iter().enumerate() {
        let length = u16::try_from(chunk.len()).unwrap();
        file.push(u8::from(number + 1 == chunks.len()));
        file.extend(length.to_le_bytes());
        file.extend((!length).to_le_bytes());
        file.extend_from_slice(chunk);
    }
    if chunks.is_empty() {
        file.extend([1, 0, 0, 255, 255]);
    }
    file.extend(crc32(bytes).to_le_bytes());
    file.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1)))
    })
}
