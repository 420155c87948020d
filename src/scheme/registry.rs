//! The list of schemes. Adding one is a line in [`SCHEMES`], a `mod` line, a Rust file and a WGSL file.

use std::sync::Arc;

use super::{Codec, bands, f16, f32, hash, int8, lowrank, multihash, options::Options, packed_int, qr, sparse};
use crate::error::SchemeError;

/// A scheme as the registry knows it.
#[derive(Debug)]
pub struct SchemeInfo {
    /// Its name: the first word of the scheme string.
    pub name: &'static str,
    /// One line on what it stores.
    pub summary: &'static str,
    /// Its options, as they are written; empty where it has none.
    pub options: &'static str,
    /// Canonical scheme strings worth a look: what the command shows where none is asked for.
    pub examples: &'static [&'static str],
    /// Canonical scheme strings that cover its options: tests and benches iterate over them.
    pub variants: &'static [&'static str],
    pub(super) build: Build,
}

/// How a scheme is made of its options.
#[derive(Clone, Copy, Debug)]
pub(super) enum Build {
    /// One that stands alone.
    Codec(fn(&mut Options<'_>) -> Made),
    /// One that stands before a codec, with a slash between them.
    Factor(fn(&mut Options<'_>, Arc<dyn Codec>) -> Made),
    /// One that stands before a codec, or a factor and its codec.
    Index(fn(&mut Options<'_>, Arc<dyn Codec>) -> Made),
    /// One that reads the text behind its colon by itself, as codecs stand in it.
    Raw(fn(&str) -> Made),
}

/// A scheme, or what is wrong with its options.
pub(super) type Made = Result<Arc<dyn Codec>, SchemeError>;

/// Every scheme, in the order of the documentation.
pub(super) static SCHEMES: &[SchemeInfo] = &[
    f32::INFO,
    f16::INFO,
    int8::INFO,
    packed_int::INT4,
    packed_int::INT3,
    packed_int::INT2,
    lowrank::INFO,
    sparse::CSR,
    sparse::COO,
    hash::INFO,
    multihash::INFO,
    qr::INFO,
    bands::INFO,
];

/// Parses a scheme string: `[index "/"] [factor "/"] codec`.
pub(super) fn parse(text: &str) -> Made {
    if let Some(SchemeInfo { build: Build::Raw(build), name, .. }) = info(text) {
        return build(text[name.len()..].strip_prefix(':').unwrap_or(&text[name.len()..]));
    }
    let (text, inner) = match text.split_once('/') {
        Some((text, inner)) => (text, Some(inner)),
        None => (text, None),
    };
    let (name, options) = match text.split_once(':') {
        Some((name, options)) => (name, Some(options)),
        None => (text, None),
    };
    let info = info(text).ok_or_else(|| SchemeError::Unknown {
        name: name.to_owned(),
        known: SCHEMES.iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
    })?;
    let mut options = Options::parse(info, options)?;
    let codec = match (info.build, inner) {
        (Build::Codec(build), None) => build(&mut options)?,
        (Build::Factor(build) | Build::Index(build), Some(inner)) => {
            // What stands behind a slash is nearer to the codec.
            let nearer = |other: &SchemeInfo| match other.build {
                Build::Codec(_) => true,
                Build::Factor(_) => matches!(info.build, Build::Index(_)),
                Build::Index(_) | Build::Raw(_) => false,
            };
            if let Some(known) = self::info(inner).filter(|other| !nearer(other)) {
                let what = if let Build::Index(_) = info.build { "factor or codec" } else { "codec" };
                return Err(options.error(inner, &format!("stands behind a slash, and `{}` is no {what}", known.name)));
            }
            build(&mut options, parse(inner)?)?
        }
        (Build::Codec(_), Some(inner)) => return Err(options.error(inner, "stands behind a slash, and nothing may")),
        (Build::Factor(_) | Build::Index(_), None) => {
            return Err(options.error("/", "is missing: a codec stands behind it, as in `/int8`"));
        }
        (Build::Raw(_), _) => unreachable!("it has been built"),
    };
    options.finish()?;
    Ok(codec)
}

/// The scheme whose name the text begins with.
pub(super) fn info(text: &str) -> Option<&'static SchemeInfo> {
    let name = text.split([':', '/']).next()?;
    SCHEMES.iter().find(|info| info.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scheme;

    #[test]
    fn a12_scheme_strings_round_trip() {
        for info in SCHEMES {
            assert!(!info.variants.is_empty(), "{} has no variant to test", info.name);
            assert!(!info.examples.is_empty(), "{} has no example to show", info.name);
            for text in info.variants.iter().chain(info.examples) {
                let scheme: Scheme = text.parse().unwrap();
                assert_eq!(scheme.to_string(), *text);
                assert_eq!(scheme.stem(), info.name);
            }
        }
    }

    #[test]
    fn defaults_are_not_written() {
        for (text, canonical) in [
            ("int4:clip=search,scales=f16", "int4"),
            ("int3:clip=none,scales=f32,group=16,affine", "int3:affine,group=16,scales=f32,clip=none"),
            ("int2:clip=none", "int2:clip=none"),
            ("hash:fn=mod,weights=zipf,rows=7/int8", "hash:rows=7/int8"),
            ("hash:weights=equal,fn=mix,rows=7/int8:group=4", "hash:rows=7,fn=mix,weights=equal/int8:group=4"),
            ("multihash:rows=7,weights=zipf,k=3/int8", "multihash:k=3,rows=7/int8"),
            ("qr:op=add,rows=7/f32", "qr:rows=7/f32"),
            ("qr:weights=equal,op=concat,rows=7/f32", "qr:rows=7,op=concat,weights=equal/f32"),
            ("hash:rows=7/lowrank:k=3/int4:clip=search", "hash:rows=7/lowrank:k=3/int4"),
        ] {
            assert_eq!(text.parse::<Scheme>().unwrap().to_string(), canonical);
        }
    }

    #[test]
    fn odd_strings_are_refused_with_the_reason() {
        for (text, says) in [
            ("", "unknown scheme ``; known schemes: f32"),
            ("INT8", "unknown scheme `INT8`"),
            ("int8:", "is empty"),
            ("int8:group", "needs a value"),
            ("int8:group=", "is no whole number"),
            ("int8:group=0", "a positive multiple of 4"),
            ("int8:group=6", "a positive multiple of 4"),
            ("int8:group=99999999999999999999", "is no whole number"),
            ("int8:affine=1", "takes no value"),
            ("int8:affine,affine", "is given twice"),
            ("int8:bits=3", "does not exist"),
            ("int4:group=24", "a positive multiple of 16"),
            ("int4:scales", "takes `f16` or `f32`"),
            ("int3:scales=f64", "takes `f16` or `f32`"),
            ("int2:clip=on", "takes `search` or `none`"),
            ("int5", "unknown scheme `int5`"),
            ("f32:group=4", "does not exist"),
            ("int8 ", "unknown scheme `int8 `"),
            ("hash:rows=5", "`/` is missing"),
            ("hash/f32", "must be given"),
            ("hash:rows=0/f32", "a number from 1 to 4294967294"),
            ("hash:rows=4294967295/f32", "a number from 1 to 4294967294"),
            ("hash:rows=5,fn=md5/f32", "takes `mod` or `mix`"),
            ("hash:rows=5,weights=none/f32", "takes `zipf` or `equal`"),
            ("hash:rows=5/hash:rows=4/f32", "`hash` is no factor or codec"),
            ("hash:rows=5/bands:0.5=f32,rest=int8", "`bands` is no factor or codec"),
            ("multihash:rows=9/f32", "option `k` must be given"),
            ("multihash:k=1,rows=9/f32", "a number from 2 to 4"),
            ("multihash:k=5,rows=9/f32", "a number from 2 to 4"),
            ("multihash:k=3,rows=2/f32", "a number from 3 to 4294967294"),
            ("multihash:k=3,fn=mix,rows=9/f32", "does not exist"),
            ("qr/f32", "must be given"),
            ("qr:rows=1/f32", "a number from 2 to 2147483648"),
            ("qr:rows=2147483649/f32", "a number from 2 to 2147483648"),
            ("qr:rows=9,op=sub/f32", "takes `add` or `mul` or `concat`"),
            ("qr:rows=9/multihash:k=2,rows=9/f32", "`multihash` is no factor or codec"),
            ("lowrank:k=2/hash:rows=4/f32", "`hash` is no codec"),
        ] {
            let error = text.parse::<Scheme>().unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
