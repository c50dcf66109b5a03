//! The words of a definition as ClickHouse writes it. Pure. Not a parser of SQL.

/// One word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A bare word, a keyword or a name or a number.
    Word(String),
    /// A name in backticks or double quotes.
    Name(String),
    /// A text in quotes.
    Text(String),
    /// Anything else, one by one.
    Sign(char),
}

/// Splits a definition into its words.
#[derive(Debug)]
pub(super) struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self(text)
    }

    /// What stands in quotes, from behind the first one; moves behind the last one. `None`: it has no end.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let (mut text, mut chars) = (String::new(), self.0.char_indices());
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    '0' => text.push('\0'),
                    'b' => text.push('\u{8}'),
                    'f' => text.push('\u{c}'),
                    other => text.push(other),
                },
                c if c == quote => {
                    let rest = &self.0[at + c.len_utf8()..];
                    match rest.strip_prefix(quote) {
                        // twice the quote is the quote
                        Some(_) => {
                            text.push(quote);
                            chars.next();
                        }
                        None => {
                            self.0 = rest;
                            return Some(text);
                        }
                    }
                }
                other => text.push(other),
            }
        }
        None
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.0 = self.0.trim_start();
        let first = self.0.chars().next()?;
        let bare = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        if bare(first) {
            let end = self.0.find(|c| !bare(c)).unwrap_or(self.0.len());
            let (word, rest) = self.0.split_at(end);
            self.0 = rest;
            return Some(Token::Word(word.to_owned()));
        }
        self.0 = &self.0[first.len_utf8()..];
        match first {
            '\'' => self.quoted('\'').map(Token::Text),
            '`' | '"' => self.quoted(first).map(Token::Name),
            other => Some(Token::Sign(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_names_and_texts_are_told_apart() {
        let word = |text: &str| Token::Word(text.to_owned());
        let tokens: Vec<_> = Tokens::of(r"TO `a\`b`.c('it\'s', x)").collect();
        let expected = [
            word("TO"),
            Token::Name("a`b".into()),
            Token::Sign('.'),
            word("c"),
            Token::Sign('('),
            Token::Text("it's".into()),
            Token::Sign(','),
            word("x"),
            Token::Sign(')'),
        ];
        assert_eq!(tokens, expected);
        assert_eq!(Tokens::of("'a''b' 'open").collect::<Vec<_>>(), [Token::Text("a'b".into())]);
    }
}
