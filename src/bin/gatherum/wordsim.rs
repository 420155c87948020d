//! Word similarity: how well the cosines of a table rank pairs of words as people did.

use std::{collections::HashMap, path::Path};

use gatherum::{GatherError, IdPolicy, Table, io::Vocabulary};

use crate::{
    cosine::cosine,
    failure::{Exit, Failure, Outcome},
    input::read_text,
};

/// WordSim-353, Finkelstein et al. 2002, CC BY 4.0.
const WORDSIM_353: &str = include_str!("../../../data/wordsim353.tsv");

/// Pairs of words with the similarity that people gave them.
#[derive(Debug)]
pub(crate) struct Pairs {
    pub(crate) name: String,
    pairs: Vec<(String, String, f64)>,
}

/// The pairs whose words a table has both.
#[derive(Debug)]
pub(crate) struct Found {
    /// Rows of the first words, then of the second.
    ids: Vec<u32>,
    scores: Vec<f64>,
}

impl Pairs {
    pub(crate) fn wordsim_353() -> Self {
        Self::parse("WordSim-353", WORDSIM_353)
    }

    /// Those of a file, which must have some.
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let name = path.file_stem().map_or_else(|| "pairs".into(), |stem| stem.to_string_lossy());
        let pairs = Self::parse(&name, &read_text(path)?);
        if pairs.len() < 2 {
            let what = format!("{}: no pairs are in it, or one only", path.display());
            let next = "give lines of a word, a word and a number, with tabs or spaces between";
            return Err(Failure::new(Exit::Input, what, next));
        }
        Ok(pairs)
    }

    /// Lines of word, word, number, with tabs between, or else white space; others are comments.
    fn parse(name: &str, text: &str) -> Self {
        fn pair<'a>(mut fields: impl Iterator<Item = &'a str>) -> Option<(String, String, f64)> {
            let (one, other, score) = (fields.next()?, fields.next()?, fields.next()?);
            let score: f64 = score.trim().parse().ok().filter(|score: &f64| score.is_finite())?;
            Some((one.to_owned(), other.to_owned(), score))
        }
        let pairs = text.lines().filter_map(|line| match line.contains('\t') {
            true => pair(line.split('\t')),
            false => pair(line.split_whitespace()),
        });
        Self { name: name.to_owned(), pairs: pairs.collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Looks the words up, as they are written and else in lower case.
    pub(crate) fn find(&self, words: &Vocabulary) -> Found {
        let find = |word: &str| find_word(words, word);
        let rows = self.pairs.iter().filter_map(|(one, other, score)| Some((find(one)?, find(other)?, *score)));
        let rows: Vec<(u32, u32, f64)> = rows.collect();
        let ids = rows.iter().map(|row| row.0).chain(rows.iter().map(|row| row.1)).collect();
        Found { ids, scores: rows.iter().map(|row| row.2).collect() }
    }
}

/// The row of a word as it is written, and else in lower case.
pub(crate) fn find_word(words: &Vocabulary, word: &str) -> Option<u32> {
    words.find(word).or_else(|| words.find(word.to_lowercase()))
}

impl Found {
    /// Pairs that are compared.
    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    /// Spearman's correlation of the table's cosines with the people's numbers; `None` where there is none.
    pub(crate) fn evaluate(&self, table: &Table) -> Result<Option<f64>, GatherError> {
        let rows = table.gather_blocking(&self.ids, IdPolicy::Error)?;
        let (ones, others) = rows.values.split_at(rows.values.len() / 2);
        let dim = rows.dim as usize;
        let pairs = ones.chunks_exact(dim).zip(others.chunks_exact(dim));
        let cosines: Vec<f64> = pairs.map(|(one, other)| cosine(one, other).unwrap_or(0.0)).collect();
        Ok(spearman(&cosines, &self.scores))
    }
}

/// Spearman's rank correlation: Pearson's of the ranks, where equal values share the mean of their ranks. `None` for
/// fewer than two values, and where all values of a side are equal.
pub(crate) fn spearman(ones: &[f64], others: &[f64]) -> Option<f64> {
    let (ones, others) = (ranks(ones), ranks(others));
    let (mut both, mut one_square, mut other_square) = (0.0, 0.0, 0.0);
    // Ranks of n values sum up to n (n + 1) / 2, ties or not.
    #[expect(clippy::cast_precision_loss, reason = "counts of pairs are small")]
    let mean = (ones.len() as f64 + 1.0) / 2.0;
    for (one, other) in ones.iter().zip(&others) {
        both += (one - mean) * (other - mean);
        one_square += (one - mean) * (one - mean);
        other_square += (other - mean) * (other - mean);
    }
    (one_square > 0.0 && other_square > 0.0).then(|| both / (one_square * other_square).sqrt())
}

/// Ranks from 1 on.
#[expect(clippy::cast_precision_loss, reason = "counts of pairs are small")]
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut counts: HashMap<u64, (f64, f64)> = HashMap::new();
    // -0.0 and 0.0 are one value.
    let key = |index: usize| (values[index] + 0.0).to_bits();
    for (place, index) in order.iter().enumerate() {
        let (sum, count) = counts.entry(key(*index)).or_default();
        *sum += place as f64 + 1.0;
        *count += 1.0;
    }
    (0..values.len()).map(|index| counts[&key(index)]).map(|(sum, count)| sum / count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_pairs_are_all_read() {
        assert_eq!(Pairs::wordsim_353().len(), 353);
    }

    #[test]
    fn pairs_have_tabs_or_spaces_between() {
        let text = "# a comment\nword1 word2 score\ntiger cat 7.35\nnew york\tcity\t8\textra\nnan nan nan\n";
        let pairs = Pairs::parse("p", text).pairs;
        assert_eq!(pairs, [("tiger".into(), "cat".into(), 7.35), ("new york".into(), "city".into(), 8.0)]);
    }

    #[test]
    fn ties_share_their_mean_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]), [4.0, 1.0, 4.0, 2.0, 4.0]);
        assert_eq!(ranks(&[0.0, -0.0]), [1.5, 1.5]);
    }

    #[test]
    fn spearman_is_that_of_the_textbook() {
        // 1 - 6 sum d^2 / (n (n^2 - 1)), where nothing is tied.
        assert_eq!(spearman(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5.0, 6.0, 7.0, 8.0, 7.5]), Some(0.9));
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[30.0, 20.0, 10.0]), Some(-1.0));
        // With ties, as scipy.stats.spearmanr([1, 2, 2, 3], [1, 3, 2, 4]) has it.
        let tied = spearman(&[1.0, 2.0, 2.0, 3.0], &[1.0, 3.0, 2.0, 4.0]).unwrap();
        assert!((tied - 0.948_683_298_050_513_8).abs() < 1e-15, "{tied}");
        assert_eq!(spearman(&[], &[]), None);
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
    }
}
