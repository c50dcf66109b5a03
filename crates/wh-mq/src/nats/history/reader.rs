//! One reader of one table: from the history as long as the ring lacks something, then from the ring. It keeps a place,
//! not blocks: one that is slow finds itself behind the ring and asks the history again.

use super::{
    archive::{Archive, Stored},
    chains::Chains,
    core::Core,
    eras::Eras,
    mend::End,
    meters,
    replay::{Origin, Replay, Step},
    ring::{Bells, Floor, Look, Place},
};
use crate::{From, Gap, Happening, History, Result, nats::cursor};
use async_trait::async_trait;
use futures::future::BoxFuture;
use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};
use wh_types::{Block, Class, Cursor, Epoch, Timestamp, TopicKey};

/// How long after a partition sent a block on the history has it.
const SETTLED: Duration = Duration::from_millis(500);
/// Most steps in the ring under one lock.
const STEPS: usize = 64;

/// A reader.
pub(super) struct Reader<A: Archive> {
    core: Arc<Core<A>>,
    subject: Arc<str>,
    place: Place,
    bells: Bells,
    /// Of the place.
    epoch: Epoch,
    /// What is stored after this is live.
    seam: u64,
    /// The same when the reader came.
    opened: Cursor,
    live: bool,
    /// Nothing is shown before the first block that was received since; until it is live.
    since: Option<Timestamp>,
    /// What the reader came with, where that is of another epoch than its place: nothing of that up to there is shown.
    came: Option<Cursor>,
    /// The last block shown.
    last: Option<Cursor>,
    /// A gap that is not told yet, because it is not known what follows: after which block.
    gap: Option<Option<Cursor>>,
    chains: Chains,
    ready: VecDeque<Happening>,
    /// The history is being read. Kept here so that a dropped `next` loses nothing.
    work: Option<BoxFuture<'static, (Replay<A>, Result<Step>)>>,
    /// What the ring lacks, and the history is read for.
    floor: Floor,
    ended: bool,
}

impl<A: Archive> Reader<A> {
    /// A reader of a table of a partition, whose stream ended so when the reader came.
    pub(super) fn new(core: &Arc<Core<A>>, key: &TopicKey, index: usize, end: End, from: From) -> Self {
        let mut ring = core.ring.lock();
        let (mut place, bells) = ring.enter(key, index);
        let epoch = ring.partition(index).epoch();
        // made anew since it was asked: all of it is live
        let seam = if epoch == cursor::epoch(ring.partition(index).stream(), end.created) { end.last } else { 0 };
        let floor = ring.floor(&place.key).unwrap_or(Floor { turn: place.turn, lost_through: 0, since: core.now() });
        drop(ring);
        let (mut since, mut came, mut gap, mut origin) = (None, None, None, None);
        match from {
            From::Now => (place.after, place.stored) = (seam, end.stored),
            From::After(cursor) if cursor.epoch == epoch && cursor.sequence <= seam => {
                place.after = cursor.sequence;
                origin = (floor.lost_through > cursor.sequence).then_some(Origin::After(cursor, None));
            }
            // a place that this stream never had
            From::After(cursor) if cursor.epoch == epoch => {
                gap = Some(Some(cursor));
                origin = Some(Origin::Since(Timestamp::from_nanos(i64::MIN)));
            }
            From::After(cursor) => (came, origin) = (Some(cursor), Some(Origin::After(cursor, None))),
            From::Time(time) => (since, origin) = (Some(time), Some(Origin::Since(time))),
        }
        let last = if let From::After(cursor) = from { Some(cursor) } else { None };
        let subject = core.subject(key);
        let (core, chains, ready) = (Arc::clone(core), Chains::default(), VecDeque::new());
        let (live, work, ended) = (false, None, false);
        let mut this = Self {
            core,
            subject,
            place,
            bells,
            epoch,
            seam,
            opened: Cursor { epoch, sequence: seam },
            live,
            since,
            came,
            last,
            gap,
            chains,
            ready,
            work,
            floor,
            ended,
        };
        if let Some(origin) = origin {
            this.replay(origin);
        }
        this
    }

    fn replay(&mut self, origin: Origin) {
        self.chains.doubt();
        let (archive, subject) = (Arc::clone(&self.core.archive), Arc::clone(&self.subject));
        let eras = self.core.ring.lock().eras().clone();
        self.run(Replay::new(archive, subject, eras, origin, self.floor.since + SETTLED));
    }

    fn run(&mut self, mut replay: Replay<A>) {
        self.work = Some(Box::pin(async move {
            let step = replay.step().await;
            (replay, step)
        }));
    }

    /// What the history had.
    fn absorb(&mut self, mut replay: Replay<A>, step: Step) {
        if step.gap {
            self.missed();
        }
        for stored in step.entries {
            self.entry(stored, replay.eras());
        }
        if !step.done {
            return self.run(replay);
        }
        if self.floor.turn == self.place.turn {
            self.place.after = self.place.after.max(self.floor.lost_through);
        }
        // meanwhile the ring may have lost more
        let floor = self.core.ring.lock().floor(&self.place.key);
        let further = |floor: &Floor| floor.turn == self.place.turn && floor.lost_through > self.place.after;
        if let Some(floor) = floor.filter(further) {
            self.floor = floor;
            replay.again(floor.since + SETTLED);
            self.run(replay);
        }
    }

    fn entry(&mut self, stored: Stored, eras: &Eras) {
        let Some(message) = stored.message else { return };
        let cursor = eras.place(&message);
        let jumps =
            message.block.as_ref().and_then(|block| block.chain.as_ref()).is_some_and(|c| self.chains.replayed(c));
        if cursor.epoch == self.epoch {
            if cursor.sequence <= self.place.after {
                return;
            }
            (self.place.after, self.place.stored) = (cursor.sequence, Some(message.stored));
        }
        if self.came.is_some_and(|came| came.epoch == cursor.epoch && cursor.sequence <= came.sequence) {
            return;
        }
        match message.block {
            None => self.missed(),
            Some(block) => {
                if jumps {
                    self.missed();
                }
                self.show(cursor, &block);
            }
        }
    }

    /// Looks at what the ring has. True when there is nothing but to wait.
    fn look(&mut self) -> bool {
        let mut ring = self.core.ring.lock();
        for _ in 0..STEPS {
            match ring.read(&mut self.place) {
                Look::Block(sequence, block) => {
                    drop(ring);
                    if block.chain.as_ref().is_some_and(|chain| self.chains.heard(chain)) {
                        self.missed();
                    }
                    self.show(Cursor { epoch: self.epoch, sequence }, &block);
                    ring = self.core.ring.lock();
                }
                Look::Gap => {
                    drop(ring);
                    self.missed();
                    ring = self.core.ring.lock();
                }
                Look::Renewed => {
                    self.epoch = ring.partition(self.place.partition).epoch();
                    drop(ring);
                    // what was to be live comes anew
                    self.seam = if self.live { self.seam } else { self.place.after };
                    self.missed();
                    ring = self.core.ring.lock();
                }
                Look::Behind => {
                    let Some(floor) = ring.floor(&self.place.key) else { return true };
                    drop(ring);
                    self.floor = floor;
                    let after = Cursor { epoch: self.epoch, sequence: self.place.after };
                    self.replay(Origin::After(after, self.place.stored));
                    return false;
                }
                Look::Wait => {
                    drop(ring);
                    if !self.live && self.place.after >= self.seam {
                        self.go_live();
                    }
                    self.tell_gap(None);
                    return self.ready.is_empty();
                }
            }
        }
        false
    }

    fn show(&mut self, cursor: Cursor, block: &Block) {
        if block.rows == 0 {
            return;
        }
        if !self.live && cursor.epoch == self.epoch && cursor.sequence > self.seam {
            self.go_live();
        }
        if self.since.is_some_and(|since| block.received < since) {
            return;
        }
        self.since = None;
        self.tell_gap(Some(cursor));
        self.ready.push_back(Happening::Block(cursor, block.clone()));
        self.last = Some(cursor);
    }

    fn go_live(&mut self) {
        self.tell_gap(None);
        (self.live, self.since) = (true, None);
        self.ready.push_back(Happening::Live);
    }

    /// Something is missing after the last block.
    fn missed(&mut self) {
        self.gap = self.gap.or(Some(self.last));
    }

    fn tell_gap(&mut self, before: Option<Cursor>) {
        if let Some(after) = self.gap.take() {
            meters::gap();
            self.ready.push_back(Happening::Gap(Gap { after, before }));
        }
    }
}

#[async_trait]
impl<A: Archive> History for Reader<A> {
    fn seam(&self) -> Option<Cursor> {
        Some(self.opened)
    }

    async fn next(&mut self) -> Result<Option<Happening>> {
        tokio::task::coop::consume_budget().await;
        let (core, bells) = (Arc::clone(&self.core), self.bells.clone());
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Ok(Some(ready));
            }
            if self.ended || core.stop.given() {
                return Ok(None);
            }
            if let Some(work) = &mut self.work {
                let (replay, step) = tokio::select! {
                    biased;
                    () = core.stop.wait() => return Ok(None),
                    done = work => done,
                };
                self.work = None;
                match step {
                    Ok(step) => self.absorb(replay, step),
                    Err(error) => {
                        self.ended = true;
                        return if error.class() == Class::Stopping { Ok(None) } else { Err(error) };
                    }
                }
                continue;
            }
            let (table, partition) = (bells.table.notified(), bells.partition.notified());
            tokio::pin!(table, partition);
            table.as_mut().enable();
            partition.as_mut().enable();
            if self.look() {
                tokio::select! {
                    biased;
                    () = core.stop.wait() => return Ok(None),
                    () = table => {}
                    // only who waits for the seam moves with its partition
                    () = partition, if !self.live => {}
                }
            }
        }
    }
}

impl<A: Archive> Drop for Reader<A> {
    fn drop(&mut self) {
        self.core.ring.lock().leave(&self.place.key);
    }
}

impl<A: Archive> fmt::Debug for Reader<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, place, live, work, .. } = self;
        let replaying = work.is_some();
        f.debug_struct("Reader")
            .field("subject", subject)
            .field("after", &place.after)
            .field("live", live)
            .field("replaying", &replaying)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
