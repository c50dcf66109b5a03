//! `?wait=committed`: what an answer says of rows that are committed, parked or not known yet, and what it never delays.

use crate::rig::{Reply, Rig, Setup, post};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use wh_api::{DedupeRules, DedupeStore, IdRule, OnOutage, TenantLimits};
use wh_dedupe::{
    Retention,
    sim::{Options, Shared},
};
use wh_mq::{Budget, Delivery, Feed, ParkedRow, Progress, Verdict};
use wh_testkit::until;
use wh_types::{RowCursor, SeededEntropy, SystemClock};

const WAIT: Duration = Duration::from_secs(60);

async fn ask(rig: &Rig, more: &str, body: &str) -> Reply {
    rig.send(post(&format!("/v1/ingest?table=t&wait=committed{more}"), "application/x-ndjson", body.to_owned())).await
}

/// Whoever inserts.
struct Worker {
    rig: Arc<Rig>,
    feed: Box<dyn Feed>,
    number: u64,
    parked: Vec<ParkedRow>,
}

impl Worker {
    async fn new(rig: &Arc<Rig>) -> Self {
        let unit = rig.broker.units()[0];
        let feed = rig.broker.feed(unit, Budget { rows: 1 << 20, bytes: 1 << 30 }).await.unwrap();
        Self { rig: Arc::clone(rig), feed, number: 0, parked: Vec::new() }
    }

    async fn next(&mut self) -> Delivery {
        tokio::time::timeout(WAIT, self.feed.next()).await.unwrap().unwrap().unwrap()
    }

    /// It is inserted, but for these rows.
    async fn done(&mut self, delivery: &Delivery, parked: &[u32]) {
        let sequence = delivery.cursor.sequence;
        self.parked.extend(parked.iter().map(|row| ParkedRow { sequence, row: *row, code: "27".into() }));
        self.feed.settle().settle(&[delivery.token], Verdict::Ack).await.remove(0).unwrap();
        self.number += 1;
        let mark = Progress {
            tenant: delivery.block.tenant.clone(),
            table: delivery.block.table.clone(),
            epoch: delivery.cursor.epoch,
            committed: sequence,
            inserting: sequence,
            parked: self.parked.clone(),
            named_after: 0,
            owner: 1,
            number: self.number,
        };
        self.rig.broker.marks().announce(&[mark]).await.unwrap();
    }
}

fn place(entry: &Value) -> RowCursor {
    entry["cursor"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_answer_comes_when_the_rows_are_committed_and_says_which_are_not() {
    let rig = Arc::new(Rig::new());
    let mut worker = Worker::new(&rig).await;
    let body = "{\"id\":1}\n{\"id\":2}\n{\"nope\":3}\n{\"id\":4}\n";
    let works = async {
        let delivery = worker.next().await;
        worker.done(&delivery, &[1]).await;
        delivery.cursor
    };
    let (reply, block) = tokio::join!(ask(&rig, "&timeout=30s&results=all", body), works);
    assert_eq!(reply.status, 207, "{reply:?}");
    let value = reply.value();
    assert_eq!((&value["accepted"], &value["committed"], &value["parked"]), (&json!(3), &json!(2), &json!(1)));
    let expected = [
        (0, "committed".to_owned(), String::new()),
        (1, "parked".to_owned(), "27".to_owned()),
        (2, "rejected".to_owned(), "column.not_found".to_owned()),
        (3, "committed".to_owned(), String::new()),
    ];
    assert_eq!(reply.results(), expected);
    let places: Vec<RowCursor> = [0, 1, 3].map(|at| place(&value["results"][at])).to_vec();
    assert_eq!(places, [0, 1, 2].map(|row| RowCursor { block, row }));
    assert!(value.get("cursor").is_none());

    // without all results, what is committed is only counted
    let works = async {
        let delivery = worker.next().await;
        worker.done(&delivery, &[]).await;
    };
    let (reply, ()) = tokio::join!(ask(&rig, "", "{\"id\":5}"), works);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(
        reply.text(),
        r#"{"total":1,"accepted":1,"duplicates":0,"rejected":0,"committed":1,"parked":0,"results":[]}"#
    );
}

#[tokio::test]
async fn after_its_time_the_answer_is_202_with_the_cursor_and_the_rows_stay_queued() {
    let rig = Arc::new(Rig::new());
    let reply = ask(&rig, "&timeout=20ms", "{\"id\":1}\n{\"id\":2}\n").await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let value = reply.value();
    assert_eq!((&value["accepted"], &value["committed"], &value["parked"]), (&json!(2), &json!(0), &json!(0)));
    let accepted = |at| (at, "accepted".to_owned(), String::new());
    assert_eq!(reply.results(), [accepted(0), accepted(1)]);
    let last = place(&value);
    assert_eq!((last, last.row), (place(&value["results"][1]), 1));
    assert_eq!(rig.rows().await.len(), 2);
    // nothing durable, nothing to wait for
    let reply = ask(&rig, "&timeout=30s", "{\"nope\":1}").await;
    assert_eq!((reply.status.as_u16(), &reply.value()["committed"]), (400, &json!(0)));
}

#[tokio::test]
async fn rows_that_were_taken_out_as_duplicates_do_not_shift_the_places() {
    let options = Options { clock: Arc::new(SystemClock), entropy: Arc::new(SeededEntropy::new(1)) };
    let dedupe = DedupeStore {
        store: Arc::new(Shared::new().join(options)),
        lease: Duration::from_secs(60),
        on_outage: OnOutage::Refuse,
        duplicate_window: Duration::from_secs(120),
        idempotency_window: Duration::from_secs(600),
    };
    let rule = IdRule { column: "id".into(), required: false, retention: Retention::Forever };
    let rules = DedupeRules { others: Some(rule), ..DedupeRules::default() };
    let limits = TenantLimits { dedupe: rules, ..TenantLimits::default() };
    let rig = Arc::new(Rig::with(Setup { dedupe: Some(dedupe), limits, ..Setup::default() }));
    let mut worker = Worker::new(&rig).await;
    let works = async {
        let delivery = worker.next().await;
        assert_eq!(delivery.block.rows, 2);
        worker.done(&delivery, &[1]).await;
    };
    let body = "{\"id\":1}\n{\"id\":1}\n{\"id\":2}\n";
    let (reply, ()) = tokio::join!(ask(&rig, "&timeout=30s&results=all", body), works);
    let statuses: Vec<String> = reply.results().into_iter().map(|(_, status, _)| status).collect();
    assert_eq!(statuses, ["committed", "duplicate", "parked"], "{reply:?}");
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_wait_and_nothing_else() {
    let rig = Arc::new(Rig::new());
    let queued = until(WAIT, "the row to be queued", || async {
        let status = rig.broker.status().await?;
        let blocks: u64 = status.tenants.values().map(|held| held.unsettled_blocks).sum();
        anyhow::ensure!(blocks == 1, "{blocks} blocks");
        Ok::<_, anyhow::Error>(())
    });
    // dropped with its request while it waits
    tokio::select! {
        reply = ask(&rig, "&timeout=30s", "{\"id\":1}") => panic!("{reply:?}"),
        queued = queued => queued.map(drop).unwrap(),
    }
    assert_eq!(rig.rows().await, ["{\"id\":1}"]);
    // a stop ends it, too
    let stops = async { rig.stop.give() };
    let (reply, ()) = tokio::join!(ask(&rig, "&timeout=30s", "{\"id\":2}"), stops);
    assert!(matches!(reply.status.as_u16(), 202 | 503), "{reply:?}");
}

#[tokio::test]
async fn bad_values_are_refused_by_name_and_store_nothing() {
    let rig = Rig::new();
    for (query, named) in [
        ("wait=stored", "wait"),
        ("wait=", "wait"),
        ("wait=committed&timeout=31s", "timeout"),
        ("wait=committed&timeout=0s", "timeout"),
        ("wait=committed&timeout=5", "timeout"),
        ("timeout=5s", "timeout"),
        ("wait=committed&wait=committed", "wait"),
    ] {
        let reply =
            rig.send(post(&format!("/v1/ingest?table=t&{query}"), "application/json", "{\"id\":1}".to_owned())).await;
        assert_eq!(reply.outcome(), (400, Some("request.invalid".to_owned())), "{query}");
        assert!(reply.value()["error"].as_str().unwrap().contains(&format!("\"{named}\"")), "{query}: {reply:?}");
    }
    assert!(rig.rows().await.is_empty());
}
