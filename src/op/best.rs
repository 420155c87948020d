//! The best rows of a query, kept while rows go by.

use std::cmp::Ordering;

/// The `k` best of the rows seen: the higher score first, of equals the lower id.
#[derive(Clone, Debug)]
pub(crate) struct Best {
    k: usize,
    kept: Vec<(f32, u32)>,
    /// What a score must pass, once `k` rows are known that reach it.
    floor: f32,
}

impl Best {
    pub(crate) fn new(k: usize) -> Self {
        Self { k, kept: Vec::new(), floor: f32::NEG_INFINITY }
    }

    /// Sees a row. Ids must come in ascending order: a later one never goes before an equal score. NaN is no score.
    #[inline(always)]
    pub(crate) fn push(&mut self, id: u32, score: f32) {
        // Most rows fail the first comparison.
        if score > self.floor || (self.kept.len() < self.k && !score.is_nan()) {
            self.keep(id, score);
        }
    }

    fn keep(&mut self, id: u32, score: f32) {
        self.kept.push((score, id));
        if self.kept.len() == self.k.saturating_mul(2) {
            self.cut();
        }
    }

    /// Drops what is not among the best.
    fn cut(&mut self) {
        if self.kept.len() > self.k {
            let (_, worst, _) = self.kept.select_nth_unstable_by(self.k - 1, order);
            self.floor = worst.0;
            self.kept.truncate(self.k);
        }
    }

    /// The best, `(score, id)`, in their order: at most `k`.
    pub(crate) fn finish(mut self) -> Vec<(f32, u32)> {
        self.cut();
        self.kept.sort_unstable_by(order);
        self.kept
    }
}

fn order(one: &(f32, u32), other: &(f32, u32)) -> Ordering {
    // No score is NaN; -0 and 0 are equal.
    other.0.partial_cmp(&one.0).unwrap_or(Ordering::Equal).then(one.1.cmp(&other.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_a_full_sort() {
        // Few different scores, so that ties are everywhere.
        let scores: Vec<f32> = (0..5_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 26) as f32 - 30.0).collect();
        let mut all: Vec<(f32, u32)> = scores.iter().copied().zip(0..).collect();
        all.sort_by(order);
        for k in [1, 2, 7, 1024, 4_999, 5_000, 9_000] {
            let mut best = Best::new(k);
            (0..).zip(&scores).for_each(|(id, score)| best.push(id, *score));
            assert_eq!(best.finish(), all[..k.min(all.len())], "k = {k}");
        }
    }

    #[test]
    fn infinities_have_a_place_and_nan_has_none() {
        let mut best = Best::new(3);
        for (id, score) in (0..).zip([f32::NAN, f32::NEG_INFINITY, 0.0, f32::NAN, -0.0, f32::INFINITY]) {
            best.push(id, score);
        }
        assert_eq!(best.finish(), [(f32::INFINITY, 5), (0.0, 2), (-0.0, 4)]);
        let mut best = Best::new(3);
        best.push(7, f32::NEG_INFINITY);
        best.push(8, f32::NAN);
        assert_eq!(best.finish(), [(f32::NEG_INFINITY, 7)]);
    }
}
