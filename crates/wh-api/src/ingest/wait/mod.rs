//! `?wait=committed`: an answer that waits until its rows are in ClickHouse or in the dead letters, for a bounded time
//! (decision D22). The rows are durable before; nothing here changes that.

mod asked;
#[cfg(test)]
mod tests;
mod verdicts;

pub(crate) use asked::asked;
pub(crate) use verdicts::{Verdict, Verdicts};

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use wh_mq::{Broker, DeadLetterCursor, DeadLetterId, DeadLetterQuery, Progress, Reader};
use wh_types::{Clock, RowCursor, Stop, Table, Tenant};

/// Requests that wait at once; one more is answered with what is known already.
const MOST: usize = 1_000;
/// Requests of so many records may wait without a share of the budgets of bodies.
pub(crate) const FEW: u32 = 1_000;
/// Without a mark for so long, the queue itself is asked how far the table is: its worker may be gone, or was not heard.
const ASK: Duration = Duration::from_secs(1);
/// Rows that are looked for in the dead letters, where no mark names what was parked; the others stay `accepted`.
const LOOKED_FOR: usize = 10_000;
/// Of these at once.
const PAGE: usize = 1_000;
/// How long looking for them may go on beyond the wait.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// Some consecutive rows of one block: the first one, and how many.
pub(crate) type Stretch = (RowCursor, u32);

/// Who may wait.
#[derive(Debug)]
pub(crate) struct Waits(Semaphore);

impl Default for Waits {
    fn default() -> Self {
        Self(Semaphore::new(MOST))
    }
}

/// What waiting needs.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    pub(crate) broker: &'a Arc<dyn Broker>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) stop: &'a Stop,
    pub(crate) tenant: &'a Tenant,
    pub(crate) table: &'a Table,
}

impl Waiting<'_> {
    /// Waits until each row is committed or parked, and says so of those that are; at most for so long. Dropping it ends
    /// the wait.
    pub(crate) async fn until_committed(&self, waits: &Waits, rows: &[Stretch], within: Duration) -> Verdicts {
        let Some(last) = rows.iter().map(|(row, _)| row.block).max() else { return Verdicts::default() };
        let marks = self.broker.marks();
        let Ok(mut reader) = marks.watch(self.tenant, self.table) else { return Verdicts::default() };
        if let Ok(_waits) = waits.0.try_acquire() {
            let (mut deadline, mut stopped) = (pin!(tokio::time::sleep(within)), pin!(self.stop.wait()));
            let mut asks = pin!(self.ask_now_and_then());
            loop {
                if reader.latest().is_some_and(|known| known.epoch == last.epoch && known.committed >= last.sequence) {
                    break;
                }
                tokio::select! {
                    biased;
                    known = reader.next() => if known.is_none() {
                        break;
                    },
                    () = &mut deadline => break,
                    () = &mut stopped => break,
                    () = &mut asks => {}
                }
            }
        }
        self.verdicts(&reader, rows).await
    }

    /// Readers of the table hear the answers.
    async fn ask_now_and_then(&self) {
        let marks = self.broker.marks();
        loop {
            tokio::time::sleep(ASK).await;
            if let Err(error) = marks.floor(self.tenant, self.table).await {
                tracing::debug!(table = %self.table, %error, "how far table {} is could not be asked", self.table);
            }
        }
    }

    async fn verdicts(&self, reader: &Reader, rows: &[Stretch]) -> Verdicts {
        let Some(known) = reader.latest() else { return Verdicts::default() };
        let mut verdicts = Verdicts::new(&known);
        let unnamed = unnamed(&known, rows);
        if unnamed.is_empty() {
            return verdicts;
        }
        let until = self.clock.now() + LOOK_WITHIN;
        for page in unnamed.chunks(PAGE) {
            let looked = tokio::time::timeout_at(until, self.look_for(page)).await;
            match looked {
                Ok(Some(parked)) => verdicts.looked_for(page, parked),
                // they may be committed or parked: nothing is said of them
                Ok(None) | Err(_) => break,
            }
        }
        verdicts
    }

    /// Which of these rows are in the dead letters, and why. `None`: it could not be found out.
    async fn look_for(&self, rows: &[RowCursor]) -> Option<BTreeMap<RowCursor, Box<str>>> {
        let ids = rows.iter().map(|row| DeadLetterId(*row)).collect();
        let mut query = DeadLetterQuery { ids: Some(ids), limit: PAGE, ..DeadLetterQuery::default() };
        let mut found = BTreeMap::new();
        loop {
            let page = self.broker.dead_letters(self.tenant, &query).await.ok()?;
            found.extend(page.letters.into_iter().map(|letter| (letter.id.0, letter.code.into_boxed_str())));
            match page.next {
                Some(next) if query.cursor != Some(next) => query.cursor = Some::<DeadLetterCursor>(next),
                Some(_) => return None,
                None => return Some(found),
            }
        }
    }
}

/// Rows that are done with, of which no mark says how: in order, as many as are looked for.
fn unnamed(known: &Progress, rows: &[Stretch]) -> Vec<RowCursor> {
    let of = rows.iter().filter(|(first, _)| {
        first.block.epoch == known.epoch
            && first.block.sequence <= known.committed
            && first.block.sequence <= known.named_after
    });
    of.flat_map(|(first, count)| (0..*count).map(|n| RowCursor { block: first.block, row: first.row + n }))
        .take(LOOKED_FOR)
        .collect()
}
