//! The port of the cache and its contract. Duties, never mechanism; no backend is named here.
//!
//! Each numbered clause has a conformance case of the same number (`tests/conformance`), and every backend, the fake
//! included, is an arm of that suite. A *member* is one value of a type that implements [`Cache`]; a process has one.
//! Members of one store share what is kept in it. To *end* an answer is to see that nobody is served it any more.
//!
//! # What is served
//! - **ca01** An answer put under a snapshot is served for the same key and view, byte for byte and with its age, by
//!   every member, until its time is over.
//! - **ca02** Nothing is served once its time is over.
//! - **ca03** An answer is served to its own tenant, key and reads only. The order of reads does not matter.
//! - **ca04** A later answer under a key replaces the one before.
//! - **ca05** A snapshot and a `get` under it find what a lookup finds.
//!
//! # What ends an answer
//! - **ca10** After an invalidation of a table returned as landed, no lookup of any member that begins then is served an
//!   answer that was kept before, whatever scope it reads.
//! - **ca11** What is put under a snapshot from before an invalidation is never served after it, however late it is put.
//! - **ca12** Invalidating a tenant ends everything of it, also what reads no table.
//! - **ca13** Invalidating a scope ends what reads the scope or the whole table, and leaves other scopes.
//! - **ca14** An invalidation leaves what it does not name.
//! - **ca15** What reads several tables ends with each of them.
//! - **ca16** Every change of a call has its own outcome, in the same order; a call may hold any number.
//! - **ca17** An invalidation that was dropped half way lands all the same.
//!
//! # Bounds
//! - **ca20** A value over the store's bound, a time of zero and one over [`MAX_TTL`] are refused as Invalid, and what
//!   was kept stays.
//!
//! # Faults
//! - **ca30** When the store cannot be reached, a lookup is answered without a hit soon, and its snapshot is blind;
//!   nothing else fails of it. When it can be again, answers are kept and served again, without anybody's doing.
//! - **ca31** An invalidation that could not be delivered is *owed*: it is tried again until it lands, and then no member
//!   is served what it ends.
//! - **ca32** While a member owes an invalidation, that member is served nothing that it would end, also where reads
//!   work and writes do not.
//! - **ca33** After some failures in a row the store is not asked any more for a while; the status says so.
//! - **ca34** A store that lost what it held costs misses and nothing else.
//! - **ca35** A member opens while the store is away, and uses it once it is there.
//! - **ca36** When a store comes back as it was some time ago, a member that went through it is not served what it had
//!   ended since.
//!
//! # Life
//! - **ca40** `close` delivers what is owed where that can be done at once; after it a lookup finds nothing, and `put` and
//!   `invalidate` answer `Stopping`.

use crate::{Change, Error, Key, Result, Snapshot, View};
use async_trait::async_trait;
use bytes::Bytes;
use std::{fmt::Debug, time::Duration};

/// The longest an answer may live.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 3_600);

/// A kept answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its bytes.
    pub value: Bytes,
    /// How long ago it was put.
    pub age: Duration,
}

/// What came of looking an answer up.
#[derive(Debug)]
pub struct Found {
    /// How things stood: taken before the store was asked for the answer.
    pub at: Snapshot,
    /// What was found.
    pub outcome: Outcome,
}

/// What was found.
#[derive(Debug)]
pub enum Outcome {
    /// An answer that may be served.
    Hit(Hit),
    /// None.
    Miss,
    /// One that was ended or whose time is over.
    Stale,
    /// The store was not asked: it is away, an invalidation is owed, or the cache is closed.
    Bypass,
    /// The store was asked and failed.
    Fault(Error),
}

impl Outcome {
    /// The answer, where there is one.
    #[must_use]
    pub fn hit(self) -> Option<Hit> {
        match self {
            Self::Hit(hit) => Some(hit),
            Self::Miss | Self::Stale | Self::Bypass | Self::Fault(_) => None,
        }
    }

    /// Its name in metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hit(_) => "hit",
            Self::Miss => "miss",
            Self::Stale => "stale",
            Self::Bypass => "bypass",
            Self::Fault(_) => "error",
        }
    }
}

/// What became of an answer that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// It is kept.
    Kept,
    /// It is not, and nothing failed.
    Skipped(Skipped),
}

/// Why an answer was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The snapshot is blind.
    Blind,
    /// The snapshot is known to be out of date.
    Stale,
    /// The store is away, or an invalidation is owed that would end it.
    Bypassed,
}

/// How far an invalidation came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// No member is served what it ends.
    Landed,
    /// This member is not served what it ends; others are not once it lands, which is tried until it does.
    Owed,
}

/// How a cache is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Why the store is not asked at present; `None` when it is.
    pub away: Option<String>,
    /// How many invalidations are owed.
    pub owed: usize,
}

/// A cache of answers. One implementation per backend; a wrapper implements every method.
#[async_trait]
pub trait Cache: Debug + Send + Sync {
    /// How things stand for a view, before its tables are read. Blind where that cannot be known.
    ///
    /// # Contract
    /// ca05, ca11, ca30.
    /// # Cancel safety
    /// Safe.
    async fn snapshot(&self, view: &View) -> Snapshot;

    /// An answer under a snapshot just taken.
    ///
    /// # Contract
    /// ca01–ca05.
    /// # Cancel safety
    /// Safe.
    async fn get(&self, at: &Snapshot, key: &Key) -> Outcome;

    /// Both in one: what a query begins with.
    ///
    /// # Contract
    /// ca01–ca05, ca10–ca15, ca30–ca36.
    /// # Cancel safety
    /// Safe.
    async fn lookup(&self, view: &View, key: &Key) -> Found;

    /// Keeps an answer under the snapshot that was taken before it was computed, for at most `ttl`.
    ///
    /// # Contract
    /// ca01–ca04, ca11, ca20.
    /// # Errors
    /// Invalid (ca20), Unavailable, Unknown (it may be kept), Denied, Exhausted, Stopping. None of them is the query's.
    /// # Cancel safety
    /// Detached. It may be kept.
    async fn put(&self, at: &Snapshot, key: &Key, value: Bytes, ttl: Duration) -> Result<Filled>;

    /// Ends what depends on anything that was changed. One outcome per change, in the same order.
    ///
    /// # Contract
    /// ca10–ca17, ca31, ca32.
    /// # Errors
    /// Stopping: it was not delivered and will not be.
    /// # Cancel safety
    /// Detached. It lands.
    async fn invalidate(&self, changes: &[Change]) -> Vec<Result<Landing>>;

    /// How it is, without asking the store.
    ///
    /// # Contract
    /// ca33.
    fn status(&self) -> Status;

    /// Delivers what is owed and refuses what comes. Again is a no-op.
    ///
    /// # Contract
    /// ca40.
    /// # Cancel safety
    /// Must finish.
    async fn close(&self);
}

/// Whether a time to live is one (ca20).
#[cfg(any(feature = "memory", feature = "redis", feature = "sim"))]
pub(crate) fn check(value: &[u8], most: usize, ttl: Duration) -> Result<()> {
    use crate::Kind;
    let invalid = |text: String| Err(Error::new("put", Kind::Invalid(text.into())));
    match () {
        () if value.len() > most => invalid(format!("a value of {} bytes is over {most}", value.len())),
        () if ttl.is_zero() || ttl > MAX_TTL => invalid(format!("a time to live of {ttl:?} is not within {MAX_TTL:?}")),
        () => Ok(()),
    }
}
