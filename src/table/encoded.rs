//! An encoded table in host memory.

use half::f16;

use crate::{
    error::{EncodeError, SourceError},
    scheme::{Dtype, TableSpec},
    source::{Changes, PartSink, SliceSource, TableSource},
    table::{EncodeReport, Encoder},
};

/// The parts of a table, in host memory.
///
/// # Examples
/// ```
/// use gatherum::EncodedTable;
/// let values = [0.5, -1.0, 0.25, 1.0, 0.0, 0.125];
/// let (table, report) = EncodedTable::encode("words", &values, 3, &"int8".parse()?)?;
/// assert_eq!(table.spec().bytes().0, 2 * 3 + 2 * 4);
/// assert!(report.max_error < 0.004);
/// # use gatherum::TableSource;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct EncodedTable {
    name: String,
    spec: TableSpec,
    parts: Vec<Vec<u8>>,
}

impl EncodedTable {
    /// Encodes `values: [rows, dim]`, row-major, by `scheme`.
    ///
    /// # Errors
    /// As [`Encoder::run`].
    pub fn encode(
        name: &str,
        values: &[f32],
        dim: usize,
        scheme: &crate::Scheme,
    ) -> Result<(Self, EncodeReport), EncodeError> {
        Encoder::new(scheme).table(name, &mut SliceSource::new(values, dim)?)
    }

    /// Takes parts that were made elsewhere, as they are: `parts` in the order of [`TableSpec::parts`], laid out as the
    /// scheme's documentation says.
    ///
    /// # Errors
    /// [`SourceError::Invalid`] where a part is missing or of another length, or a floating-point one holds a NaN or an
    /// infinity, named by its index in the part; where rows have different numbers of values, and they cannot be found as the
    /// format says, with the row.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{EncodedTable, Shape};
    /// // Codes -127 and 64 of a row, and their scale.
    /// let parts = vec![vec![0x81, 0x40], 0.5_f32.to_le_bytes().to_vec()];
    /// let spec = "int8".parse::<gatherum::Scheme>()?.spec(Shape::new(1, 2)?)?;
    /// let table = EncodedTable::from_parts("taken over", spec, parts)?;
    /// assert_eq!(table.reference(0, 1), 32.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_parts(name: &str, spec: TableSpec, parts: Vec<Vec<u8>>) -> Result<Self, SourceError> {
        let invalid = |reason: String| Err(SourceError::Invalid(format!("{name}: {reason}")));
        if parts.len() != spec.parts().len() {
            return invalid(format!("{} parts; `{}` has {}", parts.len(), spec.scheme(), spec.parts().len()));
        }
        for (part, bytes) in spec.parts().iter().zip(&parts) {
            if bytes.len() as u64 != part.bytes().0 {
                return invalid(format!("part `{}` has {} B, not {:#}", part.name(), bytes.len(), part.bytes()));
            }
            let not_finite = match part.dtype() {
                Dtype::F32 => bytes.as_chunks().0.iter().position(|bytes| !f32::from_le_bytes(*bytes).is_finite()),
                Dtype::F16 => bytes.as_chunks().0.iter().position(|bytes| !f16::from_le_bytes(*bytes).is_finite()),
                Dtype::I8 | Dtype::U8 | Dtype::U16 | Dtype::U32 => None,
            };
            if let Some(index) = not_finite {
                return invalid(format!("number {index} of part `{}` is not finite", part.name()));
            }
        }
        Self { name: name.to_owned(), spec, parts }.well_formed()
    }

    /// A table of zeroed parts, for an encoder or a reader to fill.
    pub(crate) fn zeroed(name: &str, spec: TableSpec) -> Result<Self, SourceError> {
        let parts = spec.parts().iter().map(|part| {
            let bytes = part.bytes();
            let refused =
                || SourceError::Invalid(format!("{name}: no host memory for part `{}` of {bytes:#}", part.name()));
            let length = usize::try_from(bytes.0).map_err(|_| refused())?;
            let mut part = Vec::new();
            part.try_reserve_exact(length).map_err(|_| refused())?;
            part.resize(length, 0);
            Ok::<_, SourceError>(part)
        });
        Ok(Self { name: name.to_owned(), parts: parts.collect::<Result<_, _>>()?, spec })
    }

    /// Reads all parts of `source` into host memory.
    ///
    /// # Errors
    /// [`SourceError`] where a part cannot be read, or memory is short; where values cannot be found as the format says.
    pub async fn read(source: &impl TableSource) -> Result<Self, SourceError> {
        let _reading = Changes::read(source.changes()).await;
        let mut table = Self::zeroed(source.name(), source.spec().clone())?;
        for (number, part) in table.parts.iter_mut().enumerate() {
            source.read_part(number, 0, part).await?;
        }
        table.well_formed()
    }

    fn well_formed(self) -> Result<Self, SourceError> {
        match self.spec.malformed(&self.parts().collect::<Vec<_>>()) {
            None => Ok(self),
            Some(problem) => Err(SourceError::Invalid(format!("{}: {problem}", self.name))),
        }
    }

    /// The bytes of each part, in the order of [`TableSpec::parts`].
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.parts.iter().map(Vec::as_slice)
    }

    /// The value that the format defines at `row`, `column`, computed in f64 without the decoders' code.
    ///
    /// # Panics
    /// Where the table has no such row or column.
    #[must_use]
    pub fn reference(&self, row: u32, column: u32) -> f64 {
        let parts: Vec<&[u8]> = self.parts().collect();
        let (dim, row, column) = (self.spec.shape().dim() as usize, row as usize, column as usize);
        assert!(row < self.spec.shape().rows() as usize && column < dim, "no element [{row}, {column}]");
        self.spec.scheme().codec().reference(dim, &parts, row, column)
    }
}

impl TableSource for EncodedTable {
    fn spec(&self) -> &TableSpec {
        &self.spec
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn read_part(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let bytes = usize::try_from(offset).ok().and_then(|offset| self.parts[part].get(offset..)?.get(..out.len()));
        let Some(bytes) = bytes else {
            let (name, length) = (self.spec.parts()[part].name(), out.len());
            return Err(SourceError::Invalid(format!(
                "{}: part `{name}` has no {length} bytes from {offset} on",
                self.name
            )));
        };
        out.copy_from_slice(bytes);
        Ok(())
    }
}

impl PartSink for EncodedTable {
    fn write_part(&mut self, part: usize, offset: u64, bytes: &[u8]) -> Result<(), SourceError> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.parts[part][offset..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}
