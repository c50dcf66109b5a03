//! A reader of one table. Takes a few steps at a time, so that bodies on disk are read together.

use super::{Shared, Store};
use crate::{
    Error, From, Gap, Happening, History, Kind, Result,
    core::{Read, Reader, Shown},
};
use async_trait::async_trait;
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::Notify;
use wh_types::{Block, Cursor, Table, Tenant};

/// How many blocks are looked up under one lock and read together, and how many bytes they are at most: a block more
/// where they are larger.
const STEPS: usize = 512;
const BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct LocalHistory<S: Store> {
    shared: Arc<Shared<S>>,
    reader: Reader,
    seam: Cursor,
    watcher: Arc<Notify>,
    /// Looked up, their bodies being read: kept here so that a dropped `next` loses nothing.
    steps: Vec<Shown<S::Body>>,
    ready: VecDeque<Result<Happening>>,
    /// An error was told; what follows is not known to be next.
    ended: bool,
}

impl<S: Store> LocalHistory<S> {
    pub(super) fn open(shared: &Arc<Shared<S>>, tenant: &Tenant, table: &Table, from: From) -> Result<Self> {
        let mut state = shared.lock();
        if state.closing {
            return Err(Error::new("history", Kind::Stopping));
        }
        let at = state.core.table(tenant, table);
        let (reader, watcher) = (state.core.follow(at, from), state.watch(at));
        let (shared, seam) = (Arc::clone(shared), state.core.cursor(reader.seam()));
        Ok(Self { shared, reader, seam, watcher, steps: Vec::new(), ready: VecDeque::new(), ended: false })
    }

    /// Reads again what was moved between looking up and reading.
    async fn look_again(&self, blocks: &mut [std::result::Result<Block, Kind>]) {
        let cursors = self.steps.iter().filter_map(|step| match step {
            Shown::Block(cursor, _) => Some(*cursor),
            Shown::Live | Shown::Gap(_) => None,
        });
        for (cursor, block) in cursors.zip(blocks) {
            if matches!(block, Err(Kind::NotFound(_))) {
                let body = self.shared.lock().core.body(self.reader.table, cursor.sequence);
                if let Some(body) = body {
                    let again = self.shared.store.blocks(vec![body]).await.pop();
                    *block = again.unwrap_or(Err(Kind::Bug("no answer for a body".into())));
                }
            }
        }
    }

    /// Reads the bodies of the steps taken. One that cannot be read is a gap.
    async fn fetch(&mut self) {
        let block = |step: &Shown<S::Body>| match step {
            Shown::Block(_, body) => Some(body.clone()),
            Shown::Live | Shown::Gap(_) => None,
        };
        let bodies = self.steps.iter().filter_map(block).collect();
        let mut blocks = self.shared.store.blocks(bodies).await;
        self.look_again(&mut blocks).await;
        let mut blocks = blocks.into_iter();
        for step in self.steps.drain(..) {
            let happening = match step {
                Shown::Live => Happening::Live,
                Shown::Gap(gap) => Happening::Gap(gap),
                Shown::Block(cursor, _) => match blocks.next() {
                    Some(Ok(block)) => Happening::Block(cursor, block),
                    Some(Err(kind @ (Kind::Corrupt(_) | Kind::NotFound(_) | Kind::Bug(_)))) => {
                        tracing::warn!(%cursor, error = %kind, "block {cursor} is missing from a history");
                        missing(cursor)
                    }
                    // the disk does not answer: the reader comes again after the last block it saw
                    Some(Err(kind)) => {
                        self.ready.push_back(Err(Error::new("history", kind)));
                        self.ended = true;
                        break;
                    }
                    None => missing(cursor),
                },
            };
            self.ready.push_back(Ok(happening));
        }
    }
}

/// The gap where a block was.
fn missing(cursor: Cursor) -> Happening {
    let before = Cursor { sequence: cursor.sequence.saturating_sub(1), ..cursor };
    let after = Cursor { sequence: cursor.sequence + 1, ..cursor };
    Happening::Gap(Gap { after: Some(before), before: Some(after) })
}

#[async_trait]
impl<S: Store> History for LocalHistory<S> {
    fn seam(&self) -> Option<Cursor> {
        Some(self.seam)
    }

    async fn next(&mut self) -> Result<Option<Happening>> {
        tokio::task::coop::consume_budget().await;
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return ready.map(Some);
            }
            if self.ended {
                return Ok(None);
            }
            if !self.steps.is_empty() {
                self.fetch().await;
                continue;
            }
            let (watcher, closed) = (Arc::clone(&self.watcher), self.shared.closed.clone());
            let notified = watcher.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let state = self.shared.lock();
                if state.closing {
                    return Ok(None);
                }
                let mut bytes = 0;
                while self.steps.len() < STEPS && bytes < BYTES {
                    let Read::Shown(shown) = state.core.read(&mut self.reader) else { break };
                    if let Shown::Block(_, body) = &shown {
                        bytes += S::weight(body);
                    }
                    self.steps.push(shown);
                }
            }
            if self.steps.is_empty() {
                tokio::select! {
                    biased;
                    () = closed.wait() => return Ok(None),
                    () = notified => {}
                }
            }
        }
    }
}
