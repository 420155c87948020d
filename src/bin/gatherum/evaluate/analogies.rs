//! Analogies: `a` is to `b` as `c` is to which word?

use std::path::Path;

use gatherum::{IdPolicy, Metric, Table, TopKOptions, io::Vocabulary};

use crate::{
    failure::{Exit, Failure, Outcome},
    input::read_text,
    wordsim::find_word,
};

/// Questions that are asked at a time.
const BATCH: usize = 1024;

/// Questions of a file.
#[derive(Debug)]
pub(super) struct Analogies {
    sections: Vec<String>,
    /// The section, and four words.
    questions: Vec<(usize, [String; 4])>,
}

/// Those whose words are all among the first of a table.
#[derive(Debug)]
pub(super) struct Asked {
    /// Questions of the file.
    pub(super) total: usize,
    /// Rows that are searched, from the first on.
    pub(super) searched: u32,
    sections: Vec<String>,
    questions: Vec<(usize, [u32; 4])>,
}

/// How many answers are right.
#[derive(Debug)]
pub(super) struct Accuracy {
    pub(super) sections: Vec<Section>,
}

#[derive(Debug)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) asked: usize,
    pub(super) right: usize,
}

impl Analogies {
    pub(super) fn read(path: &Path) -> Outcome<Self> {
        let next = "give lines of four words, sections that begin with `: name`, and comments that begin with # or //";
        let refuse = |what: String| Failure::new(Exit::Input, format!("{}: {what}", path.display()), next);
        let all = Self::parse(&read_text(path)?).map_err(refuse)?;
        if all.questions.is_empty() { Err(refuse("no analogies are in it".to_owned())) } else { Ok(all) }
    }

    /// The format of word2vec's `questions-words.txt`.
    fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self { sections: Vec::new(), questions: Vec::new() };
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(name) = line.strip_prefix(':') {
                all.sections.push(name.trim().to_owned());
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.is_empty() || line.starts_with('#') || line.starts_with("//") {
                continue;
            }
            let Ok(words) = <[&str; 4]>::try_from(words) else {
                return Err(format!("line {number}: {line:?} is no analogy of four words"));
            };
            if all.sections.is_empty() {
                all.sections.push(String::new());
            }
            all.questions.push((all.sections.len() - 1, words.map(str::to_owned)));
        }
        Ok(all)
    }

    /// Looks the words up among the first `most` rows.
    pub(super) fn find(&self, words: &Vocabulary, most: u32) -> Asked {
        let rows = u32::try_from(words.len()).unwrap_or(u32::MAX);
        let searched = rows.min(most);
        let find = |word: &String| find_word(words, word).filter(|row| *row < searched);
        let question =
            |(section, [a, b, c, d]): &(usize, [String; 4])| Some((*section, [find(a)?, find(b)?, find(c)?, find(d)?]));
        let questions = self.questions.iter().filter_map(question).collect();
        Asked { total: self.questions.len(), searched, sections: self.sections.clone(), questions }
    }
}

impl Asked {
    /// Questions that are asked.
    pub(super) fn len(&self) -> usize {
        self.questions.len()
    }

    /// Answers by the row nearest to `b - a + c`, of rows of length 1, without those three.
    pub(super) fn answer(&self, table: &Table) -> Outcome<Accuracy> {
        let sections = self.sections.iter().map(|name| Section { name: name.clone(), asked: 0, right: 0 });
        let mut accuracy = Accuracy { sections: sections.collect() };
        for questions in self.questions.chunks(BATCH) {
            let ids: Vec<u32> = questions.iter().flat_map(|(_, [a, b, c, _])| [*a, *b, *c]).collect();
            let rows = table.gather_blocking(&ids, IdPolicy::Error)?;
            let queries: Vec<f32> =
                rows.values.chunks_exact(3 * rows.dim as usize).flat_map(|three| query(three, rows.dim)).collect();
            let options = TopKOptions::default().rows(0..self.searched);
            let found = table.top_k_blocking(&queries, 4, Metric::Cosine, options)?;
            for (number, (section, [a, b, c, wanted])) in questions.iter().enumerate() {
                let answer = found.of(number).map(|(id, _)| id).find(|id| ![a, b, c].contains(&id));
                let section = &mut accuracy.sections[*section];
                section.asked += 1;
                section.right += usize::from(answer == Some(*wanted));
            }
        }
        accuracy.sections.retain(|section| section.asked > 0);
        Ok(accuracy)
    }
}

/// `b - a + c` of three rows, each divided by its length; one of zeros stays as it is.
fn query(three: &[f32], dim: u32) -> impl Iterator<Item = f32> + '_ {
    let (a, rest) = three.split_at(dim as usize);
    let (b, c) = rest.split_at(dim as usize);
    let factor = |row: &[f32]| {
        let square: f64 = row.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
        if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 }
    };
    let factors = [factor(a), factor(b), factor(c)];
    a.iter().zip(b).zip(c).map(move |((a, b), c)| {
        let sum = f64::from(*b) * factors[1] - f64::from(*a) * factors[0] + f64::from(*c) * factors[2];
        #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
        let sum = sum as f32;
        sum
    })
}

impl Accuracy {
    /// The share of right answers; `None` where nothing was asked.
    #[expect(clippy::cast_precision_loss, reason = "counts of questions")]
    pub(super) fn share(&self) -> Option<f64> {
        let sum = |count: fn(&Section) -> usize| self.sections.iter().map(count).sum::<usize>();
        let (asked, right) = (sum(|section| section.asked), sum(|section| section.right));
        (asked > 0).then(|| right as f64 / asked as f64)
    }
}

#[cfg(test)]
mod tests {
    use gatherum::{EncodedTable, Engine};

    use super::*;

    #[test]
    fn files_have_sections_and_comments() {
        let text =
            "// Copyright\n: capital-common\nAthens Greece Oslo Norway\n\n: empty\n: family\nboy girl king queen\n";
        let all = Analogies::parse(text).unwrap();
        assert_eq!(all.sections, ["capital-common", "empty", "family"]);
        assert_eq!(all.questions.iter().map(|question| question.0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(Analogies::parse("a b c d\n").unwrap().sections, [""]);
        assert!(Analogies::parse("a b c d\n\na b c\n").unwrap_err().contains("line 3"));
    }

    #[test]
    fn answers_leave_the_question_out() {
        // Columns: royal, female, and a direction for a word that is far from all.
        let words = ["man", "woman", "king", "queen", "far"];
        let rows = [[1.0, 0.0, 0.1], [1.0, 1.0, 0.1], [3.0, 0.0, 2.0], [3.0, 3.0, 2.0], [0.0, 0.0, -1.0]];
        let (table, _) = EncodedTable::encode("t", rows.as_flattened(), 3, &"f32".parse().unwrap()).unwrap();
        let table = Engine::host().load_blocking(&table).unwrap();
        let words = Vocabulary::from_words(words).unwrap();
        let all = Analogies::parse("Man woman king queen\nman woman king far\nman woman king missing\n").unwrap();
        let asked = all.find(&words, 30_000);
        assert_eq!((asked.total, asked.len(), asked.searched), (3, 2, 5));
        let accuracy = asked.answer(&table).unwrap();
        assert_eq!((accuracy.sections[0].asked, accuracy.sections[0].right), (2, 1));
        assert_eq!(accuracy.share(), Some(0.5));
        assert_eq!(all.find(&words, 3).len(), 0, "queen is not among the first three");
    }
}
