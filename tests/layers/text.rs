//! Rust source as code and strings: enough of the language to look for names, no more.

/// A string literal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    /// What stands between the quotes, escapes as they are written.
    pub(crate) value: String,
    /// Bytes of the literal in the source, quotes included.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Line number, from 1.
    pub(crate) line: usize,
}

/// A source with comments and the insides of literals blanked.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// As long as the source, line for line.
    pub(crate) text: String,
    pub(crate) strings: Vec<Literal>,
}

impl Code {
    pub(crate) fn of(source: &str) -> Self {
        let mut code = Self::default();
        let mut at = 0;
        while at < source.len() {
            let rest = &source[at..];
            let end = at + token(rest);
            if rest.starts_with("//") || rest.starts_with("/*") {
                code.blank(&source[at..end]);
            } else if let Some((open, close)) = quotes(rest) {
                let value = source[at + open..end].strip_suffix(&close).unwrap_or_default().to_owned();
                let line = 1 + source[..at].matches('\n').count();
                code.strings.push(Literal { value, start: at, end, line });
                code.blank(&source[at..end]);
            } else if rest.starts_with('\'') && end > at + 1 {
                code.blank(&source[at..end]);
            } else {
                code.text.push_str(&source[at..end]);
            }
            at = end;
        }
        code
    }

    fn blank(&mut self, hidden: &str) {
        self.text.extend(hidden.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
    }

    /// The text up to the module of unit tests, which may name any layer.
    pub(crate) fn without_tests(&self) -> &str {
        let end = self.text.match_indices("#[cfg(test)]").find(|(at, sign)| {
            let after = self.text[at + sign.len()..].trim_start();
            after.starts_with("mod ") && !after.split('{').next().unwrap_or_default().contains(';')
        });
        &self.text[..end.map_or(self.text.len(), |(at, _)| at)]
    }
}

/// Bytes before a string's value and the mark after it, where one begins here.
fn quotes(rest: &str) -> Option<(usize, String)> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix).unwrap_or("-").trim_start_matches(|c| prefix.ends_with('r') && c == '#');
        after.starts_with('"')
    })?;
    let hashes = rest[prefix.len()..].bytes().take_while(|byte| *byte == b'#').count();
    Some((prefix.len() + hashes + 1, format!("\"{}", "#".repeat(hashes))))
}

/// Length of the comment, literal, word or sign at the start of `rest`.
fn token(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if let Some((open, close)) = quotes(rest) {
        let raw = rest[..open].contains('r');
        let mut at = open;
        while at < rest.len() && !rest[at..].starts_with(&close) {
            let escaped = !raw && rest[at..].starts_with('\\');
            at += if escaped { 1 } else { 0 };
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
        return (at + close.len()).min(rest.len());
    }
    if let Some(after) = rest.strip_prefix('\'') {
        // A character, or a lifetime's mark.
        let end = match after.strip_prefix('\\') {
            Some(escape) => escape.get(1..).and_then(|more| more.find('\'')).map(|end| end + 2),
            None => after.char_indices().nth(1).filter(|(_, c)| *c == '\'').map(|(end, _)| end),
        };
        return end.map_or(1, |end| end + 2);
    }
    let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    if word > 0 { word } else { rest.chars().next().map_or(1, char::len_utf8) }
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Line and first name of every path from the crate's root in `code`: behind `crate::`, and behind as many `super::` as
/// lead out of a file `depth` modules deep.
pub(crate) fn crate_names(code: &str, depth: usize) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for prefix in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in code.match_indices(&prefix) {
            let boundary = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            if !boundary {
                let line = 1 + code[..at].matches('\n').count();
                names.extend(heads(&code[at + prefix.len()..]).into_iter().map(|name| (line, name)));
            }
        }
    }
    names.retain(|(_, name)| name != "super" && name != "self");
    names.sort();
    names
}

/// The first names of a use tree: `a::b` gives `a`, `{a::{b, c}, d}` gives `a` and `d`.
fn heads(tree: &str) -> Vec<String> {
    let word =
        |text: &str| -> String { text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(list) = tree.strip_prefix('{') else { return vec![word(tree)] };
    let mut heads = vec![word(list)];
    let mut depth = 1;
    for (at, sign) in list.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => heads.push(word(&list[at + 1..])),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    heads.retain(|name| !name.is_empty());
    heads
}

#[test]
fn literals_and_comments_are_told_from_code() {
    let code = Code::of(
        "let a = \"x\\\"y\"; // \"no\"\nlet b = r#\"z\"z\"#; /* /* */ \"no\" */ let c: &'a u8 = '\"'; let d = b'\\''; f(\"é\")",
    );
    let values: Vec<_> = code.strings.iter().map(|string| (string.value.as_str(), string.line)).collect();
    assert_eq!(values, [("x\\\"y", 1), ("z\"z", 2), ("é", 2)]);
    assert!(!code.text.contains("no") && code.text.contains("&'a u8") && code.text.contains("let d"));
}

#[test]
fn paths_from_the_root_are_found() {
    let code =
        "use crate::{error::{A, B}, C, source::{D}};\nfn f(x: crate::host::X, y: super::super::gpu::Y, z: super::Z) {}";
    let names: Vec<_> = crate_names(code, 2).into_iter().map(|(line, name)| format!("{line} {name}")).collect();
    assert_eq!(names, ["1 C", "1 error", "1 source", "2 gpu", "2 host"]);
}

#[test]
fn unit_tests_are_left_out() {
    let code = Code::of("use a;\n#[cfg(test)]\nmod helper;\nfn f() {}\n#[cfg(test)]\nmod tests { use b; }\n");
    assert!(code.without_tests().ends_with("fn f() {}\n"));
}
