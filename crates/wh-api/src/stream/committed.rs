//! `?events=committed`: how far the rows of a stream's tables are on their way into ClickHouse, from the progress marks
//! (decision D32). Knows nothing of the rows themselves.
//!
//! An event says that every row up to this block is in ClickHouse or parked. No later event takes it back. On a stream that
//! is behind it may come before the rows it speaks of.

use crate::{
    codes::{self, Code},
    error::ApiError,
};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};
use wh_mq::{Broker, Reader};
use wh_types::{Cursor, Table, Tenant};

/// Events of one table come no closer to each other; what is skipped is in the next one.
const PACE: Duration = Duration::from_millis(100);
/// Without a mark for so long the queue itself is asked, while rows are on their way: their worker may be gone.
const ASK: Duration = Duration::from_secs(1);
/// So often at least.
const ASK_AT_REST: Duration = Duration::from_secs(15);
/// Most time for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Events about the tables of one stream.
#[derive(Debug)]
pub(super) struct Committed(FuturesUnordered<BoxFuture<'static, Option<(Follow, Cursor)>>>);

impl Committed {
    /// Of these tables from now on; what is known already comes at once.
    pub(super) fn open<'a>(
        broker: &Arc<dyn Broker>,
        tenant: &Tenant,
        tables: impl IntoIterator<Item = &'a Table>,
    ) -> Result<Self, ApiError> {
        let follow = |table: &Table| {
            let reader = broker.marks().watch(tenant, table).map_err(|error| failed(&error))?;
            let (broker, tenant, table) = (Arc::clone(broker), tenant.clone(), table.clone());
            Ok(Follow { broker, tenant, table, reader, said: None }.next().boxed())
        };
        tables.into_iter().map(follow).collect::<Result<_, _>>().map(Self)
    }

    /// The next event. Never, once the queue closed: the stream is ended for that.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn next(&mut self) -> Bytes {
        loop {
            match self.0.next().await {
                Some(Some((follow, at))) => {
                    let event = event(&follow.table, at);
                    self.0.push(follow.next().boxed());
                    return event;
                }
                Some(None) => {}
                None => return pending().await,
            }
        }
    }
}

/// What is sent. Without an id: it is no place to go on from.
fn event(table: &Table, at: Cursor) -> Bytes {
    // a table's name may need escapes
    let table = serde_json::Value::from(table.as_str());
    format!("event: committed\ndata: {{\"table\":{table},\"committed\":\"{at}\"}}\n\n").into()
}

fn failed(error: &wh_mq::Error) -> ApiError {
    let code = Code::by_name(error.code()).unwrap_or(&codes::STREAM_UNAVAILABLE);
    ApiError::new(code, error.to_string())
}

/// One table.
#[derive(Debug)]
struct Follow {
    broker: Arc<dyn Broker>,
    tenant: Tenant,
    table: Table,
    reader: Reader,
    /// The last event.
    said: Option<Cursor>,
}

impl Follow {
    /// Waits until more is known than was said. `None`: no more will be.
    async fn next(mut self) -> Option<(Self, Cursor)> {
        if self.said.is_some() {
            sleep(PACE).await;
        }
        let mut wait = Duration::ZERO;
        loop {
            let known = self.reader.latest();
            if let Some(known) = &known {
                let at = Cursor { epoch: known.epoch, sequence: known.committed };
                if self.said != Some(at) {
                    self.said = Some(at);
                    return Some((self, at));
                }
            }
            let rests = known.is_some_and(|known| known.inserting == known.committed);
            match timeout(if rests { ASK_AT_REST } else { wait }, self.reader.next()).await {
                Ok(news) => drop(news?),
                Err(_) => self.ask().await,
            }
            wait = (wait * 2).clamp(ASK, ASK_AT_REST);
        }
    }

    /// The reader hears the answer.
    async fn ask(&self) {
        let marks = self.broker.marks();
        let floor = marks.floor(&self.tenant, &self.table);
        let table = &self.table;
        match timeout(PATIENCE, floor).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%table, %error, "how far table {table} is could not be asked"),
            Err(_) => tracing::debug!(%table, "how far table {table} is was not answered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_mq::{Allowance, Progress, sim};
    use wh_types::{Clock, Epoch, SystemClock};

    fn broker() -> Arc<dyn Broker> {
        Arc::new(sim::Broker::new(sim::Options {
            epoch: Epoch(7),
            shards: 1,
            ack_wait: Duration::from_secs(60),
            duplicate_window: Duration::from_secs(120),
            default_allowance: Allowance { bytes: 1 << 20, table_bytes: 1 << 20, history: Duration::from_secs(60) },
            dead_letter_share: 10,
            clock: Arc::new(SystemClock),
        }))
    }

    async fn mark(broker: &Arc<dyn Broker>, table: &str, number: u64, committed: u64, inserting: u64) {
        let mark = Progress {
            tenant: Tenant::default(),
            table: Table::new(table).unwrap(),
            epoch: Epoch(7),
            committed,
            inserting,
            parked: Vec::new(),
            named_after: 0,
            owner: 1,
            number,
        };
        broker.marks().announce(&[mark]).await.unwrap();
    }

    fn said(table: &str, at: u64) -> String {
        format!("event: committed\ndata: {{\"table\":\"{table}\",\"committed\":\"00000007-{at}\"}}\n\n")
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_comes_at_once_and_then_what_becomes_known() {
        let broker = broker();
        let tables = ["a", "b"].map(|name| Table::new(name).unwrap());
        mark(&broker, "a", 1, 4, 9).await;
        let mut committed = Committed::open(&broker, &Tenant::default(), &tables).unwrap();
        // nobody ever said anything of b: the queue is asked
        let mut first = [committed.next().await, committed.next().await];
        first.sort();
        assert_eq!(first, [said("a", 4), said("b", 0)]);
        mark(&broker, "a", 2, 4, 12).await;
        mark(&broker, "a", 3, 6, 12).await;
        mark(&broker, "a", 4, 9, 12).await;
        assert_eq!(committed.next().await, said("a", 9), "what is new at once is one event");
        mark(&broker, "c", 1, 5, 5).await;
        mark(&broker, "b", 1, 5, 5).await;
        assert_eq!(committed.next().await, said("b", 5));
        broker.close().await;
        assert!(timeout(Duration::from_secs(3_600), committed.next()).await.is_err(), "a closed queue says nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_a_table_keep_their_distance() {
        let broker = broker();
        let table = Table::new("t").unwrap();
        mark(&broker, "t", 1, 1, 1).await;
        let mut committed = Committed::open(&broker, &Tenant::default(), [&table]).unwrap();
        assert_eq!(committed.next().await, said("t", 1));
        let began = SystemClock.now();
        for n in 2..=10 {
            mark(&broker, "t", n, n, n).await;
            assert_eq!(committed.next().await, said("t", n));
        }
        assert_eq!(began.elapsed(), 9 * PACE);
    }
}
