//! The history as it is asked: by subject, in the order of its own sequences, by whatever server has a copy.

use super::message::Message;
use crate::Result;
use std::{fmt::Debug, future::Future};
use wh_types::Timestamp;

/// The ends of the history, as its leader says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    /// When the stream was made.
    pub(super) created: Timestamp,
    /// Its first sequence; one more than the last where it holds nothing.
    pub(super) first: u64,
    /// Its last sequence.
    pub(super) last: u64,
    /// When the first that it holds was stored; `None` where it holds nothing.
    pub(super) first_stored: Option<Timestamp>,
    /// When the last was stored, also where that is gone.
    pub(super) last_stored: Timestamp,
}

impl Ends {
    /// Nothing was ever removed.
    pub(super) fn whole(&self) -> bool {
        self.first <= 1
    }
}

/// An entry of the history.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// Its sequence in the history.
    pub(super) at: u64,
    /// When the history stored it.
    pub(super) time: Timestamp,
    /// What it holds; `None` where no partition sent it.
    pub(super) message: Option<Message>,
}

/// Where a read begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// At this sequence of the history.
    Sequence(u64),
    /// With the first that was stored at or after this time.
    Time(Timestamp),
}

/// The history. A direct answer may come from a copy that lags: only [`Archive::ends`] and [`Archive::has`] are the
/// leader's word.
pub(super) trait Archive: Debug + Send + Sync + 'static {
    /// The ends.
    fn ends(&self) -> impl Future<Output = Result<Ends>> + Send;
    /// The ends, and whether the history holds anything of a subject.
    fn has(&self, subject: &str) -> impl Future<Output = Result<(Ends, bool)>> + Send;
    /// The last entry of a subject, and up to which sequence the copy that answered knew the history. `None`: that copy
    /// holds nothing of it.
    fn last(&self, subject: &str) -> impl Future<Output = Result<Option<(u64, Stored)>>> + Send;
    /// The first entry of a subject at or after a sequence.
    fn next(&self, subject: &str, from: u64) -> impl Future<Output = Result<Option<Stored>>> + Send;
    /// Some entries of a subject, the first ones from there on.
    fn read(&self, subject: &str, begin: Begin) -> impl Future<Output = Result<Vec<Stored>>> + Send;
}
