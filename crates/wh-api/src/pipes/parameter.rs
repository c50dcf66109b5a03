//! One parameter of a pipe: its type, whether it must be given, and what it is where it is not. Pure.

use super::{
    given::Given,
    loose::{Loose, Typed},
    wire,
};
use wh_clickhouse::types::Type;

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(super) name: String,
    pub(super) declared: Declared,
    /// It must be given, whatever the text says.
    pub(super) required: bool,
    pub(super) default: Option<Absent>,
    pub(super) description: String,
    /// Whether the text has a place for it.
    pub(super) used: bool,
}

/// What is known of a parameter's type.
#[derive(Clone, Debug)]
pub(super) enum Declared {
    /// A type of ClickHouse's, and its text.
    Typed(Type, String),
    /// It follows from each value.
    Loose(Loose),
}

/// What a parameter is where it is not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// A JSON value, as the file has it.
    Json(String),
    /// The text behind the name, as in `{{name:text}}`.
    Text(String),
}

impl Parameter {
    /// The text of its type, as people are told it.
    pub(super) fn type_text(&self) -> &str {
        match &self.declared {
            Declared::Typed(_, text) => text,
            Declared::Loose(loose) => loose.name(),
        }
    }

    /// Type and wire form of its value. `None`: it must be given, and is not. `Err` says what is wrong with the value.
    pub(super) fn value(&self, given: Option<&Given>, zone: &str) -> Option<Result<Typed, String>> {
        if let Some(given) = given {
            return Some(match given {
                Given::Json(json) => self.of_json(json, zone),
                Given::Texts(texts) => self.of_texts(texts, zone),
            });
        }
        if self.required {
            return None;
        }
        self.default.as_ref().map(|default| self.of_default(default, zone))
    }

    /// The value of a default.
    pub(super) fn of_default(&self, default: &Absent, zone: &str) -> Result<Typed, String> {
        match default {
            Absent::Json(json) => self.of_json(json, zone),
            Absent::Text(text) => self.of_texts(std::slice::from_ref(text), zone),
        }
    }

    fn of_json(&self, json: &str, zone: &str) -> Result<Typed, String> {
        match &self.declared {
            Declared::Typed(ty, text) => Ok((text.clone(), wire::of_json(ty, json, zone)?)),
            Declared::Loose(loose) => loose.of_json(json),
        }
    }

    fn of_texts(&self, texts: &[String], zone: &str) -> Result<Typed, String> {
        match &self.declared {
            Declared::Typed(ty, text) => Ok((text.clone(), wire::of_texts(ty, texts, zone)?)),
            Declared::Loose(loose) => loose.of_texts(texts),
        }
    }
}
