//! What is claimed, under what, and what becomes of it.

use crate::Key;
#[cfg(any(feature = "log", feature = "sled"))]
use crate::hash::KeyHash;
use bytes::Bytes;
use std::{fmt, time::Duration};
use wh_types::{BlockId, Entropy, Epoch, Timestamp};

/// A keyed row of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub key: Key,
    /// What is kept with it and given back with `Busy`, `Seen` and `Lapsed`: the hash of a request's body, for one. At
    /// most [`MAX_PAYLOAD`](crate::MAX_PAYLOAD) bytes; mostly empty.
    pub payload: Bytes,
}

impl Row {
    /// A row with nothing kept beside it.
    #[must_use]
    pub fn new(key: Key) -> Self {
        Self { key, payload: Bytes::new() }
    }
}

/// What rows are claimed under: the block they are to go out in, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Under {
    /// The stream that the block goes to, in the queue's numbering; 0 where it has one.
    pub stream: u32,
    /// Which life of that stream.
    pub epoch: Epoch,
    /// The block.
    pub block: BlockId,
    /// How long the claim holds without being committed or released.
    pub lease: Duration,
}

/// Where a lapsed claim's row may have gone out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The stream that the block was for.
    pub stream: u32,
    /// Which life of that stream.
    pub epoch: Epoch,
    /// The block.
    pub block: BlockId,
    /// When it was claimed, on the claimant's wall clock. To the millisecond.
    pub at: Timestamp,
    /// How long the claim held.
    pub lease: Duration,
}

impl Origin {
    #[cfg(any(feature = "dynamodb", feature = "log", feature = "sim", feature = "sled"))]
    pub(crate) fn new(under: &Under, at: Timestamp) -> Self {
        Self {
            stream: under.stream,
            epoch: under.epoch,
            block: under.block,
            at: Timestamp::from_millis(at.as_nanos().div_euclid(1_000_000)),
            lease: under.lease,
        }
    }

    /// After this, on the claimant's wall clock, its holder published it no more.
    #[must_use]
    pub fn last_publish(&self) -> Timestamp {
        self.at + self.lease
    }
}

/// What proves who holds a claim: 16 random bytes, drawn once a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub [u8; 16]);

impl Token {
    /// Draws one.
    pub fn draw(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&entropy.next_u64().to_le_bytes());
        bytes[8..].copy_from_slice(&entropy.next_u64().to_le_bytes());
        Self(bytes)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A claim that is ours: to be committed or released. May be used again where an outcome was not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    key: Key,
    token: Token,
    /// Where a store in this process keeps the claim; nothing follows from it.
    slot: u32,
}

impl Ticket {
    #[cfg(any(feature = "dynamodb", feature = "sim", feature = "sled"))]
    pub(crate) fn new(key: Key, token: Token) -> Self {
        Self { key, token, slot: 0 }
    }

    #[cfg(feature = "log")]
    pub(crate) fn in_slot(key: Key, token: Token, slot: u32) -> Self {
        Self { key, token, slot }
    }

    #[cfg(feature = "log")]
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    /// What it holds.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What proves it.
    #[must_use]
    pub fn token(&self) -> Token {
        self.token
    }

    #[cfg(any(feature = "log", feature = "sled"))]
    pub(crate) fn short(&self) -> KeyHash {
        self.key.short()
    }
}

/// What a row's key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody's, and ours from now on, under the block that was named.
    New(Ticket),
    /// Claimed by somebody who is still at it.
    Busy {
        /// When it will have lapsed at the latest, unless it is committed or released before.
        retry_after: Duration,
        /// What it was claimed with.
        payload: Bytes,
    },
    /// Committed: a row of this key is stored.
    Seen {
        /// What it was claimed with.
        payload: Bytes,
    },
    /// Claimed once under another block and neither committed nor released in time. The claim is ours now, but stands
    /// for *that* block: it is committed when the queue has the block's rows, released when it never will have them, and
    /// no row is published under it.
    Lapsed {
        /// The block to ask for.
        origin: Origin,
        /// What it was claimed with.
        payload: Bytes,
        /// What holds it meanwhile.
        ticket: Ticket,
    },
    /// The key stands in this call before: what becomes of that row becomes of this one.
    Same(usize),
}

/// For how long a committed key is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// For good.
    Forever,
    /// At least so long. A store may round it up to whole seconds.
    For(Duration),
}
