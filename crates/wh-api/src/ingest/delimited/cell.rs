//! A cell as JSON, by the type of its column. Numbers keep their digits; nothing is printed anew.

use super::{Syntax, split::Form};
use crate::{
    codes::{self, Code},
    error::shown,
    json::{Scanner, What, plain_until, push_compact},
};
use wh_clickhouse::types::{JsonKind, Type};

/// What the cells of a column become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Bare where it is a JSON number, else in quotes: ClickHouse reads more spellings than JSON has.
    Number,
    /// Bare where it is true, false, 0 or 1, else in quotes.
    Bool,
    /// In quotes.
    Text,
    /// The same; and in TSV, which has no quotes, nothing between two tabs is the empty text.
    Characters,
    /// As it is, if it is JSON.
    Json,
    /// As it is if it is JSON, else in quotes.
    Either,
}

impl Takes {
    pub(super) fn of(ty: &Type) -> Self {
        match ty {
            Type::Nullable(inner) | Type::LowCardinality(inner) | Type::Simple(inner) => Self::of(inner),
            Type::Int { .. } | Type::Float { .. } | Type::Decimal { .. } | Type::Interval(_) => Self::Number,
            Type::Bool => Self::Bool,
            Type::String | Type::FixedString(_) => Self::Characters,
            Type::Array(_) | Type::Map(..) | Type::Tuple(_) | Type::Nested(_) | Type::Json(_) | Type::Geo(_) => {
                Self::Json
            }
            Type::Variant(_) | Type::Dynamic | Type::Opaque(_) => Self::Either,
            Type::Uuid
            | Type::Ipv4
            | Type::Ipv6
            | Type::Date
            | Type::Date32
            | Type::DateTime(_)
            | Type::DateTime64 { .. }
            | Type::Time
            | Type::Time64(_)
            | Type::Enum { .. }
            | Type::Aggregate(_)
            | Type::Nothing
            | _ => Self::Text,
        }
    }
}

/// Why a cell is no value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    pub(super) code: &'static Code,
    pub(super) why: String,
}

/// Appends a cell as a JSON value and says of which kind; nothing where the cell gives none. `utf8`: its text is known to
/// be.
#[inline]
pub(super) fn push(
    out: &mut Vec<u8>,
    takes: Takes,
    (syntax, form, utf8): (Syntax, Form, bool),
    text: &[u8],
) -> Result<Option<JsonKind>, Unfit> {
    let kind = match (form, takes) {
        (Form::Null, _) => {
            out.extend_from_slice(b"null");
            JsonKind::Null
        }
        (Form::Empty, Takes::Characters) if syntax == Syntax::Tsv => {
            out.extend_from_slice(b"\"\"");
            JsonKind::String
        }
        (Form::Empty, _) => return Ok(None),
        (_, Takes::Number) => match number(text) {
            Some(kind) => {
                out.extend_from_slice(text);
                kind
            }
            None => push_text(out, text, utf8)?,
        },
        (_, Takes::Bool) => {
            let kind = match text {
                b"true" | b"false" => JsonKind::Bool,
                b"0" | b"1" => JsonKind::Integer,
                _ => return push_text(out, text, utf8).map(Some),
            };
            out.extend_from_slice(text);
            kind
        }
        (_, Takes::Json) => push_json(out, text).map_err(|why| Unfit {
            code: if why.1 { &codes::JSON_DEPTH } else { &codes::COLUMN_TYPE },
            why: format!("takes JSON in a cell, and {} is none: {}", shown(text), why.0),
        })?,
        (_, Takes::Either) => match push_json(out, text) {
            Ok(kind) => kind,
            Err(_) => push_text(out, text, utf8)?,
        },
        (_, Takes::Text | Takes::Characters) => push_text(out, text, utf8)?,
    };
    Ok(Some(kind))
}

/// Which kind of a JSON number a text is, if it is one and nothing else.
fn number(text: &[u8]) -> Option<JsonKind> {
    let mut json = Scanner::new(text, 0);
    if !matches!(text.first(), Some(b'-' | b'0'..=b'9')) {
        return None;
    }
    let value = json.value(1).ok()?;
    (value.span.len() == text.len()).then_some(value.kind)
}

/// Appends JSON without its white space; else says why it is none, and whether only for its depth.
fn push_json(out: &mut Vec<u8>, text: &[u8]) -> Result<JsonKind, (String, bool)> {
    if let Err(error) = std::str::from_utf8(text) {
        return Err((format!("not UTF-8 at byte {} of the cell", error.valid_up_to()), false));
    }
    let mut json = Scanner::new(text, 0);
    let value = json.value(1).map_err(|fault| (format!("{fault} of the cell"), fault.what == What::TooDeep))?;
    if json.peek().is_some() {
        return Err((format!("something follows the value at byte {} of the cell", json.at()), false));
    }
    push_compact(out, text, value.span, &[]);
    Ok(value.kind)
}

#[inline]
fn push_text(out: &mut Vec<u8>, text: &[u8], utf8: bool) -> Result<JsonKind, Unfit> {
    if utf8 && plain_until(text, 0) == text.len() {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
        return Ok(JsonKind::String);
    }
    push_any_text(out, text)
}

fn push_any_text(out: &mut Vec<u8>, text: &[u8]) -> Result<JsonKind, Unfit> {
    let unfit = |why| Unfit { code: &codes::JSON_UTF8, why };
    let text = std::str::from_utf8(text)
        .map_err(|error| unfit(format!("takes UTF-8, and byte {} of the cell is none", error.valid_up_to())))?;
    serde_json::to_writer(out, text).map_err(|error| unfit(error.to_string()))?;
    Ok(JsonKind::String)
}
