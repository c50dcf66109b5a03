//! The port of deduplication and its contract. Duties, never mechanism; no backend is named here.
//!
//! Each numbered clause has a conformance case of the same number (`tests/conformance`), and every backend, the fake
//! included, is an arm of that suite. A *key* is a [`Key`](crate::Key), tenant and table included. A *claim* is what
//! `reserve` gives with a ticket; it is *resolved* when it is committed or released, and has *lapsed* when its lease is
//! over before that.
//!
//! # Reserving
//! - **dd01** A key that nobody claimed is `New`, and the verdicts stand in the order of the rows.
//! - **dd02** A claimed key is `Busy`, for everybody and for its holder, with a wait that is not longer than the lease.
//! - **dd03** A committed key is `Seen`, and no other is.
//! - **dd04** Of many reservations of a free key at one time exactly one is `New`.
//! - **dd05** Keys of other tenants, tables, ids and of idempotency records are other keys.
//! - **dd06** A key that stands in one call twice is claimed once; its repeats are `Same`, and name the row they repeat.
//! - **dd07** A claim that lapsed is given to one who asks, with the block it was under as it was claimed.
//! - **dd08** A claim that lapsed, was taken over, and lapsed again still stands for the block it was first under.
//! - **dd09** A call without rows is fine. Too many rows, too long a payload, or a lease out of bounds is refused, and
//!   nothing is claimed.
//! - **dd10** What was claimed with a key comes back with `Busy`, `Seen` and `Lapsed`.
//!
//! # Committing
//! - **dd20** After `commit` said so the key is `Seen` by everybody.
//! - **dd21** A ticket whose claim is another's or nobody's by now is refused as `Fenced`, and changes nothing.
//! - **dd22** A commit whose outcome is not known can be repeated with the same ticket.
//! - **dd23** A claim whose lease is over can still be committed while nobody took it over.
//! - **dd24** A committed key is known for its retention, and afterwards it is `New`. Without an end it is known for good.
//! - **dd25** There is one outcome a ticket, in order; a refused one does not keep the others from being committed.
//!
//! # Releasing
//! - **dd30** After `release` said so the key is `New`, at once.
//! - **dd31** A ticket whose claim is another's or nobody's by now is refused as `Fenced`, and changes nothing.
//!
//! # Failing
//! - **dd40** A call that failed as `Unavailable` or `Exhausted` changed nothing, and a later one works.
//! - **dd41** After a reservation that failed as `Unknown` a key is free, or claimed under that call's block until the
//!   lease is over. It is never `Seen`.
//! - **dd42** A reservation that fails half way gives back what it had taken before it says that nothing was changed.
//!
//! # Life
//! - **dd50** What was answered outlives the process: committed keys are known, claims are `Busy` or `Lapsed` and then
//!   name their block, released keys are `New`.
//! - **dd51** After `close` every method is refused as `Stopping`.
//!
//! # Clocks
//!
//! A store in one process counts leases on that process's own monotonic clock, and a claim of a life that is over has
//! lapsed at once: the folder has one owner, so its claimant is gone. A store that processes share compares the wall
//! clock of the one who asks with the end of the lease as its claimant's wall clock had it. A claimant publishes no row
//! in the last five seconds of its lease (decision D4), so clocks that differ by less cost nothing; where the asker's is
//! further ahead a claim may be taken over whose holder is still publishing: its commit is refused, and both it and the
//! probe go by what the queue says of the block. Where the asker's clock is behind, the key is `Busy` for that much longer.
//! Retention is by wall clocks; what skew costs is that much of it.

use crate::{Result, Retention, Row, Ticket, Under, Verdict};
use async_trait::async_trait;
use std::{fmt::Debug, time::Duration};

/// Most rows of one call: a block of 500 with an id and an idempotency record for each.
pub const MAX_ROWS: usize = 1_000;
/// Most bytes that are kept with a key.
pub const MAX_PAYLOAD: usize = 64;
/// The shortest lease.
pub const LEASE_AT_LEAST: Duration = Duration::from_millis(10);
/// The longest lease.
pub const LEASE_AT_MOST: Duration = Duration::from_secs(3_600);

/// Which rows came before. One implementation per backend; a wrapper implements every method.
///
/// There is no way to only look: what a look finds is over when it is told.
#[async_trait]
pub trait Dedupe: Debug + Send + Sync {
    /// Claims the keys of one block's rows, all in one call, at most [`MAX_ROWS`]. One verdict a row, in order.
    ///
    /// It is all or nothing: where it fails, no claim of it is to be counted on, and the block's id is never to be
    /// published with rows.
    ///
    /// # Contract
    /// dd01–dd10, dd40–dd42.
    /// # Errors
    /// Invalid (dd09), Unavailable and Exhausted (nothing was changed), Unknown (dd41), Denied, `NotFound`, Stopping.
    /// # Cancel safety
    /// Detached. Keys may be claimed, with nobody to resolve them: they are `Busy` until the lease is over, then `Lapsed`.
    async fn reserve(&self, rows: &[Row], under: &Under) -> Result<Vec<Verdict>>;

    /// Makes claimed keys known: their rows are stored. At most [`MAX_ROWS`] tickets, one outcome each, in order. Durable
    /// when it returns.
    ///
    /// # Contract
    /// dd20–dd25.
    /// # Errors
    /// Each outcome: Fenced (dd21), Unavailable and Exhausted (nothing was changed), Unknown (dd22), Denied, Stopping. Of
    /// too many tickets each is Invalid.
    /// # Cancel safety
    /// Detached. It may be committed; else it lapses.
    async fn commit(&self, held: &[Ticket], retention: Retention) -> Vec<Result<()>>;

    /// Frees claimed keys: their rows are not stored and never will be under their block. At most [`MAX_ROWS`] tickets,
    /// one outcome each, in order. Durable when it returns: a claim that came back after a crash would be taken for one
    /// of a row that went out.
    ///
    /// # Contract
    /// dd30, dd31.
    /// # Errors
    /// As `commit`.
    /// # Cancel safety
    /// Detached. It may be free; else it lapses.
    async fn release(&self, held: &[Ticket]) -> Vec<Result<()>>;

    /// Ends it once what is under way is written. Again is a no-op.
    ///
    /// # Contract
    /// dd51.
    /// # Cancel safety
    /// Must finish.
    async fn close(&self);
}

#[cfg(any(feature = "dynamodb", feature = "log", feature = "sim", feature = "sled"))]
pub(crate) mod checked {
    //! What every backend refuses alike.

    use super::{LEASE_AT_LEAST, LEASE_AT_MOST, MAX_PAYLOAD, MAX_ROWS};
    use crate::{Error, Kind, Result, Row, Ticket, Under};

    /// Whether a call may be made (dd09).
    pub(crate) fn reserve(rows: &[Row], under: &Under) -> Result<()> {
        let invalid = |why: String| Err(Error::new("reserve", Kind::Invalid(why.into())));
        if rows.len() > MAX_ROWS {
            return invalid(format!("{} rows are more than the {MAX_ROWS} of one call", rows.len()));
        }
        if let Some(row) = rows.iter().find(|row| row.payload.len() > MAX_PAYLOAD) {
            return invalid(format!("a payload of {} bytes is over {MAX_PAYLOAD}", row.payload.len()));
        }
        if !(LEASE_AT_LEAST..=LEASE_AT_MOST).contains(&under.lease) {
            return invalid(format!("a lease of {:?} is not within 10 ms and 1 h", under.lease));
        }
        Ok(())
    }

    /// Why so many tickets are refused.
    pub(crate) fn tickets(op: &'static str, held: &[Ticket]) -> Option<Vec<Result<()>>> {
        let why = || format!("{} tickets are more than the {MAX_ROWS} of one call", held.len());
        let refuse = |_| Err(Error::new(op, Kind::Invalid(why().into())));
        (held.len() > MAX_ROWS).then(|| held.iter().map(refuse).collect())
    }

    /// For each row the one before it that has its key (dd06).
    pub(crate) fn repeats(rows: &[Row]) -> Vec<Option<usize>> {
        const FREE: u16 = u16::MAX;
        // at least half of it stays free, and there are at most MAX_ROWS: whatever keys a client chooses, a look is short
        let mut places = vec![FREE; (rows.len() * 2).next_power_of_two()];
        let index = |(index, row): (usize, &Row)| {
            let hash = row.key.short();
            let mut at = usize::try_from(hash.halves().0 & 0xffff).unwrap_or(0);
            loop {
                at %= places.len();
                match places[at] {
                    FREE => {
                        places[at] = u16::try_from(index).unwrap_or(FREE);
                        return None;
                    }
                    before if rows[usize::from(before)].key.short() == hash => return Some(usize::from(before)),
                    _ => at += 1,
                }
            }
        };
        rows.iter().enumerate().map(index).collect()
    }
}
