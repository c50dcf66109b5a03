//! Claims whose holders vanished: what became of the blocks they were under (decision D4).
//!
//! Each block is asked for with an empty one under its id. A claim whose row is stored is committed; one whose row never
//! will be is released, to be claimed again. A block of another epoch, or one that the queue may have forgotten, is not
//! asked for: its claims are claimed afresh and counted, because their rows may double.

use super::{Act, Claims, Held};
use crate::ingest::coalesce::{Publishing, attempt::Times};
use futures::future::join_all;
use std::{collections::BTreeMap, sync::Arc};
use tokio::time::timeout;
use wh_dedupe::{Origin, Ticket, Under};
use wh_mq::Receipt;
use wh_types::{Block, BlockId, Table, Tenant, Timestamp};

/// What became of a lapsed claim's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is stored.
    Stored,
    /// It is not, and never will be under its block.
    Gone,
    /// Nobody can say any more.
    Forgotten,
    /// Not known yet: ask again later.
    Open,
}

/// A claim that lapsed and is ours now.
#[derive(Debug)]
pub(super) struct Lapsed {
    pub(super) origin: Origin,
    pub(super) ticket: Ticket,
    /// Whether it is a record's.
    pub(super) record: bool,
}

/// Whether the queue can still be asked for a block.
fn askable(origin: &Origin, under: &Under, half_window: std::time::Duration, now: Timestamp) -> bool {
    (origin.stream, origin.epoch) == (under.stream, under.epoch) && now <= origin.last_publish() + half_window
}

impl Claims {
    /// Finds out, and commits or releases. Gives what became of each, in order; a claim that could not be released is open.
    pub(super) async fn look_into(
        &self,
        publishing: &Arc<Publishing>,
        (tenant, table): (&Tenant, &Table),
        under: &Under,
        lapsed: Vec<Lapsed>,
        held: impl Fn() -> Held,
    ) -> Vec<Fate> {
        let now = publishing.clock.wall();
        let half = self.with.duplicate_window / 2;
        let mut blocks: BTreeMap<BlockId, Fate> = BTreeMap::new();
        for one in lapsed.iter().filter(|one| askable(&one.origin, under, half, now)) {
            blocks.insert(one.origin.block, Fate::Open);
        }
        let probe = |id: &BlockId| Block::empty(*id, tenant.clone(), table.clone(), now);
        let probes: Vec<Block> = blocks.keys().map(probe).collect();
        let fates = ask(publishing, &probes).await;
        for (block, fate) in probes.iter().zip(fates) {
            blocks.insert(block.id, fate);
        }
        let mut fates = Vec::with_capacity(lapsed.len());
        let (mut commit, mut free) = (held(), Vec::new());
        for (at, one) in lapsed.into_iter().enumerate() {
            let asked = askable(&one.origin, under, half, now);
            let fate = if asked { blocks.get(&one.origin.block).copied() } else { None };
            let fate = fate.unwrap_or(Fate::Forgotten);
            match fate {
                Fate::Stored => commit.add(one.ticket, one.record),
                Fate::Gone | Fate::Forgotten => free.push((at, one.ticket)),
                Fate::Open => {}
            }
            fates.push(fate);
        }
        for kind in [Fate::Stored, Fate::Gone, Fate::Forgotten, Fate::Open] {
            let count = fates.iter().filter(|fate| **fate == kind).count() as u64;
            if count > 0 {
                publishing.meters.lapsed(kind.name(), count);
            }
        }
        let (_, taken) = tokio::join!(self.attempt(publishing, Act::Commit, commit), self.freed(publishing, free));
        for at in taken {
            fates[at] = Fate::Open;
        }
        fates
    }

    /// Releases; gives those that could not be.
    async fn freed(&self, publishing: &Publishing, free: Vec<(usize, Ticket)>) -> Vec<usize> {
        if free.is_empty() {
            return Vec::new();
        }
        let (places, tickets): (Vec<_>, Vec<_>) = free.into_iter().unzip();
        let mut answers = timeout(publishing.options.publish_timeout, self.with.store.release(&tickets))
            .await
            .unwrap_or_default()
            .into_iter();
        places.into_iter().filter(|_| !matches!(answers.next(), Some(Ok(())))).collect()
    }
}

impl Fate {
    fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Gone => "released",
            Self::Forgotten => "forgotten",
            Self::Open => "open",
        }
    }
}

/// Publishes empty blocks and reads what their ids stand for. Once: whoever sends the row again asks again.
async fn ask(publishing: &Publishing, probes: &[Block]) -> Vec<Fate> {
    if probes.is_empty() {
        return Vec::new();
    }
    let Publishing { broker, options, .. } = publishing;
    let time = Times::of(&**broker, options.publish_timeout).call;
    let mut answers = timeout(time, broker.publish(probes)).await.unwrap_or_default().into_iter();
    let answers: Vec<_> = probes.iter().map(|probe| (probe, answers.next())).collect();
    join_all(answers.into_iter().map(async |(probe, answer)| match answer {
        Some(Ok(Receipt::Stored(_))) => Fate::Gone,
        Some(Ok(Receipt::Duplicate(at))) => {
            let rows = broker.stored_rows(&probe.tenant, &probe.table, probe.id, at);
            match timeout(options.publish_timeout, rows).await {
                Ok(Ok(Some(0))) => Fate::Gone,
                Ok(Ok(Some(_))) => Fate::Stored,
                Ok(Ok(None)) => Fate::Forgotten,
                Ok(Err(_)) | Err(_) => Fate::Open,
            }
        }
        Some(Err(_)) | None => Fate::Open,
    }))
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wh_types::Epoch;

    #[test]
    fn only_a_block_that_the_queue_still_knows_is_asked_for() {
        let seconds = Duration::from_secs;
        let at = Timestamp::from_millis(1_000_000);
        let origin = Origin { stream: 1, epoch: Epoch(7), block: BlockId([1; 16]), at, lease: seconds(30) };
        let under = Under { stream: 1, epoch: Epoch(7), block: BlockId([2; 16]), lease: seconds(30) };
        let cases = [
            (under, seconds(30), true),
            (under, seconds(90), true),
            (under, seconds(91), false),
            (Under { stream: 2, ..under }, seconds(30), false),
            (Under { epoch: Epoch(8), ..under }, seconds(30), false),
        ];
        for (under, after, expected) in cases {
            assert_eq!(askable(&origin, &under, seconds(60), at + after), expected, "{under:?} {after:?}");
        }
    }
}
