//! What a configuration key is: its name, what it takes, its default, its meaning. The keys themselves are `table.rs`.

use crate::amount::{show_duration, show_size};
use std::time::Duration;

/// One key of the configuration file, with its environment variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Where it stands in the file, with dots between.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it is when it is not given.
    pub default: Default,
    /// What it does, for people.
    pub meaning: &'static str,
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number within bounds.
    Int(u64, u64),
    /// A size in bytes within bounds.
    Size(u64, u64),
    /// A duration within bounds, with its unit.
    Duration(Duration, Duration),
    /// A duration within bounds; a bare number is seconds, as in `config.json`.
    Seconds(Duration, Duration),
    /// Text that is not empty.
    Text,
    /// Text; the empty text means none.
    Optional,
    /// Text that is never shown; the empty text means none.
    Secret,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of these words, each once, at least one.
    Choices(&'static [&'static str]),
    /// A list of texts, none of them empty; the empty text means none.
    Texts,
    /// Tables with settings of their own.
    Tables,
    /// Names and texts. The texts are never shown: such headers carry tokens.
    Pairs,
}

/// What a key is when it is not given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Default {
    /// This value, written as in an environment variable.
    Is(&'static str),
    /// This number, which another crate owns.
    Number(u64),
    /// This duration, which another crate owns.
    Span(Duration),
    /// Worked out from others or from the machine, in these words.
    From(&'static str),
}

impl Default {
    /// The value itself, where it is not worked out.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::Is(text) => Some(text.to_owned()),
            Self::Number(number) => Some(number.to_string()),
            Self::Span(span) => Some(show_duration(span)),
            Self::From(_) => None,
        }
    }
}

/// The longest text a key takes, in bytes.
pub(crate) const MAX_TEXT: usize = 4096;

impl Key {
    /// The environment variable of this key.
    pub(crate) fn variable(&self) -> String {
        variable(self.path)
    }

    /// Whether its value must not be shown.
    pub(crate) fn hidden(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::Pairs)
    }
}

/// The environment variable of a path.
pub(crate) fn variable(path: &str) -> String {
    format!("WH_{}", path.replace('.', "_").to_ascii_uppercase())
}

impl Kind {
    /// What it takes, in the words of the reference.
    pub(crate) fn describe(self) -> String {
        let quoted = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        match self {
            Self::Bool => "`true` or `false`".to_owned(),
            Self::Int(min, max) => format!("number, {min} to {max}"),
            Self::Size(min, max) => format!("size, {} to {}", show_size(min), show_size(max)),
            Self::Duration(min, max) => format!("duration, {} to {}", show_duration(min), show_duration(max)),
            Self::Seconds(min, max) => {
                format!("seconds or duration, {} to {}", show_duration(min), show_duration(max))
            }
            Self::Text => "text".to_owned(),
            Self::Optional => "text, may be empty".to_owned(),
            Self::Secret => "secret text, may be empty".to_owned(),
            Self::Choice(words) => format!("one of {}", quoted(words)),
            Self::Choices(words) => format!("list of {}", quoted(words)),
            Self::Texts => "list of texts, may be empty".to_owned(),
            Self::Tables => "tables with settings (as a variable: a JSON object)".to_owned(),
            Self::Pairs => "names with texts (as a variable: a JSON object)".to_owned(),
        }
    }
}
