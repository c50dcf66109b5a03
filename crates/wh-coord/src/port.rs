//! The port of coordination and its contract. Duties, never mechanism; no backend is named here.
//!
//! Each numbered clause has a conformance case of the same number (`tests/conformance`), and every backend, the fake
//! included, is an arm of that suite. A *coordinator* is one value of a type that implements [`Leases`]; a process has
//! one. *Lapses* means: unchanged for the lease's own length on the observer's own monotonic clock. No two clocks are
//! ever compared.
//!
//! # Claiming
//! - **co01** A key has one holder at a time: a claim of a held key is `Held`, by another coordinator and by the holder
//!   itself.
//! - **co02** Fences of a key grow strictly over its claims, whoever wins them, also after a resignation, a lapse, and
//!   when the coordinator is a new one.
//! - **co03** Keys are independent: holding one says nothing about another.
//! - **co04** Of many claims of a free key at one time exactly one wins.
//! - **co05** A lease whose holder is gone is `Held` until it lapses, and is then won; the winner is told whom it
//!   followed.
//! - **co06** A claim that was stored and whose answer was lost is the claimant's: the same claim gives it, or the next.
//! - **co07** A claim that was dropped half way keeps nobody out for longer than the lease, and its own coordinator not
//!   at all.
//! - **co08** A bad note is refused before anything is written.
//!
//! # The term
//! - **co10** A lease is renewed without its holder's doing, for as long as the coordinator lives.
//! - **co11** When no renewal was confirmed for two thirds of the lease since the last confirmed one was *sent*, the term
//!   is lost: by a timer, also while a request is under way, and before another can win it.
//! - **co12** A lease that another took or removed is lost.
//! - **co13** `renew` stores a note under the same fence; after it returned, whoever observes sees it.
//! - **co14** A renewal that was stored and whose answer was lost is ours: the term goes on.
//! - **co15** A dropped lease is not renewed any more, and its term is over at once.
//! - **co16** `clear` removes a lapsed lease, and only that: a live one stays.
//!
//! # Resigning
//! - **co20** After `resign` the key is free at once, and the term ended as resigned.
//! - **co21** Resigning a term that is over is no error and does not touch a successor.
//!
//! # Observing
//! - **co30** `observe` shows every lease below a prefix as it is stored, with holder, session, length and note, in one
//!   read, and none of another prefix.
//! - **co31** A lease that was resigned is not shown; one that lapsed is shown as lapsed.
//! - **co32** Observing takes nothing: a free key stays free, a held one held.
//! - **co33** `changes` moves when a lease is won, noted or resigned by anybody. It is a hint: it may move without a
//!   reason, and a missed move only costs time.
//!
//! # Life
//! - **co40** `close` resigns every term of this coordinator and of no other, once and for all: after it every method
//!   answers `Stopping`.

use crate::{Key, Lease, Result, Seen, Session};
use async_trait::async_trait;
use std::{collections::BTreeMap, fmt::Debug};
use tokio::sync::watch;

/// The longest note, in bytes.
pub const MAX_NOTE: usize = 512 * 1024;

/// How a claim ended.
#[derive(Debug)]
pub enum Claim {
    /// It is ours.
    Won {
        /// The term.
        lease: Lease,
        /// Whose lapsed lease it was, and its last note.
        over: Option<Seen>,
    },
    /// It is not.
    Held(Seen),
}

/// Leases. One implementation per backend; a wrapper implements every method.
#[async_trait]
pub trait Leases: Debug + Send + Sync {
    /// Takes a key that is free or lapsed.
    ///
    /// `note` is what observers read with it, at most [`MAX_NOTE`] bytes.
    ///
    /// # Contract
    /// co01–co08.
    /// # Errors
    /// Invalid (co08), Unavailable (nothing was stored), Unknown (claim it again), Denied, Stopping.
    /// # Cancel safety
    /// Detached. It may have been won: nobody renews it, and the next claim of this coordinator gives it.
    async fn claim(&self, key: &Key, note: &str) -> Result<Claim>;

    /// Says something new under a term. Returns once it is stored. Only the latest note matters: one that is overtaken
    /// by a later call may never be stored, and its call returns with the later one.
    ///
    /// # Contract
    /// co13.
    /// # Errors
    /// Invalid (co08), Fenced (the term ended), Stopping.
    /// # Cancel safety
    /// Detached. The note is written all the same.
    async fn renew(&self, lease: &Lease, note: &str) -> Result<()>;

    /// Gives a term up.
    ///
    /// # Contract
    /// co20, co21.
    /// # Errors
    /// Unavailable, Unknown: the key is free once the lease lapses.
    /// # Cancel safety
    /// Detached. The term is over when this is first polled; the key may be free only once it lapses.
    async fn resign(&self, lease: Lease) -> Result<()>;

    /// Removes a lapsed lease, so that nobody has to wait for it to lapse again. Gives whether it was there and is gone.
    ///
    /// # Contract
    /// co16.
    /// # Errors
    /// Unavailable, Unknown, Denied, Stopping.
    /// # Cancel safety
    /// Detached.
    async fn clear(&self, key: &Key) -> Result<bool>;

    /// Every lease one step below a prefix (`ingest` shows `ingest.m0`, not `ingest`, not `ingest.m0.x`), in one read.
    ///
    /// # Contract
    /// co30–co32.
    /// # Errors
    /// Unavailable, Denied, Stopping.
    /// # Cancel safety
    /// Safe.
    async fn observe(&self, prefix: &Key) -> Result<BTreeMap<Key, Seen>>;

    /// Which life of a coordinator this is: what others see with its leases.
    fn session(&self) -> Session;

    /// Moves when something changed that is worth a look.
    ///
    /// # Contract
    /// co33.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Resigns everything and refuses what comes. Again is a no-op.
    ///
    /// # Contract
    /// co40.
    /// # Cancel safety
    /// Must finish.
    async fn close(&self);
}

/// Whether a note may be stored (co08).
#[cfg(any(feature = "local", feature = "nats", feature = "sim"))]
pub(crate) fn check(note: &str) -> Result<()> {
    use crate::{Error, Kind};
    if note.len() <= MAX_NOTE {
        return Ok(());
    }
    Err(Error::new("note", Kind::Invalid(format!("a note of {} bytes is over {MAX_NOTE}", note.len()).into())))
}
