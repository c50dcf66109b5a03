//! Tables that change while rows flow: good rows are stored, rows that name what is gone are held, none gets a default.

use crate::rig::{Rig, WITHIN, plain, quick, rows};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use wh_testkit::{
    fault::{Action, Rule},
    until,
};
use wh_types::{Stop, Tasks};

/// 5,000 rows a second into one table, in blocks of 250, until it is told to stop.
struct Flow {
    next: Arc<AtomicU64>,
    stop: Stop,
    tasks: Tasks,
}

impl Flow {
    fn start(rig: &Arc<Rig>, into: &'static str, more: fn(u64) -> String) -> Self {
        let (next, stop, tasks) = (Arc::new(AtomicU64::new(0)), Stop::new(), Tasks::new());
        let (rig, ids, stopped) = (rig.clone(), next.clone(), stop.clone());
        drop(tasks.spawn("flow", async move {
            let mut beat = tokio::time::interval(Duration::from_millis(50));
            while !stopped.given() {
                beat.tick().await;
                let from = ids.load(Ordering::Relaxed);
                rig.publish(into, &rows(from..from + 250, more)).await;
                ids.store(from + 250, Ordering::Relaxed);
            }
        }));
        Self { next, stop, tasks }
    }

    /// Waits until some more rows were published; gives how many there are in all.
    async fn more(&self) -> u64 {
        let from = self.next.load(Ordering::Relaxed);
        until(WITHIN, "rows to flow", || async {
            let now = self.next.load(Ordering::Relaxed);
            if now >= from + 2_500 { Ok(now) } else { Err(anyhow::anyhow!("{now}")) }
        })
        .await
        .unwrap()
    }

    async fn end(self) -> u64 {
        self.stop.give();
        self.tasks.wait().await;
        self.next.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn columns_come_go_widen_and_are_renamed_under_five_thousand_rows_a_second() {
    let rig = Rig::new(
        quick(),
        &["CREATE TABLE t (id UInt64, n UInt32, other String DEFAULT 'o', spare UInt8) ENGINE = MergeTree ORDER BY id"],
    )
    .await;
    let rig = Arc::new(rig);
    let flow = Flow::start(&rig, "t", |id| format!(",\"n\":{}", id % 1_000));
    for sql in [
        "ALTER TABLE t ADD COLUMN x DateTime64(3) AFTER id",
        "ALTER TABLE t MODIFY COLUMN n UInt64",
        "ALTER TABLE t RENAME COLUMN other TO renamed",
        "ALTER TABLE t DROP COLUMN spare",
        "ALTER TABLE t ADD COLUMN e String EPHEMERAL, ADD COLUMN l UInt64 DEFAULT length(e)",
        "ALTER TABLE t MODIFY COLUMN n Int64 DEFAULT 3",
        "ALTER TABLE t DROP COLUMN x",
    ] {
        flow.more().await;
        rig.alter(sql).await;
    }
    flow.more().await;
    let all = flow.end().await;
    rig.settled().await;
    assert!(rig.letters().await.is_empty(), "{:?}", rig.letters().await.first());
    assert_eq!(
        rig.sql("SELECT count(), uniqExact(id), countIf(n = id % 1000), countIf(renamed = 'o') FROM t").await,
        { format!("{all}\t{all}\t{all}\t{all}") }
    );
    Arc::into_inner(rig).unwrap().stop().await;
}

#[tokio::test]
async fn rows_of_a_column_that_was_dropped_are_held_and_never_get_its_default() {
    let rig = Rig::new(
        quick(),
        &["CREATE TABLE t (id UInt64, b String DEFAULT 'default', named UInt8) ENGINE = MergeTree ORDER BY id"],
    )
    .await;
    let rig = Arc::new(rig);
    // every tenth row names the column, and says so
    let more = |id: u64| if id.is_multiple_of(10) { format!(",\"named\":1,\"b\":\"b{id}\"") } else { String::new() };
    let flow = Flow::start(&rig, "t", more);
    flow.more().await;
    rig.alter("ALTER TABLE t DROP COLUMN b").await;
    let dropped = flow.more().await;
    let again = flow.more().await;
    let all = flow.end().await;
    rig.settled().await;
    let letters = rig.letters().await;
    let bodies: BTreeSet<&[u8]> = letters.iter().map(|letter| &letter.body[..]).collect();
    for letter in &letters {
        assert_eq!((letter.column.as_deref(), letter.retry_until.is_some()), (Some("b"), true), "{letter:?}");
        assert!(letter.reason.starts_with("held: the column \"b\" is not in the table"), "{}", letter.reason);
    }
    // published wholly after the drop: each row that names the column is held, with its own text
    for id in (dropped..again).filter(|id| id.is_multiple_of(10)) {
        let row = &rows(id..id + 1, more)[0];
        assert!(bodies.contains(row.as_bytes()), "{row}");
    }
    let stored = rig.number("SELECT count() FROM t").await;
    assert_eq!(stored + letters.len() as u64, all, "every row is in one place");
    assert_eq!(rig.number("SELECT countIf(id % 10 != 0) FROM t").await, all - all / 10, "no other row is parked");
    assert_eq!(rig.number(&format!("SELECT countIf(named = 1 AND id >= {dropped}) FROM t")).await, 0);
    Arc::into_inner(rig).unwrap().stop().await;
}

#[tokio::test]
async fn a_rename_under_queued_rows_holds_them_instead_of_blanking_them() {
    let rig = Rig::idle(quick()).await;
    rig.sql("CREATE TABLE t (id UInt64, b String) ENGINE = MergeTree ORDER BY id").await;
    rig.publish("t", &rows(0..1_000, |id| format!(",\"b\":\"b{id}\""))).await;
    rig.sql("ALTER TABLE t RENAME COLUMN b TO c").await;
    rig.work();
    rig.settled().await;
    assert_eq!(rig.number("SELECT count() FROM t").await, 0);
    let letters = rig.letters().await;
    assert_eq!(letters.len(), 1_000);
    assert!(letters.iter().all(|l| l.column.as_deref() == Some("b") && l.retry_until.is_some()));
    rig.stop().await;
}

#[tokio::test]
async fn one_row_of_a_vanished_column_is_held_and_its_batch_is_stored_in_one_piece() {
    let rig = Rig::idle(quick()).await;
    rig.sql("CREATE TABLE t (id UInt64, b String) ENGINE = MergeTree ORDER BY id").await;
    rig.publish("t", &rows(0..500, |id| if id == 77 { ",\"b\":\"x\"".into() } else { String::new() })).await;
    rig.sql("ALTER TABLE t DROP COLUMN b").await;
    rig.work();
    rig.settled().await;
    assert_eq!(rig.sql("SELECT count(), uniqExact(id) FROM t").await, "499\t499");
    assert_eq!(rig.letters().await.len(), 1);
    assert!(rig.inserts() <= 3, "{} requests: tried, tried with a new schema, the good rows", rig.inserts());
    rig.publish("t", &plain(500..600)).await;
    rig.settled().await;
    assert_eq!(rig.number("SELECT count() FROM t").await, 599);
    rig.stop().await;
}

#[tokio::test]
async fn a_table_that_is_dropped_and_made_again_gets_every_row_that_came_meanwhile() {
    const TABLE: &str = "CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id";
    let rig =
        Arc::new(Rig::new(quick(), &[TABLE, "CREATE TABLE other (id UInt64) ENGINE = MergeTree ORDER BY id"]).await);
    let (flow, other) = (Flow::start(&rig, "t", |_| String::new()), Flow::start(&rig, "other", |_| String::new()));
    flow.more().await;
    let mut kept = 0;
    for _ in 0..3 {
        rig.sql("DROP TABLE t SYNC").await;
        // what is published from here on has no other table to go to
        kept = flow.next.load(Ordering::Relaxed) + 250;
        flow.more().await;
        let before = rig.number("SELECT count() FROM other").await;
        until(WITHIN, "the other table to go on", || async {
            let rows = rig.number("SELECT count() FROM other").await;
            if rows >= before + 2_000 { Ok(()) } else { Err(anyhow::anyhow!("{rows}")) }
        })
        .await
        .unwrap();
        rig.sql(TABLE).await;
        flow.more().await;
    }
    rig.sql("CREATE TABLE fresh (id UInt64) ENGINE = MergeTree ORDER BY id").await;
    rig.sql("EXCHANGE TABLES t AND fresh").await;
    flow.more().await;
    let (all, others) = (flow.end().await, other.end().await);
    rig.settled().await;
    assert!(rig.letters().await.is_empty(), "{:?}", rig.letters().await.first());
    let both = format!(
        "SELECT count(), uniqExact(id) FROM (SELECT id FROM t UNION ALL SELECT id FROM fresh) WHERE id >= {kept}"
    );
    assert_eq!(rig.sql(&both).await, format!("{0}\t{0}", all - kept));
    assert_eq!(rig.sql("SELECT count(), uniqExact(id) FROM other").await, format!("{others}\t{others}"));
    Arc::into_inner(rig).unwrap().stop().await;
}

#[tokio::test]
async fn a_table_that_stays_away_has_its_rows_parked_when_their_time_is_over() {
    let options = wh_ingest::Options { missing_table_hold: Duration::from_secs(2), ..quick() };
    let rig = Rig::new(options, &[]).await;
    rig.publish("never", &plain(0..1_000)).await;
    rig.settled().await;
    let letters = rig.letters().await;
    assert_eq!(letters.len(), 1_000);
    assert!(letters.iter().all(|letter| letter.code == "60" && letter.retry_until.is_none()), "{:?}", letters[0]);
    rig.stop().await;
}

#[tokio::test]
async fn a_column_of_another_type_refuses_only_what_it_cannot_take() {
    let rig = Rig::idle(quick()).await;
    rig.sql("CREATE TABLE t (id UInt64, v String) ENGINE = MergeTree ORDER BY id").await;
    rig.publish("t", &rows(0..100, |id| if id == 50 { ",\"v\":\"hello\"".into() } else { ",\"v\":\"100\"".into() }))
        .await;
    rig.sql("ALTER TABLE t MODIFY COLUMN v Int64").await;
    rig.work();
    rig.settled().await;
    assert_eq!(rig.sql("SELECT count(), sum(v) FROM t").await, "99\t9900");
    let letters = rig.letters().await;
    assert_eq!((letters.len(), letters[0].id.0.row, letters[0].retry_until), (1, 50, None));
    rig.stop().await;
}

/// As far as one node can be two replicas: who refuses a column that the schema has is a replica which did not apply the
/// change yet, and the next one that is asked has it.
#[tokio::test]
async fn a_replica_that_is_late_with_a_column_costs_no_row() {
    let rig = Rig::new(quick(), &["CREATE TABLE t (id UInt64, x UInt8) ENGINE = MergeTree ORDER BY id"]).await;
    let late = |name: &str, code| Action::Error { code, name: name.into(), status: 404, message: "x".into() };
    for (n, (name, code)) in
        [("NO_SUCH_COLUMN_IN_TABLE", 16), ("UNKNOWN_IDENTIFIER", 47), ("INCORRECT_DATA", 117)].into_iter().enumerate()
    {
        let rule = rig.proxy.add(Rule::insert(late(name, code)).times(1));
        let first = n as u64 * 500;
        rig.publish("t", &rows(first..first + 500, |_| ",\"x\":1".into())).await;
        rig.settled().await;
        assert_eq!(rig.proxy.fired(rule), 1);
    }
    assert_eq!(rig.sql("SELECT count(), uniqExact(id), sum(x) FROM t").await, "1500\t1500\t1500");
    assert!(rig.letters().await.is_empty());
    rig.stop().await;
}
