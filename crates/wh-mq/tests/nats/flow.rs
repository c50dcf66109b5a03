//! Blocks on their way: what tests publish, take, settle and count.

use anyhow::{Context as _, Result, ensure};
use futures::FutureExt as _;
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};
use tokio::time::Instant;
use wh_mq::{AckToken, Budget, Delivery, Feed, Settle, Verdict};
use wh_types::{Block, BlockId};

/// A budget nothing reaches.
pub(crate) const WIDE: Budget = Budget { rows: 1_000_000, bytes: 1 << 30 };
/// How long anything may take that must come, an election and an `ack_wait` of a minute included.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

#[expect(clippy::disallowed_methods, reason = "a test measures how long it took")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// So many deliveries, which must come.
pub(crate) async fn take(feed: &mut dyn Feed, count: usize) -> Result<Vec<Delivery>> {
    let mut all = Vec::with_capacity(count);
    for n in 0..count {
        let next = tokio::time::timeout(PATIENCE, feed.next()).await;
        let next = next.with_context(|| format!("nothing came after {n} of {count}"))?;
        all.push(next?.with_context(|| format!("it ended after {n} of {count}"))?);
    }
    Ok(all)
}

/// Settles deliveries, each of which must go well.
pub(crate) async fn settle(by: &dyn Settle, deliveries: &[Delivery], verdict: Verdict) -> Result<()> {
    let tokens: Vec<AckToken> = deliveries.iter().map(|delivery| delivery.token).collect();
    let outcomes = by.settle(&tokens, verdict).await;
    ensure!(outcomes.len() == tokens.len(), "{} outcomes for {} tokens", outcomes.len(), tokens.len());
    outcomes.into_iter().try_for_each(|outcome| outcome.map_err(anyhow::Error::from))
}

/// What came.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Blocks by the order in which each came first.
    order: Vec<BlockId>,
    /// How often each stored copy of a block came, by its sequence.
    times: HashMap<BlockId, BTreeMap<u64, u32>>,
    /// Settles that failed: their blocks may come again.
    pub(crate) unsettled: usize,
}

impl Seen {
    pub(crate) fn note(&mut self, delivery: &Delivery) {
        let times = self.times.entry(delivery.block.id).or_default();
        if times.is_empty() {
            self.order.push(delivery.block.id);
        }
        *times.entry(delivery.cursor.sequence).or_default() += 1;
    }

    pub(crate) fn distinct(&self) -> usize {
        self.order.len()
    }

    /// Deliveries beyond the first of each stored block.
    pub(crate) fn twice(&self) -> u32 {
        self.times.values().flat_map(BTreeMap::values).map(|times| times - 1).sum()
    }

    /// Blocks that the stream stored more than once.
    pub(crate) fn stored_twice(&self) -> usize {
        self.times.values().map(|times| times.len() - 1).sum()
    }

    /// Takes blocks until so many different ones have come, and acks them, so many at once at most.
    pub(crate) async fn take(&mut self, feed: &mut dyn Feed, distinct: usize, batch: usize) -> Result<()> {
        let by = feed.settle();
        let mut taken: Vec<Delivery> = Vec::new();
        while self.distinct() < distinct || !taken.is_empty() {
            let next = if taken.is_empty() {
                let next = tokio::time::timeout(PATIENCE, feed.next()).await;
                Some(next.with_context(|| format!("nothing came after {} of {distinct}", self.distinct()))??)
            } else if self.distinct() < distinct && taken.len() < batch {
                feed.next().now_or_never().transpose()?
            } else {
                None
            };
            match next {
                Some(delivery) => {
                    let delivery = delivery.with_context(|| format!("it ended after {}", self.distinct()))?;
                    self.note(&delivery);
                    taken.push(delivery);
                }
                None => {
                    let tokens: Vec<AckToken> = taken.drain(..).map(|delivery| delivery.token).collect();
                    let outcomes = by.settle(&tokens, Verdict::Ack).await;
                    self.unsettled += outcomes.iter().filter(|outcome| outcome.is_err()).count();
                }
            }
        }
        Ok(())
    }

    /// Whether every block came, and those of each table first came in the order given.
    pub(crate) fn in_order(&self, blocks: &[Block]) -> Result<()> {
        let at: HashMap<BlockId, usize> = blocks.iter().enumerate().map(|(n, block)| (block.id, n)).collect();
        let mut last: HashMap<&str, usize> = HashMap::new();
        for id in &self.order {
            let n = *at.get(id).context("a block that nobody published")?;
            let table = blocks[n].table.as_str();
            if let Some(before) = last.insert(table, n) {
                ensure!(before < n, "of table {table} block {n} came after {before}");
            }
        }
        self.all(blocks)
    }

    /// Whether every block came.
    pub(crate) fn all(&self, blocks: &[Block]) -> Result<()> {
        let missing = blocks.iter().filter(|block| !self.times.contains_key(&block.id)).count();
        ensure!(missing == 0, "{missing} of {} blocks did not come", blocks.len());
        Ok(())
    }
}
