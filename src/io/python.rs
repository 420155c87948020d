//! The Python literals that a `.npy` header is made of.

/// A literal. Lists and tuples are one: nothing here depends on which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Text(String),
    Bool(bool),
    Number(u64),
    Tuple(Vec<Literal>),
    Dict(Vec<(String, Literal)>),
}

/// Nesting beyond which a literal is refused, so that a header cannot exhaust the stack.
const MOST_DEPTH: u32 = 8;

/// Parses one literal, and only that; the place where it ends to be one.
pub(super) fn parse(text: &[u8]) -> Result<Literal, usize> {
    let mut parser = Parser { text, at: 0 };
    let literal = parser.literal(0);
    parser.blanks();
    match literal {
        Some(literal) if parser.at == text.len() => Ok(literal),
        _ => Err(parser.at),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Takes `token`, behind any blanks.
    fn take(&mut self, token: &str) -> bool {
        self.blanks();
        let found = self.text[self.at..].starts_with(token.as_bytes());
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn literal(&mut self, depth: u32) -> Option<Literal> {
        if depth > MOST_DEPTH {
            return None;
        }
        self.blanks();
        match self.text.get(self.at)? {
            b'\'' | b'"' => self.quoted().map(Literal::Text),
            b'0'..=b'9' => self.number().map(Literal::Number),
            b'(' => self.items("(", ")", |parser| parser.literal(depth + 1)).map(Literal::Tuple),
            b'[' => self.items("[", "]", |parser| parser.literal(depth + 1)).map(Literal::Tuple),
            b'{' => self.items("{", "}", |parser| parser.entry(depth + 1)).map(Literal::Dict),
            _ if self.take("True") => Some(Literal::Bool(true)),
            _ if self.take("False") => Some(Literal::Bool(false)),
            _ => None,
        }
    }

    fn entry(&mut self, depth: u32) -> Option<(String, Literal)> {
        self.blanks();
        let key = self.quoted()?;
        if self.take(":") { Some((key, self.literal(depth)?)) } else { None }
    }

    /// Items between brackets, parted by commas; a comma may follow the last.
    fn items<T>(&mut self, open: &str, close: &str, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        if !self.take(open) {
            return None;
        }
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(item(self)?);
            if !self.take(",") {
                return self.take(close).then_some(items);
            }
        }
        Some(items)
    }

    /// A string without escapes.
    fn quoted(&mut self) -> Option<String> {
        let quote = *self.text.get(self.at)?;
        if !matches!(quote, b'\'' | b'"') {
            return None;
        }
        let rest = &self.text[self.at + 1..];
        let length = rest.iter().position(|byte| *byte == quote || matches!(byte, b'\\' | b'\n'))?;
        if rest[length] != quote {
            return None;
        }
        self.at += length + 2;
        String::from_utf8(rest[..length].to_vec()).ok()
    }

    /// Digits, and an `L` as Python 2 writes it.
    fn number(&mut self) -> Option<u64> {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let number = std::str::from_utf8(&rest[..length]).ok()?.parse().ok()?;
        self.at += length + usize::from(rest.get(length) == Some(&b'L'));
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_parse() {
        let header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4), }   \n";
        let entries = vec![
            ("descr".to_owned(), Literal::Text("<f4".to_owned())),
            ("fortran_order".to_owned(), Literal::Bool(false)),
            ("shape".to_owned(), Literal::Tuple(vec![Literal::Number(3), Literal::Number(4)])),
        ];
        assert_eq!(parse(header), Ok(Literal::Dict(entries)));
        assert_eq!(parse(b"()"), Ok(Literal::Tuple(Vec::new())));
    }

    #[test]
    fn anything_else_is_refused_where_it_stops() {
        assert_eq!(parse(b""), Err(0));
        assert_eq!(parse(b"{'a' 1}"), Err(5));
        assert_eq!(parse(b"(1, 99999999999999999999999)"), Err(4));
        assert_eq!(parse(b"(1 2)"), Err(3));
        assert_eq!(parse(b"(1) x"), Err(4));
        assert_eq!(parse(b"'a\\'"), Err(0));
        assert_eq!(parse(b"(-1,)"), Err(1));
        assert!(parse(&b"(".repeat(100_000)).is_err());
        assert!(parse(b"'abc").is_err());
    }
}
