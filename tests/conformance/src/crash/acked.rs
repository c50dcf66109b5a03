//! What a queue answered before it was killed, and whether it keeps its word afterwards.

use super::Keeps;
use crate::stage::{QUIET, WIDE};
use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    time::Duration,
};
use wh_mq::{Broker, DeadLetter, DeadLetterId, DeadLetterQuery, From, Happening, Verdict};
use wh_types::{Block, BlockId, Clock as _, Cursor, Encoding, RowCursor, SystemClock, Table, Tenant, Timestamp};

/// How long blocks that the queue counts are waited for.
const PATIENCE: Duration = Duration::from_secs(90);

/// One answer of the queue, as a line of text between two processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A block is stored.
    Stored(BlockId, Cursor),
    /// A delivery is about to be settled. Told before: a kill may come after the queue has it on the disk and before
    /// anybody hears of it.
    Settling(BlockId),
    /// A delivery was settled.
    Settled(BlockId),
    /// A row was parked.
    Parked(DeadLetterId),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stored(id, cursor) => write!(f, "S {id} {cursor}"),
            Self::Settling(id) => write!(f, "B {id}"),
            Self::Settled(id) => write!(f, "A {id}"),
            Self::Parked(id) => write!(f, "L {id}"),
        }
    }
}

impl FromStr for Answer {
    type Err = anyhow::Error;
    fn from_str(line: &str) -> anyhow::Result<Self> {
        let id = |text: &str| BlockId::parse(text).with_context(|| format!("no id: {text}"));
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["S", block, cursor] => Ok(Self::Stored(id(block)?, cursor.parse()?)),
            ["B", block] => Ok(Self::Settling(id(block)?)),
            ["A", block] => Ok(Self::Settled(id(block)?)),
            ["L", letter] => Ok(Self::Parked(DeadLetterId(letter.parse::<RowCursor>()?))),
            _ => bail!("no answer: {line:?}"),
        }
    }
}

/// A block that its id describes: table, place among the table's blocks, content.
pub(super) fn block(round: u64, table: u32, n: u32) -> Block {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&table.to_be_bytes());
    id[4..8].copy_from_slice(&u32::try_from(round).unwrap_or(u32::MAX).to_be_bytes());
    id[8..12].copy_from_slice(&n.to_be_bytes());
    from_id(BlockId(id))
}

fn from_id(id: BlockId) -> Block {
    let mix = id.0.iter().fold(7_u32, |mix, byte| mix.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    let rows = 1 + mix % 50;
    let bytes = (0..rows * (1 + mix % 37)).map(|n| id.0[n as usize % 16] ^ n.to_le_bytes()[0]);
    let body: Vec<u8> = bytes.collect();
    Block {
        id,
        tenant: Tenant::default(),
        table: crate::stage::table(&format!("table {}", id.0[3])),
        received: Timestamp::from_nanos(i64::from(mix)),
        rows,
        decoded_bytes: rows * 100,
        encoding: Encoding::Zstd,
        body: Bytes::from(body),
        chain: None,
        trace: None,
    }
}

/// A letter that its id describes.
pub(super) fn letter(table: &Table, id: DeadLetterId) -> DeadLetter {
    DeadLetter {
        id,
        tenant: Tenant::default(),
        table: table.clone(),
        body: Bytes::from(format!("{{\"row\":\"{id}\"}}")),
        reason: format!("why {id}"),
        code: "117".into(),
        column: None,
        attempted: Timestamp::from_nanos(1),
        received: Timestamp::from_nanos(2),
        retry_until: None,
    }
}

/// Every answer of all rounds.
#[derive(Debug, Default)]
pub(super) struct Acked {
    stored: BTreeMap<BlockId, Cursor>,
    /// Their settling was begun; how it ended was not heard.
    settling: BTreeSet<BlockId>,
    settled: BTreeSet<BlockId>,
    parked: BTreeSet<DeadLetterId>,
}

impl Acked {
    pub(super) fn note(&mut self, answer: &Answer) {
        match answer {
            Answer::Stored(id, cursor) => drop(self.stored.insert(*id, *cursor)),
            Answer::Settling(id) => drop(self.settling.insert(*id)),
            Answer::Settled(id) => {
                self.settling.remove(id);
                self.settled.insert(*id);
            }
            Answer::Parked(id) => drop(self.parked.insert(*id)),
        }
    }

    pub(super) fn stored(&self) -> usize {
        self.stored.len()
    }

    /// Whether the queue has everything it answered for. Settles some of what is delivered.
    pub(super) async fn check(&mut self, broker: &dyn Broker, keeps: Keeps) -> anyhow::Result<()> {
        for (id, cursor) in self.stored.iter().filter(|_| keeps == Keeps::Everything) {
            let block = from_id(*id);
            let rows = broker.stored_rows(&block.tenant, &block.table, *id, *cursor).await?;
            ensure!(rows == Some(block.rows), "block {id}: {rows:?} rows are known, {} were stored", block.rows);
        }
        self.check_delivery(broker).await?;
        if keeps == Keeps::Everything {
            self.check_history(broker).await?;
        }
        self.check_letters(broker).await
    }

    async fn check_delivery(&mut self, broker: &dyn Broker) -> anyhow::Result<()> {
        let mut delivered = BTreeMap::new();
        let mut last: BTreeMap<Table, BlockId> = BTreeMap::new();
        let mut settled = Vec::new();
        let unsettled: u64 = broker.status().await?.tenants.values().map(|tenant| tenant.unsettled_blocks).sum();
        let mut feeds = Vec::new();
        for unit in broker.units() {
            feeds.push(broker.feed(unit, WIDE).await?);
        }
        let begun = SystemClock.now();
        loop {
            let before = delivered.len();
            for feed in &mut feeds {
                let by = feed.settle();
                while let Ok(next) = tokio::time::timeout(QUIET, feed.next()).await {
                    let delivery = next?.context("the feed ended")?;
                    let block = &delivery.block;
                    ensure!(*block == from_id(block.id), "{block:?} came back changed");
                    let before = last.insert(block.table.clone(), block.id);
                    ensure!(before.is_none_or(|before| before < block.id), "{:?} is out of order", block.id);
                    ensure!(delivered.insert(block.id, delivery.cursor).is_none(), "{:?} came twice", block.id);
                    if delivered.len() % 3 == 0 {
                        for outcome in by.settle(&[delivery.token], Verdict::Ack).await {
                            outcome?;
                        }
                        settled.push(block.id);
                    }
                }
            }
            // quiet may also be a busy machine: what the queue itself counts is waited for
            let late = SystemClock.now().duration_since(begun) > PATIENCE;
            if delivered.len() == before && (delivered.len() as u64 >= unsettled || late) {
                break;
            }
        }
        for feed in feeds {
            feed.release().await?;
        }
        for (id, cursor) in &self.stored {
            match delivered.get(id) {
                Some(at) => ensure!(at == cursor, "{id} stood at {cursor} and stands at {at}"),
                None => {
                    let settled = self.settled.contains(id) || self.settling.contains(id);
                    ensure!(settled, "{id} at {cursor} was stored, not settled, and is lost");
                }
            }
        }
        // what was not heard of is known now: it came back, or it never may again
        let settling = std::mem::take(&mut self.settling).into_iter();
        self.settled.extend(settling.filter(|id| !delivered.contains_key(id)));
        self.settled.extend(settled);
        Ok(())
    }

    async fn check_history(&self, broker: &dyn Broker) -> anyhow::Result<()> {
        let Some(epoch) = self.stored.values().next().map(|cursor| cursor.epoch) else { return Ok(()) };
        let tables: BTreeSet<Table> = self.stored.keys().map(|id| from_id(*id).table).collect();
        let mut shown = BTreeMap::new();
        for table in tables {
            let from = From::After(Cursor { epoch, sequence: 0 });
            let mut history = broker.history(&Tenant::default(), &table, from).await?;
            loop {
                match history.next().await?.context("the history ended")? {
                    Happening::Block(cursor, block) => {
                        ensure!(block == from_id(block.id), "{block:?} is shown changed");
                        ensure!(shown.insert(block.id, cursor).is_none(), "{block:?} is shown twice");
                    }
                    Happening::Live => break,
                    Happening::Gap(gap) => bail!("{gap:?} in the history of {table}"),
                }
            }
        }
        for (id, cursor) in &self.stored {
            ensure!(shown.get(id) == Some(cursor), "{id} at {cursor} is not in the history");
        }
        Ok(())
    }

    async fn check_letters(&self, broker: &dyn Broker) -> anyhow::Result<()> {
        let mut query = DeadLetterQuery { limit: 500, ..DeadLetterQuery::default() };
        let mut found = BTreeSet::new();
        loop {
            let page = broker.dead_letters(&Tenant::default(), &query).await?;
            query.cursor = page.next;
            for came in page.letters {
                ensure!(came == letter(&came.table, came.id), "{came:?} came back changed");
                ensure!(found.insert(came.id), "{} is listed twice", came.id);
            }
            if query.cursor.is_none() {
                break;
            }
        }
        let lost: Vec<_> = self.parked.difference(&found).collect();
        ensure!(lost.is_empty(), "{lost:?} were parked and are lost");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wh_mq::{Allowance, Receipt, sim};
    use wh_types::Epoch;

    /// A queue of three blocks of which one is settled, and what was heard of it.
    async fn heard(answers: impl Fn(BlockId) -> Vec<Answer>) -> anyhow::Result<()> {
        let history = Duration::from_secs(60);
        let broker = sim::Broker::new(sim::Options {
            epoch: Epoch(1),
            shards: 1,
            ack_wait: history,
            duplicate_window: history,
            default_allowance: Allowance { bytes: 1 << 20, table_bytes: 1 << 20, history },
            dead_letter_share: 10,
            clock: Arc::new(SystemClock),
        });
        let mut acked = Acked::default();
        for n in 0..3 {
            let block = block(0, 1, n);
            let Receipt::Stored(cursor) = broker.publish(std::slice::from_ref(&block)).await.remove(0)? else {
                bail!("a duplicate")
            };
            acked.note(&Answer::Stored(block.id, cursor));
        }
        let unit = broker.unit_of(&Tenant::default(), &block(0, 1, 0).table);
        let mut feed = broker.feed(unit, WIDE).await?;
        let delivery = feed.next().await?.context("the feed ended")?;
        feed.settle().settle(&[delivery.token], Verdict::Ack).await.remove(0)?;
        feed.release().await?;
        answers(delivery.block.id).iter().for_each(|answer| acked.note(answer));
        acked.check(&broker, Keeps::Nothing).await?;
        // whichever way it ended, it is known from now on
        ensure!(acked.settling.is_empty() && acked.settled.contains(&delivery.block.id));
        Ok(())
    }

    #[tokio::test]
    async fn a_settle_in_flight_at_the_kill_is_no_loss_and_silence_is() {
        heard(|id| vec![Answer::Settling(id), Answer::Settled(id)]).await.unwrap();
        heard(|id| vec![Answer::Settling(id)]).await.unwrap();
        let lost = heard(|_| Vec::new()).await.unwrap_err().to_string();
        assert!(lost.ends_with("was stored, not settled, and is lost"), "{lost}");
    }
}
