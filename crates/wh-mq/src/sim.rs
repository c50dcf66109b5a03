//! A queue in memory that passes the same conformance suite as the durable ones: for tests and simulation.
//!
//! It starts no task, no thread and draws no randomness, so a seeded run replays.

use crate::{
    Allowance, DeadLetter, Kind,
    core::{Core, Settings},
    local::{Change, Finished, Local, Pending, Shared, Store, local_broker},
};
use std::{sync::Arc, time::Duration};
use wh_types::{Block, Clock, Epoch, Tenant};

/// How a queue in memory is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which history it claims to be.
    pub epoch: Epoch,
    /// Shards, and so units.
    pub shards: u32,
    /// After how long a block that is neither settled nor kept alive is delivered again.
    pub ack_wait: Duration,
    /// For how long an id is remembered.
    pub duplicate_window: Duration,
    /// What a tenant may keep until it is given its own allowance.
    pub default_allowance: Allowance,
    /// Dead letters have an nth of the tenant's bytes.
    pub dead_letter_share: u64,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
}

/// The queue. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct Broker(Local<Memory>);

local_broker!(Broker, 0);

impl Broker {
    /// An empty queue.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let settings = Settings {
            shards: options.shards,
            ack_wait: options.ack_wait,
            duplicate_window: options.duplicate_window,
            allowance: options.default_allowance,
            dead_letter_share: options.dead_letter_share,
            max_blocks: 10_000_000,
        };
        let origin = options.clock.now();
        Self(Local(Shared::new(Core::new(settings, options.epoch), Memory, options.clock, origin)))
    }

    /// What another process would find after this one ended, however it ended. This handle answers `Stopping` from now
    /// on, as after `close`.
    #[must_use]
    pub fn reopen(&self) -> Self {
        let shared = &self.0.0;
        let mut core = {
            let mut state = shared.lock();
            state.closing = true;
            let empty = Core::new(state.core.settings(), state.core.epoch());
            std::mem::replace(&mut state.core, empty)
        };
        shared.closed.give();
        core.forget_owners();
        Self(Local(Shared::new(core, Memory, Arc::clone(&shared.clock), shared.origin())))
    }
}

/// A block or a dead letter, shared by all who look at it.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    Block(Arc<Block>),
    Letter(Arc<DeadLetter>),
}

/// Keeps everything where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory;

impl Store for Memory {
    type Body = Kept;
    type Room<'a> = ();

    fn max_body(&self) -> usize {
        8 * 1024 * 1024
    }

    async fn room(&self, _: usize) -> Result<(), Kind> {
        Ok(())
    }

    fn submit(
        _: &Arc<Shared<Self>>,
        (): (),
        core: &mut Core<Kept>,
        change: Change,
        pending: Pending,
    ) -> Option<Finished<Kept>> {
        core.take_settled();
        let bodies = match change {
            Change::Blocks { blocks, .. } => {
                blocks.into_iter().map(|(_, block)| Kept::Block(Arc::new(block))).collect()
            }
            Change::Letters { letters } => {
                letters.into_iter().map(|(_, letter)| Kept::Letter(Arc::new(letter))).collect()
            }
            Change::Purge { .. } | Change::Allowance { .. } => Vec::new(),
        };
        Some((pending, Ok(bodies)))
    }

    fn note_gone(&self, _: &Tenant, _: &[u64], _: u64) {}

    fn weight(_: &Kept) -> usize {
        // nothing is read
        0
    }

    fn at_hand(&self, body: &Kept) -> Option<Block> {
        match body {
            Kept::Block(block) => Some(Block::clone(block)),
            Kept::Letter(_) => None,
        }
    }

    async fn blocks(&self, bodies: Vec<Kept>) -> Vec<Result<Block, Kind>> {
        let block = |body| match body {
            Kept::Block(block) => Ok(Arc::unwrap_or_clone(block)),
            Kept::Letter(_) => Err(Kind::Bug("a dead letter in a block's place".into())),
        };
        bodies.into_iter().map(block).collect()
    }

    async fn letters(&self, bodies: Vec<Kept>) -> Vec<Result<DeadLetter, Kind>> {
        let letter = |body| match body {
            Kept::Letter(letter) => Ok(Arc::unwrap_or_clone(letter)),
            Kept::Block(_) => Err(Kind::Bug("a block in a dead letter's place".into())),
        };
        bodies.into_iter().map(letter).collect()
    }

    fn freed(&self, bodies: Vec<Kept>) {
        drop(bodies);
    }

    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    async fn close(_: &Arc<Shared<Self>>) {}
}
