//! What is moved between tiers: as few rows as have whole words in each part.

use crate::{
    scheme::{Part, TableSpec},
    units::Bytes,
};

/// How the stored rows of a table fall into pages.
#[derive(Debug)]
pub(super) struct Pages {
    /// The table of all rows.
    pub(super) spec: TableSpec,
    /// Rows of a page: 1, 2 or 4.
    pub(super) rows: u32,
    /// Bytes of a page in each part; 0 where all rows share the part.
    pub(super) bytes: Vec<usize>,
}

/// The bytes of some pages, part by part, page behind page.
#[derive(Debug)]
pub(super) struct PageBytes {
    pub(super) parts: Vec<Vec<u8>>,
}

impl Pages {
    pub(super) fn new(spec: TableSpec) -> Self {
        let whole =
            |rows: &u32| spec.parts().iter().all(|part| (part.row_bytes() * u64::from(*rows)).is_multiple_of(4));
        // Four rows of whole bytes are whole words.
        let rows = [1, 2, 4].into_iter().find(whole).unwrap_or(4);
        // Of less than 2^20 columns.
        let bytes = |part: &Part| usize::try_from(part.row_bytes() * u64::from(rows)).unwrap_or(usize::MAX);
        let bytes = spec.parts().iter().map(bytes).collect();
        Self { spec, rows, bytes }
    }

    /// How many there are; the last may have rows that the table lacks.
    pub(super) fn count(&self) -> u32 {
        self.spec.shape().rows().div_ceil(self.rows)
    }

    /// Bytes of a page over all parts.
    pub(super) fn page_bytes(&self) -> Bytes {
        Bytes(self.bytes.iter().map(|bytes| *bytes as u64).sum())
    }

    /// Pages that fit into `budget` beside what all rows share, at most all of them.
    pub(super) fn within(&self, budget: Bytes) -> u32 {
        let shared: u64 = self.spec.parts().iter().filter(|part| part.is_shared()).map(|part| part.bytes().0).sum();
        let pages = budget.0.saturating_sub(shared) / self.page_bytes().0.max(1);
        u32::try_from(pages).unwrap_or(u32::MAX).min(self.count())
    }

    /// A table of so many pages, by the same scheme.
    pub(super) fn table(&self, pages: u32) -> TableSpec {
        self.spec.with_rows(pages.saturating_mul(self.rows).min(u32::MAX - 2))
    }

    /// Room for so many pages, all zeros.
    pub(super) fn room(&self, pages: usize) -> PageBytes {
        PageBytes { parts: self.bytes.iter().map(|bytes| vec![0; pages * bytes]).collect() }
    }

    /// Where page `at` of several lies in part `part`.
    pub(super) fn place(&self, part: usize, at: usize) -> std::ops::Range<usize> {
        at * self.bytes[part]..(at + 1) * self.bytes[part]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scheme, Shape};

    fn pages(scheme: &str, dim: u64) -> Pages {
        Pages::new(scheme.parse::<Scheme>().unwrap().spec(Shape::new(1001, dim).unwrap()).unwrap())
    }

    #[test]
    fn pages_are_whole_words_of_few_rows() {
        for (scheme, dim, rows, bytes) in [
            ("f32", 3, 1, vec![12]),
            ("f16", 3, 2, vec![12]),
            ("int8", 100, 1, vec![100, 4]),
            ("int8", 101, 4, vec![404, 16]),
            ("int4", 100, 2, vec![100, 4 * 2 * 4]),
        ] {
            let pages = pages(scheme, dim);
            assert_eq!((pages.rows, pages.bytes[0]), (rows, bytes[0]), "{scheme} {dim}");
            assert!(pages.bytes.iter().all(|bytes| bytes % 4 == 0), "{scheme} {dim}");
            assert_eq!(pages.count(), 1001_u32.div_ceil(rows));
        }
        let pages = pages("f32", 3);
        assert_eq!(pages.within(Bytes(119)), 9);
        assert_eq!(pages.within(Bytes(1 << 40)), 1001);
        assert_eq!(pages.table(9).shape().rows(), 9);
    }
}
