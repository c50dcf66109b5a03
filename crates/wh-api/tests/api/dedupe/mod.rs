//! Each event once, over HTTP: one or more processes over one queue and one store of ids, both in memory and told to fail.

mod faults;
mod idempotency;
mod on_disk;
mod once;
mod run;
mod twice;

use crate::rig::{Reply, Rig, Setup, post};
use std::{sync::Arc, time::Duration};
use wh_api::{ApiOptions, DedupeRules, DedupeStore, IdRule, OnOutage, TenantLimits};
use wh_dedupe::{
    Retention,
    sim::{Link, Options, Shared},
};
use wh_mq::{Allowance, sim};
use wh_types::{Clock, Epoch, SeededEntropy, SimClock, Timestamp};

const LEASE: Duration = Duration::from_secs(30);
const HALF_WINDOW: Duration = Duration::from_secs(60);

/// A queue and a store that outlive the processes over them.
#[derive(Clone)]
struct World {
    clock: Arc<dyn Clock>,
    queue: sim::Broker,
    store: Shared,
    on_outage: OnOutage,
    rule: IdRule,
    lease: Duration,
    /// Most time for a publish attempt, and for a call of the store.
    patience: Duration,
}

/// One process.
struct Process {
    rig: Rig,
    /// Its way to the store.
    link: Link,
}

impl World {
    fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new(Timestamp::from_millis(1_800_000_000_000)));
        let queue = sim::Broker::new(sim::Options {
            epoch: Epoch(0xe),
            shards: 1,
            ack_wait: Duration::from_secs(3_600),
            duplicate_window: HALF_WINDOW * 2,
            default_allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::from_secs(600) },
            dead_letter_share: 10,
            clock: Arc::clone(&clock),
        });
        let rule = IdRule { column: "id".into(), required: false, retention: Retention::Forever };
        Self {
            clock,
            queue,
            store: Shared::new(),
            on_outage: OnOutage::Refuse,
            rule,
            lease: LEASE,
            patience: Duration::from_secs(5),
        }
    }

    fn process(&self, seed: u64) -> Process {
        let options = Options { clock: Arc::clone(&self.clock), entropy: Arc::new(SeededEntropy::new(seed)) };
        let joined = self.store.join(options);
        let link = joined.link();
        Process { rig: self.over(Arc::new(joined), Arc::new(self.queue.clone())), link }
    }

    fn over(&self, store: Arc<dyn wh_dedupe::Dedupe>, queue: Arc<dyn wh_mq::Broker>) -> Rig {
        let dedupe = DedupeStore {
            store,
            lease: self.lease,
            on_outage: self.on_outage,
            duplicate_window: HALF_WINDOW * 2,
            idempotency_window: Duration::from_secs(86_400),
        };
        let rules = DedupeRules { others: Some(self.rule.clone()), tables: [("a.b/c".to_owned(), None)].into() };
        Rig::with(Setup {
            clock: Arc::clone(&self.clock),
            queue: Some(queue),
            dedupe: Some(dedupe),
            limits: TenantLimits { dedupe: rules, ..TenantLimits::default() },
            options: ApiOptions {
                request_timeout: Duration::from_secs(400),
                publish_timeout: self.patience,
                ..ApiOptions::default()
            },
            ..Setup::default()
        })
    }
}

/// `total`, `accepted`, `duplicates`, `rejected`.
fn counts(reply: &Reply) -> [u64; 4] {
    let value = reply.value();
    ["total", "accepted", "duplicates", "rejected"].map(|name| value[name].as_u64().unwrap())
}

fn row(id: usize) -> String {
    format!("{{\"id\":{id}}}")
}

fn rows(ids: impl IntoIterator<Item = usize>) -> String {
    ids.into_iter().map(|id| row(id) + "\n").collect()
}

async fn lines(rig: &Rig, ids: impl IntoIterator<Item = usize>) -> Reply {
    rig.lines(rows(ids)).await
}

/// A request under a key.
async fn under(rig: &Rig, key: &str, body: &str) -> Reply {
    under_to(rig, "/v1/ingest?table=t", key, body).await
}

async fn under_to(rig: &Rig, path: &str, key: &str, body: &str) -> Reply {
    let mut request = post(path, "application/x-ndjson", body.to_owned());
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    rig.send(request).await
}
