//! Why a query is not run: a code, and a text that names the member and the reason.

use crate::{
    codes::{self, Code},
    error::ApiError,
};
use std::fmt::Display;

/// Why a query is not run.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: &'static Code,
    pub(crate) text: String,
}

impl Refused {
    pub(crate) fn query(text: impl Into<String>) -> Self {
        Self { code: &codes::QUERY_INVALID, text: text.into() }
    }

    /// `member` is the way to it: `filters[0].or[1].op`.
    pub(crate) fn at(member: &str, why: impl Display) -> Self {
        Self::query(format!("\"{member}\" {why}"))
    }

    /// Absent and hidden are the same (decision D23).
    pub(crate) fn unknown(member: &str, column: &str) -> Self {
        let column = crate::error::shown(column.as_bytes());
        Self { code: &codes::COLUMN_NOT_FOUND, text: format!("\"{member}\" names an unknown column: {column}") }
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        Self::new(refused.code, refused.text)
    }
}
