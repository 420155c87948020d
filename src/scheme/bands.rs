//! `bands:S=CODEC,...,rest=CODEC`: ranges of rows, each by a codec of its own.
//!
//! ```text
//! bands:0.02=int8,0.15=int4,rest=int2        of 1,000 rows: 0..20 by int8, 20..150 by int4, 150..1000 by int2
//!
//! parts: those of each band, with its number before their names: band0.codes, band0.scales, band1.codes, ...
//! ```
//!
//! `S` is the share of all rows at which a band ends, over 0, under 1 and ascending; the row is the nearest whole number. Rows
//! are best in the order of their frequency: the few that most lookups ask for are then kept well, and the many others small.
//!
//! **Error bound, and rounding of the decoders.** The largest of the bands': a row alone does not say which band it is in.
//!
//! **Order of sums.** A bag's rows are summed band by band, in each stretch of 1,024 ids, on all backends: a device takes a
//! pass for each band.

use std::{fmt, ops::Range, sync::Arc};

use super::{
    BaggedRows, Build, Codec, Misfit, NO_ROW, Part, Pool, SchemeInfo, Shader,
    registry::{self, Made},
};
use crate::{error::SchemeError, units::Shape};

pub(super) const INFO: SchemeInfo = SchemeInfo {
    name: "bands",
    summary: "ranges of rows, each by a codec of its own",
    options: "S=CODEC for each band but the last, S the share of rows at which it ends, then rest=CODEC",
    variants: &["bands:0.1=int8,0.5=int4:affine,rest=int2:affine,scales=f32"],
    build: Build::Raw(build),
};

/// The most bands: with two parts each, as many parts as a table may have.
const MOST_BANDS: usize = 8;

fn build(text: &str) -> Made {
    let error = |option: &str, problem: &str| SchemeError::Option {
        scheme: INFO.name.to_owned(),
        option: option.to_owned(),
        problem: problem.to_owned(),
    };
    // A comma may stand within a codec's options: what begins a band is a share, or `rest`.
    let mut items: Vec<(&str, String)> = Vec::new();
    for item in text.split(',') {
        match item.split_once('=') {
            Some((end, codec)) if end == "rest" || end.parse::<f64>().is_ok() => items.push((end, codec.to_owned())),
            _ => match items.last_mut() {
                Some((_, codec)) => *codec += &format!(",{item}"),
                None => return Err(error(item, "is no band: those are written as in `0.1=int8,rest=int4`")),
            },
        }
    }
    let mut bands = Vec::new();
    for (number, (end, codec)) in items.iter().enumerate() {
        let before = bands.last().map_or(0.0, |band: &Band| band.end);
        let end = match (end.parse::<f64>(), number + 1 == items.len()) {
            (Ok(share), false) if share > before && share < 1.0 => share,
            (Ok(_), false) => return Err(error(end, "must be a share over the one before it, and under 1")),
            (Err(_), true) => 1.0,
            (Err(_), false) => return Err(error(end, "must come last")),
            (Ok(_), true) => return Err(error(end, "is the last band, and `rest=CODEC` must be")),
        };
        if codec.contains('/') || registry::info(codec).is_none_or(|info| !matches!(info.build, Build::Codec(_))) {
            return Err(error(codec, "is no codec that a band can have"));
        }
        bands.push(Band { end, codec: registry::parse(codec)? });
    }
    if !(2..=MOST_BANDS).contains(&bands.len()) {
        return Err(error("bands", "are 2 to 8"));
    }
    Ok(Arc::new(Bands { bands }))
}

#[derive(Debug)]
struct Band {
    /// The share of rows at which it ends.
    end: f64,
    codec: Arc<dyn Codec>,
}

#[derive(Debug)]
struct Bands {
    bands: Vec<Band>,
}

/// A band of a table whose parts are there.
struct Placed<'a> {
    rows: Range<u32>,
    codec: &'a dyn Codec,
    parts: &'a [&'a [u8]],
}

impl Bands {
    /// Where bands end in a table of so many rows.
    fn ends(&self, rows: u32) -> impl Iterator<Item = u32> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the number of rows")]
        self.bands.iter().map(move |band| (band.end * f64::from(rows)).round() as u32)
    }

    /// The bands with their parts, among those of the table.
    fn placed<'a>(&'a self, dim: usize, parts: &'a [&'a [u8]]) -> impl Iterator<Item = Placed<'a>> {
        let (mut first, mut rest) = (0u32, parts);
        self.bands.iter().map(move |band| {
            let one = Shape::new(1, dim as u64).map(|shape| band.codec.parts(shape)).unwrap_or_default();
            let (parts, behind) = rest.split_at(one.len());
            rest = behind;
            // The table's rows are not told: a band's are as many as its codes have.
            let rows = parts[0].len() as u64 / one[0].row_bytes();
            let rows = first..first + u32::try_from(rows).unwrap_or(0);
            first = rows.end;
            Placed { rows, codec: &*band.codec, parts }
        })
    }

    fn largest(&self, of: impl Fn(&dyn Codec) -> f64) -> f64 {
        self.bands.iter().map(|band| of(&*band.codec)).fold(0.0, f64::max)
    }
}

impl Codec for Bands {
    fn fmt_scheme(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, band) in self.bands.iter().enumerate() {
            f.write_str(if number == 0 { "bands:" } else { "," })?;
            match number + 1 == self.bands.len() {
                true => f.write_str("rest=")?,
                false => write!(f, "{}=", band.end)?,
            }
            band.codec.fmt_scheme(f)?;
        }
        Ok(())
    }

    fn check(&self, dim: u32) -> Result<(), String> {
        self.bands.iter().try_for_each(|band| band.codec.check(dim))
    }

    fn bands(&self, rows: u32) -> Vec<(Range<u32>, Arc<dyn Codec>)> {
        let mut first = 0;
        let bands = self.ends(rows).zip(&self.bands).map(|(end, band)| {
            let rows = first..end;
            first = end;
            (rows, band.codec.clone())
        });
        bands.collect()
    }

    fn parts(&self, shape: Shape) -> Vec<Part> {
        let bands = self.bands(shape.rows()).into_iter().enumerate();
        let parts = bands.flat_map(|(number, (rows, codec))| {
            let rows = Shape::new(u64::from(rows.end - rows.start), u64::from(shape.dim()));
            let parts = rows.map(|shape| codec.parts(shape)).unwrap_or_default();
            parts.into_iter().map(move |part| part.of_band(number))
        });
        parts.collect()
    }

    fn encode_rows(&self, _dim: usize, _values: &[f32], _parts: &mut [&mut [u8]]) -> Result<(), Misfit> {
        unreachable!("the encoder takes band by band")
    }

    fn decode_rows(&self, dim: usize, parts: &[&[u8]], rows: &[u32], out: &mut [f32]) {
        let bands: Vec<_> = self.placed(dim, parts).collect();
        let band_of = |row: u32| bands.iter().position(|band| band.rows.contains(&row)).unwrap_or(0);
        // Runs of rows of one band; a row that is none goes with any.
        let (mut rest, mut out) = (rows, out);
        let mut relative = Vec::new();
        while let Some(first) = rest.iter().find(|row| **row != NO_ROW).or(rest.first()) {
            let band = &bands[band_of(*first)];
            let length = rest.iter().take_while(|row| **row == NO_ROW || band.rows.contains(row)).count();
            let (run, behind) = rest.split_at(length);
            let (values, left) = out.split_at_mut(length * dim);
            relative.clear();
            relative.extend(run.iter().map(|row| if *row == NO_ROW { NO_ROW } else { row - band.rows.start }));
            band.codec.decode_rows(dim, band.parts, &relative, values);
            (rest, out) = (behind, left);
        }
    }

    fn pool_rows(&self, dim: usize, parts: &[&[u8]], bags: &BaggedRows<'_>, out: &mut [f32]) {
        let (mut rows, mut weights, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (number, band) in self.placed(dim, parts).enumerate() {
            rows.clear();
            weights.clear();
            ends.clear();
            let mut begin = 0;
            for &end in bags.ends {
                for at in begin..end {
                    let row = bags.rows[at];
                    // Rows of zeros, which a maximum sees, are seen once.
                    if band.rows.contains(&row) || row == NO_ROW && number == 0 && bags.pool == Pool::Max {
                        rows.push(if row == NO_ROW { NO_ROW } else { row - band.rows.start });
                        weights.extend(bags.weights.map(|weights| weights[at]));
                    }
                }
                ends.push(rows.len());
                begin = end;
            }
            let weights = bags.weights.map(|_| &*weights);
            let part = BaggedRows { rows: &rows, weights, ends: &ends, pool: bags.pool };
            band.codec.pool_rows(dim, band.parts, &part, out);
        }
    }

    fn error_bound(&self, row: &[f32]) -> f64 {
        self.largest(|codec| codec.error_bound(row))
    }

    fn reference(&self, dim: usize, parts: &[&[u8]], row: usize, column: usize) -> f64 {
        let mut first = 0;
        let mut parts = parts;
        for band in &self.bands {
            let one = Shape::new(1, dim as u64).map(|shape| band.codec.parts(shape)).unwrap_or_default();
            let rows = parts[0].len() / usize::try_from(one[0].row_bytes()).unwrap_or(usize::MAX);
            if row < first + rows {
                return band.codec.reference(dim, &parts[..one.len()], row - first, column);
            }
            first += rows;
            parts = &parts[one.len()..];
        }
        f64::NAN
    }

    fn rounding(&self, row: &[f64]) -> f64 {
        self.largest(|codec| codec.rounding(row))
    }

    /// Of the first band: a device takes each band as a table of its own.
    fn shader(&self) -> Shader {
        Shader { stem: INFO.name, ..self.bands[0].codec.shader() }
    }

    fn turns(&self, dim: u32) -> u32 {
        self.bands.iter().map(|band| band.codec.turns(dim)).max().unwrap_or(1)
    }

    fn constants(&self, dim: u32) -> Vec<(&'static str, f64)> {
        self.bands[0].codec.constants(dim)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::cast_possible_truncation, reason = "numbers made here, of known size")]

    use super::*;
    use crate::{EncodedTable, Scheme, TableSource};

    #[test]
    fn odd_strings_are_refused_with_the_reason() {
        for (text, says) in [
            ("bands", "is no band"),
            ("bands:", "is no band"),
            ("bands:rest=f32", "are 2 to 8"),
            ("bands:0.1=f32", "`rest=CODEC` must be"),
            ("bands:0.2=f32,0.1=f16,rest=int8", "over the one before it"),
            ("bands:1=f32,rest=int8", "under 1"),
            ("bands:rest=f32,0.5=int8", "must come last"),
            ("bands:0.5=f32,rest=lowrank:k=2/f32", "is no codec"),
            ("bands:0.5=int9,rest=f32", "is no codec"),
            ("bands:0.5=int8:group=3,rest=f32", "a positive multiple of 4"),
            ("bands:0.5=f32,rest=int8/f32", "is no codec"),
        ] {
            let error = text.parse::<Scheme>().unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }

    /// Each row has the values that its band's codec alone gives it.
    #[test]
    fn rows_are_those_of_their_bands() {
        let (rows, dim) = (103, 19);
        let values: Vec<f32> = (0..rows * dim).map(|at| (at as f32 * 0.37).sin()).collect();
        let scheme: Scheme = "bands:0.1=int8:affine,group=8,0.5=f16,rest=int4".parse().unwrap();
        let (table, report) = EncodedTable::encode("t", &values, dim, &scheme).unwrap();
        let names: Vec<_> = table.spec().parts().iter().map(Part::name).collect();
        assert_eq!(names, ["band0.codes", "band0.scales", "band1.values", "band2.codes", "band2.scales"]);
        assert!(report.share() < 0.35, "{report}");
        for (range, alone) in [(0..10, "int8:affine,group=8"), (10..52, "f16"), (52..103, "int4")] {
            let part = &values[range.start * dim..range.end * dim];
            let (alone, _) = EncodedTable::encode("t", part, dim, &alone.parse().unwrap()).unwrap();
            for row in range.clone() {
                for column in 0..dim as u32 {
                    let want = alone.reference((row - range.start) as u32, column);
                    assert_eq!(table.reference(row as u32, column), want, "[{row}, {column}]");
                }
            }
        }
    }
}
