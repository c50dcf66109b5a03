//! Writes the few shapes of YAML that manifests need. Not a YAML library: it reads nothing.
//!
//! A text that could be read as anything else is put in quotes.

/// A value.
#[derive(Debug)]
pub(super) enum Yaml {
    Text(String),
    Number(i64),
    Flag(bool),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl Yaml {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn texts<'a>(texts: impl IntoIterator<Item = &'a String>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    pub(super) fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

/// One document in block style, ending in a line feed.
pub(super) fn document(value: &Yaml) -> String {
    let mut out = String::new();
    write_value(&mut out, value, 0);
    out
}

fn write_value(out: &mut String, value: &Yaml, indent: usize) {
    match value {
        Yaml::Map(entries) => {
            for (key, value) in entries {
                line(out, indent, &format!("{}:", scalar(&Yaml::text(key))), value);
            }
        }
        Yaml::List(values) => {
            for value in values {
                line(out, indent, "-", value);
            }
        }
        Yaml::Text(_) | Yaml::Number(_) | Yaml::Flag(_) => line(out, indent, "", value),
    }
}

/// A line with its value behind it, or below it.
fn line(out: &mut String, indent: usize, head: &str, value: &Yaml) {
    let pad = " ".repeat(indent);
    let below = match value {
        Yaml::Map(entries) => !entries.is_empty(),
        Yaml::List(values) => !values.is_empty(),
        Yaml::Text(_) | Yaml::Number(_) | Yaml::Flag(_) => false,
    };
    if below {
        *out += &format!("{pad}{head}\n");
        write_value(out, value, indent + 2);
    } else {
        *out += &format!("{pad}{head} {}\n", scalar(value));
    }
}

fn scalar(value: &Yaml) -> String {
    match value {
        Yaml::Text(text) if is_plain(text) => text.clone(),
        Yaml::Text(text) => quoted(text),
        Yaml::Number(number) => number.to_string(),
        Yaml::Flag(flag) => flag.to_string(),
        Yaml::List(_) => "[]".to_owned(),
        Yaml::Map(_) => "{}".to_owned(),
    }
}

/// A text between double quotes; what is not printable ASCII is escaped.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        c if u32::from(c) <= 0xffff => format!("\\u{:04x}", u32::from(c)),
        c => format!("\\U{:08x}", u32::from(c)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Whether YAML reads it as this text without quotes: a word that begins with a letter and is no other thing's name.
fn is_plain(text: &str) -> bool {
    const OTHERS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b))
        && !OTHERS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shapes_are_written_in_block_style() {
        let value = Yaml::map([
            ("name", Yaml::text("WH")),
            ("subjects", Yaml::texts(&["wh.hist.>".to_owned()])),
            ("none", Yaml::List(Vec::new())),
            ("inner", Yaml::map([("a/b", Yaml::Number(-1)), ("yes", Yaml::Flag(true))])),
        ]);
        let text = "name: WH\nsubjects:\n  - \"wh.hist.>\"\nnone: []\ninner:\n  a/b: -1\n  \"yes\": true\n";
        assert_eq!(document(&value), text);
    }

    proptest! {
        #[test]
        fn a_yaml_reader_reads_every_text_as_it_was(text in "(?s).{0,40}", word in "[a-zA-Z0-9_./-]{0,6}") {
            for text in [text, word] {
                let written = document(&Yaml::map([("k", Yaml::text(&text))]));
                let read: serde_json::Value = serde_yaml::from_str(&written).unwrap();
                prop_assert_eq!(read["k"].as_str(), Some(text.as_str()), "{}", written);
            }
        }
    }
}
