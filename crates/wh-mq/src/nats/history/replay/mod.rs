//! One reader's way through the history's entries of its subject, up to the end as it was counted. Acts on an
//! [`Archive`]; what is shown of the entries is for the reader.

use super::{
    archive::{Archive, Begin, Ends, Stored},
    bisect::{Entries, Mark, Start, bisect},
    eras::Eras,
};
use crate::{Error, Kind, Result};
use std::{sync::Arc, time::Duration};
use wh_types::{Cursor, Epoch, Mono, Timestamp};

/// How long to wait before a copy that lags is asked again.
const AGAIN: Duration = Duration::from_millis(20);
/// How often it is asked.
const ATTEMPTS: u32 = 500;
/// How far the clocks of who received a block and who stored it may be apart.
const SKEW: Duration = Duration::from_secs(10);

/// Where a replay begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// After a block. The time is when it, or something after which the same follows, was stored, where that is known.
    After(Cursor, Option<Timestamp>),
    /// With what was received since. May begin with older entries.
    Since(Timestamp),
    /// Where the last round ended.
    Here,
}

/// A way through the history.
#[derive(Debug)]
pub(super) struct Replay<A> {
    archive: Arc<A>,
    subject: Arc<str>,
    eras: Eras,
    /// What is to be found before reading on.
    begin: Option<Origin>,
    /// Not before this time.
    not_before: Mono,
    /// The next sequence of the history to read.
    at: u64,
    /// The last entry of the subject, as it was counted.
    end: u64,
    /// Which history was counted.
    created: Timestamp,
}

/// A part of the history that is to be read.
struct Place {
    at: u64,
    end: u64,
    ends: Ends,
    /// Something before may be lost.
    gap: bool,
}

/// What a replay finds.
#[derive(Debug)]
pub(super) struct Step {
    /// Something before these entries may be lost.
    pub(super) gap: bool,
    /// In order.
    pub(super) entries: Vec<Stored>,
    /// The end was reached.
    pub(super) done: bool,
}

impl<A: Archive> Replay<A> {
    /// A replay that begins at `origin`, and not before `not_before`: what partitions stored is in the history a moment
    /// later.
    pub(super) fn new(archive: Arc<A>, subject: Arc<str>, eras: Eras, origin: Origin, not_before: Mono) -> Self {
        let begin = Some(origin);
        Self { archive, subject, eras, begin, not_before, at: 1, end: 0, created: Timestamp::default() }
    }

    /// Goes on to the end as it is counted then.
    pub(super) fn again(&mut self, not_before: Mono) {
        (self.begin, self.not_before) = (Some(Origin::Here), not_before);
    }

    /// Which epoch a stored message is of.
    pub(super) fn eras(&self) -> &Eras {
        &self.eras
    }

    /// The next entries. After a failure it can be called again.
    ///
    /// # Errors
    /// Unavailable, Stopping.
    pub(super) async fn step(&mut self) -> Result<Step> {
        let mut gap = false;
        for _ in 0..ATTEMPTS {
            if let Some(origin) = self.begin {
                tokio::time::sleep_until(self.not_before).await;
                let found = self.find(origin).await?;
                (self.at, self.end, self.created, self.begin) = (found.at, found.end, found.ends.created, None);
                gap |= found.gap;
            }
            if self.at > self.end {
                return Ok(Step { gap, entries: Vec::new(), done: true });
            }
            let entries = self.archive.read(&self.subject, Begin::Sequence(self.at)).await?;
            let ends = self.archive.ends().await?;
            if ends.created != self.created {
                // another history under its name
                self.begin = Some(Origin::Here);
                continue;
            }
            if entries.is_empty() && (ends.first > self.end || ends.last < self.end) {
                self.at = self.end + 1;
                return Ok(Step { gap: true, entries, done: true });
            }
            if let Some(last) = entries.last() {
                // some of it may have been removed before it was read
                gap |= ends.first > self.at;
                self.at = last.at + 1;
                return Ok(Step { gap, entries, done: self.at > self.end });
            }
            tokio::time::sleep(AGAIN).await;
        }
        Err(lags())
    }

    /// Where to begin and where to end.
    async fn find(&self, origin: Origin) -> Result<Place> {
        let (ends, last) = self.count().await?;
        let end = last.as_ref().map_or(0, |last| last.at);
        let (at, gap) = match (origin, last) {
            (Origin::Here, _) => {
                // another history begins anew, and what the old one had after here is gone with it
                let other = ends.created != self.created;
                (if other { 1 } else { self.at }, other)
            }
            (Origin::After(cursor, stored), last) => {
                let start = match last {
                    Some(last) => self.bisect(&ends, &last, cursor).await?,
                    None => Start { at: 1, kept: false },
                };
                let none_lost = (cursor.sequence == 0 && ends.whole() && self.eras.knows(cursor.epoch))
                    || stored.is_some_and(|stored| ends.first_stored.is_some_and(|first| first <= stored));
                // with the last entry before the cursor, so that the count of its publisher is known
                (start.at - u64::from(start.kept), !start.kept && !none_lost)
            }
            (Origin::Since(time), last) => {
                let lost = !ends.whole() && ends.first_stored.unwrap_or(ends.last_stored) > time;
                match last {
                    Some(last) if last.time >= time.saturating_sub(SKEW) => {
                        (self.first_since(time, &ends, end).await?, lost)
                    }
                    Some(_) | None => (end + 1, lost),
                }
            }
        };
        Ok(Place { at, end, ends, gap })
    }

    /// The ends, and the last entry of the subject, whoever answers.
    async fn count(&self) -> Result<(Ends, Option<Stored>)> {
        let (mut ends, mut has) = self.archive.has(&self.subject).await?;
        for _ in 0..ATTEMPTS {
            if !has {
                return Ok((ends, None));
            }
            if let Some((known, last)) = self.archive.last(&self.subject).await?
                && known >= ends.last
            {
                return Ok((ends, Some(last)));
            }
            tokio::time::sleep(AGAIN).await;
            let now = self.archive.has(&self.subject).await?;
            // removed meanwhile; that more came does not matter
            if now.0.created != ends.created || now.0.last < ends.last || !now.1 {
                (ends, has) = now;
            }
        }
        Err(lags())
    }

    async fn bisect(&self, ends: &Ends, last: &Stored, cursor: Cursor) -> Result<Start> {
        let of = Of { replay: self, epoch: cursor.epoch, end: last.at };
        bisect(&of, ends.first, of.mark(last), cursor.sequence).await
    }

    /// The first entry that was stored since.
    async fn first_since(&self, time: Timestamp, ends: &Ends, end: u64) -> Result<u64> {
        let since = time.saturating_sub(SKEW);
        if ends.first_stored.is_none_or(|first| first >= since) {
            return Ok(ends.first);
        }
        for _ in 0..ATTEMPTS {
            if let Some(first) = self.archive.read(&self.subject, Begin::Time(since)).await?.first() {
                return Ok(first.at);
            }
            if self.archive.ends().await?.first > end {
                return Ok(end + 1);
            }
            tokio::time::sleep(AGAIN).await;
        }
        Err(lags())
    }

    /// The first entry from there on, if it is not beyond `end`.
    async fn next(&self, from: u64, end: u64) -> Result<Option<Stored>> {
        for _ in 0..ATTEMPTS {
            if from > end {
                return Ok(None);
            }
            if let Some(stored) = self.archive.next(&self.subject, from).await? {
                return Ok(Some(stored).filter(|stored| stored.at <= end));
            }
            if self.archive.ends().await?.first > end {
                return Ok(None);
            }
            tokio::time::sleep(AGAIN).await;
        }
        Err(lags())
    }
}

fn lags() -> Error {
    Error::new("history", Kind::Unavailable).with_source("no copy of the history reaches its end")
}

/// The subject's entries, for a cursor's epoch.
struct Of<'a, A> {
    replay: &'a Replay<A>,
    epoch: Epoch,
    end: u64,
}

impl<A: Archive> Of<'_, A> {
    fn mark(&self, stored: &Stored) -> Mark {
        let place = stored.message.as_ref().map(|message| self.replay.eras.place(message));
        let own = place.filter(|place| place.epoch == self.epoch).map(|place| place.sequence);
        Mark { at: stored.at, own }
    }
}

impl<A: Archive> Entries for Of<'_, A> {
    async fn next(&self, from: u64) -> Result<Option<Mark>> {
        Ok(self.replay.next(from, self.end).await?.map(|stored| self.mark(&stored)))
    }
}

/// The entry of a subject at a cursor, as far as the history knows now.
///
/// # Errors
/// Unavailable, Stopping.
pub(super) async fn look_up<A: Archive>(
    archive: &Arc<A>,
    subject: &Arc<str>,
    eras: &Eras,
    at: Cursor,
    now: Mono,
) -> Result<Option<Stored>> {
    let before = Cursor { sequence: at.sequence.saturating_sub(1), ..at };
    let origin = Origin::After(before, None);
    let replay = Replay::new(Arc::clone(archive), Arc::clone(subject), eras.clone(), origin, now);
    let Place { at: mut from, end, .. } = replay.find(origin).await?;
    // others may lie between
    while let Some(stored) = replay.next(from, end).await? {
        match stored.message.as_ref().map(|message| eras.place(message)) {
            Some(place) if place == at => return Ok(Some(stored)),
            Some(place) if place.epoch == at.epoch && place.sequence > at.sequence => return Ok(None),
            Some(_) | None => from = stored.at + 1,
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
