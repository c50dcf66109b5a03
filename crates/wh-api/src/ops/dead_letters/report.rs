//! What a request did, row by row, and where to go on.

use crate::{
    codes::{self, Code},
    error::ApiError,
};
use serde::Serialize;
use wh_mq::{DeadLetter, DeadLetterId};

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// Check: ingest would take it.
    Accepted,
    /// It is in the queue again.
    Replayed,
    /// It was in the queue already, from a replay before.
    Duplicate,
    /// It would not be, or was not, taken. It stays.
    Refused,
    /// Not tried, or not known to have worked. It stays; try again.
    NotAttempted,
    /// It is gone.
    Purged,
    /// It was named, and there is no such letter.
    NotFound,
}

#[derive(Debug, Serialize)]
pub(super) struct Entry {
    pub(super) id: String,
    /// Of a letter that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table: Option<String>,
    pub(super) status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) column: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Check: the row as it would be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) row: Option<String>,
}

impl Entry {
    pub(super) fn new(letter: &DeadLetter, status: Status) -> Self {
        let (id, table) = (letter.id.to_string(), Some(letter.table.to_string()));
        Self { id, table, status, code: None, column: None, reason: None, row: None }
    }

    /// Of an id that nothing has.
    pub(super) fn not_found(id: DeadLetterId) -> Self {
        let (id, status) = (id.to_string(), Status::NotFound);
        let entry = Self { id, table: None, status, code: None, column: None, reason: None, row: None };
        entry.because(&codes::DEAD_LETTER_NOT_FOUND, "there is none; it may have been replayed or purged")
    }

    pub(super) fn because(mut self, code: &'static Code, reason: impl Into<String>) -> Self {
        (self.code, self.reason) = (Some(code.name), Some(reason.into()));
        self
    }
}

/// The answer.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// Letters that were looked at.
    pub(super) matched: usize,
    pub(super) accepted: usize,
    pub(super) replayed: usize,
    pub(super) duplicates: usize,
    pub(super) refused: usize,
    pub(super) not_attempted: usize,
    pub(super) purged: usize,
    /// Named, and not there: not among `matched`.
    pub(super) not_found: usize,
    pub(super) results: Vec<Entry>,
    /// Where the same request goes on; `null`: it is through.
    pub(super) next: Option<String>,
    /// Why it stopped before its end, where something failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<Stopped>,
}

/// What ended a request early.
#[derive(Debug, Serialize)]
pub(super) struct Stopped {
    code: &'static str,
    reason: String,
}

impl From<&ApiError> for Stopped {
    fn from(error: &ApiError) -> Self {
        Self { code: error.code().name, reason: error.message().to_owned() }
    }
}

impl Report {
    pub(super) fn add(&mut self, entry: Entry) {
        self.matched += usize::from(entry.status != Status::NotFound);
        match entry.status {
            Status::Accepted => self.accepted += 1,
            Status::Replayed => self.replayed += 1,
            Status::Duplicate => self.duplicates += 1,
            Status::Refused => self.refused += 1,
            Status::NotAttempted => self.not_attempted += 1,
            Status::Purged => {}
            Status::NotFound => self.not_found += 1,
        }
        self.results.push(entry);
    }
}
