//! The text of a pipe: where its parameters stand. Pure.
//!
//! `{name:Type}` is ClickHouse's own and stays as it is. `{{name}}` and `{{name:default}}` are those of older files; they
//! become the first form when the type is known. Neither may stand in quotes or in a comment: there nothing would be bound.

use std::ops::Range;

/// Longest name of a parameter.
const LONGEST_NAME: usize = 64;

/// A place where a value belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) span: Range<usize>,
    pub(super) form: Form,
}

/// How a place is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `{name:Type}`.
    Native(String),
    /// `{{name}}`, perhaps with a default.
    Loose(Option<String>),
}

/// The places of a text in their order, and what is wrong with it, with offsets.
pub(super) fn scan(sql: &str) -> (Vec<Slot>, Vec<(usize, String)>) {
    let (mut slots, mut faults) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(first) = sql[at..].chars().next() {
        let rest = &sql[at..];
        if let Some((len, what)) = closed_off(rest) {
            match len {
                None => {
                    faults.push((at, format!("{what} that begins here has no end")));
                    break;
                }
                Some(len) => {
                    faults.extend(inside(&rest[..len]).map(|(within, name)| {
                        (at + within, format!("the placeholder of {name:?} stands in {what}, where no value is bound"))
                    }));
                    at += len;
                }
            }
        } else if first == '{' {
            match placeholder(rest) {
                Some(Ok((len, name, form))) => {
                    slots.push(Slot { name, span: at..at + len, form });
                    at += len;
                }
                Some(Err(problem)) => {
                    faults.push((at, problem));
                    at += 1;
                }
                None => at += 1,
            }
        } else if is_word(first) {
            // a '$' in a word begins no quoted text
            at += rest.find(|c: char| !is_word(c) && c != '$').unwrap_or(rest.len());
        } else {
            at += first.len_utf8();
        }
    }
    (slots, faults)
}

/// Whether a text may name a parameter.
pub(super) fn is_name(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    // ClickHouse means the request's body by this one
    begins && name.len() <= LONGEST_NAME && name.bytes().all(|b| is_word(b.into())) && name != "_request_body"
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A comment or quoted text that begins here, as ClickHouse's lexer has them: its length, `None` where it does not end.
fn closed_off(rest: &str) -> Option<(Option<usize>, &'static str)> {
    let until = |end: &str, behind: usize| rest[behind..].find(end).map(|at| behind + at + end.len());
    let line = || Some(rest.find('\n').unwrap_or(rest.len()));
    if ["--", "//", "#!", "# "].iter().any(|mark| rest.starts_with(mark)) {
        return Some((line(), "a comment"));
    }
    if rest.starts_with("/*") {
        return Some((comment(rest), "a comment"));
    }
    Some(match rest.chars().next()? {
        quote @ ('\'' | '"' | '`') => (quoted(rest, quote), "a quoted text"),
        '\u{2018}' => (until("\u{2019}", 3), "a quoted text"),
        '\u{201c}' => (until("\u{201d}", 3), "a quoted text"),
        '$' => {
            let tag = rest[1..].find(|c: char| !is_word(c)).filter(|at| rest[1 + at..].starts_with('$'))?;
            (until(&rest[..tag + 2], tag + 2), "a quoted text")
        }
        _ => return None,
    })
}

/// The length of a comment that may hold others.
fn comment(rest: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let found = at + rest[at..].find(['/', '*'])?;
        let pair = rest.get(found..found + 2).unwrap_or_default();
        match pair {
            "/*" => depth += 1,
            "*/" => depth -= 1,
            _ => {}
        }
        at = found + if matches!(pair, "/*" | "*/") { 2 } else { 1 };
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The length of a quoted text: its quote ends it, unless it is doubled or behind a backslash.
fn quoted(rest: &str, quote: char) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match *byte {
            b'\\' => at += 2,
            b if char::from(b) == quote && bytes.get(at + 1) == Some(&b) => at += 2,
            b if char::from(b) == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// The placeholders in a text that is closed off.
fn inside(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut next = 0;
    text.match_indices('{').filter_map(move |(at, _)| {
        let (len, name, _) = if at < next { None } else { placeholder(&text[at..])?.ok() }?;
        next = at + len;
        Some((at, name))
    })
}

type Placed = (usize, String, Form);

/// The placeholder that begins here. `None`: this brace begins none.
fn placeholder(rest: &str) -> Option<Result<Placed, String>> {
    if let Some(inner) = rest.strip_prefix("{{") {
        return Some(loose(inner));
    }
    let inner = &rest[1..];
    let (name, behind) = inner.split_once(':')?;
    let name = name.trim();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_word) {
        return None;
    }
    let from = inner.len() - behind.len();
    let end = type_end(behind)?;
    let ty = behind[..end].trim();
    if !ty.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    if !is_name(name) {
        return Some(Err(format!("{name:?} cannot name a parameter")));
    }
    Some(Ok((1 + from + end + 1, name.to_owned(), Form::Native(ty.to_owned()))))
}

/// Where the brace is that ends a type; types may hold quoted texts.
fn type_end(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        at += match rest.chars().next()? {
            '}' => return Some(at),
            '{' => return None,
            '\'' => quoted(rest, '\'')?,
            other => other.len_utf8(),
        };
    }
}

fn loose(inner: &str) -> Result<Placed, String> {
    let end = inner.find("}}").ok_or("\"{{\" begins a placeholder that has no end")?;
    let text = &inner[..end];
    let (name, default) = match text.split_once(':') {
        Some((name, default)) => (name.trim(), Some(default.trim().to_owned())),
        None => (text.trim(), None),
    };
    if !is_name(name) {
        let why = "letters, digits and underscores, not a digit first, at most 64";
        return Err(format!("{name:?} cannot name a parameter: a name is {why}"));
    }
    Ok((2 + end + 2, name.to_owned(), Form::Loose(default)))
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
