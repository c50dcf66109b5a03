//! What a client wants of a table, and what it is told. Values.

use super::{
    frame::{Frames, Why},
    latest::Key,
    lifetime::Reason,
    view::Kept,
};

/// What a stream that is too slow for the live rows gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Slow {
    /// Word of it; then the history.
    #[default]
    Gap,
    /// Its end.
    End,
    /// Of the rows that wait, the newest of each key.
    Latest(Key),
}

/// What a client wants to have of a table.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) view: Kept,
    pub(super) slow: Slow,
}

/// What a stream is to tell of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    Rows(Frames),
    Gap {
        from: Option<String>,
        to: Option<String>,
        why: Why,
    },
    /// What comes from here on is live.
    Ready,
    End(Reason),
}
