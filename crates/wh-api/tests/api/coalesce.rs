//! Group commit and unknown outcomes, with time standing still where nobody waits.

use crate::rig::{Rig, Setup, get, rows_of};
use async_trait::async_trait;
use futures::FutureExt;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use wh_api::ApiOptions;
use wh_mq::{
    Allowance, Broker, BrokerStatus, Budget, DeadLetter, DeadLetterId, DeadLetterPage, DeadLetterQuery, Error, Feed,
    From, History, Kind, Receipt, Result, Unit,
    faulty::{Fault, Op},
};
use wh_types::{Block, BlockId, Clock, Cursor, SystemClock, Table, Tenant};

const ROW: &str = r#"{"id":1}"#;
/// Three attempts of 5 s without an answer, and half a second.
const BUDGET: Duration = Duration::from_millis(15_500);

fn row(n: usize) -> String {
    format!("{{\"id\":{n}}}")
}

#[tokio::test(start_paused = true)]
async fn rows_gather_while_a_publish_is_in_flight() {
    let rig = Rig::new();
    rig.script.next(Op::Publish, Fault::Delay(Duration::from_millis(50)));
    let first = rig.json(ROW);
    let others = futures::future::join_all((0..300).map(|n| rig.json(row(n))));
    let later = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        others.await
    };
    let (first, others) = tokio::join!(first, later);
    assert!(first.status == 200 && others.iter().all(|reply| reply.status == 200));
    let blocks = rig.queued().await;
    assert_eq!(blocks.iter().map(|delivery| delivery.block.rows).collect::<Vec<_>>(), [1, 300]);
    assert_eq!(rows_of(&blocks[1]), (0..300).map(row).collect::<Vec<_>>(), "in the order they came");
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_loses_nothing_that_was_handed_over() {
    let rig = Rig::new();
    rig.script.next(Op::Publish, Fault::Delay(Duration::from_secs(1)));
    let mut gone = Box::pin(rig.json(ROW));
    while tokio::time::timeout(Duration::from_millis(10), &mut gone).now_or_never().is_some() {}
    drop(gone);
    assert_eq!(rig.json(row(2)).await.status, 200);
    assert_eq!(rig.rows().await, [ROW.to_owned(), row(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again_under_the_same_id() {
    let rig = Rig::new();
    rig.script.next(Op::Publish, Fault::LoseAnswer);
    rig.script.next(Op::Publish, Fault::Fail(Kind::Unavailable));
    let reply = rig.json(ROW).await;
    assert_eq!(reply.counts(), [1, 1, 0]);
    assert_eq!(rig.rows().await, [ROW], "stored once");
    assert!(rig.script.is_done());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_in_flight_and_then_probed() {
    for stored in [true, false] {
        let rig = Rig::new();
        for _ in 0..60 {
            let fault = if stored { Fault::LoseAnswer } else { Fault::Fail(Kind::Unknown) };
            rig.script.next(Op::Publish, fault);
        }
        let start = SystemClock.now();
        let reply = rig.lines(format!("{ROW}\n{{}}")).await;
        let took = start.elapsed();
        assert!(took > BUDGET - Duration::from_secs(1) && took <= BUDGET, "{took:?}");
        assert_eq!(reply.outcome(), (503, Some("queue.outcome_unknown".into())));
        assert_eq!(reply.header("retry-after"), Some("5"));
        let entry = |index, status: &str, code: &str| (index, status.to_owned(), code.to_owned());
        let expected = [entry(0, "in_flight", "queue.outcome_unknown"), entry(1, "rejected", "column.required")];
        assert_eq!(reply.results(), expected);
        rig.stop.give();
        rig.api.finish().await;
        let rows = rig.rows().await;
        assert_eq!(rows.len(), usize::from(stored), "the probe adds no row");
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_probe_the_rows_can_never_be_stored() {
    let rig = Rig::with(Setup { wrap: Some(LosesRows::wrap), ..Setup::default() });
    assert_eq!(rig.json(ROW).await.outcome(), (503, Some("queue.outcome_unknown".into())));
    let sent = || RECORDED.with(|recorded| recorded.borrow().clone());
    while sent().last().is_none_or(|last| last.rows > 0) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    rig.api.finish().await;
    let (first, last) = (sent()[0].clone(), sent().last().cloned().unwrap());
    assert_eq!((last.rows, last.id), (0, first.id), "the probe has the id of the rows");
    let again = rig.broker.publish(&[first.probe()]).await.remove(0).unwrap();
    assert!(matches!(again, Receipt::Duplicate(_)), "the id is taken: {again:?}");
    let rows = rig.broker.stored_rows(&first.tenant, &first.table, first.id, again.cursor()).await;
    assert_eq!(rows.unwrap(), Some(0), "and will never have rows");
    assert_eq!(rig.rows().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_away_is_waited_for_and_then_told() {
    let rig = Rig::new();
    for _ in 0..100 {
        rig.script.next(Op::Publish, Fault::Fail(Kind::Unavailable));
    }
    let start = SystemClock.now();
    let reply = rig.json(ROW).await;
    assert!(start.elapsed() > BUDGET - Duration::from_secs(1) && start.elapsed() <= BUDGET, "{:?}", start.elapsed());
    assert_eq!(reply.outcome(), (503, Some("queue.unavailable".into())));
    assert_eq!(reply.results(), [(0, "not_attempted".to_owned(), "queue.unavailable".to_owned())]);
    assert_eq!(rig.rows().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_answers_at_once_and_takes_again_later() {
    let rig = Rig::new();
    rig.script.next(Op::Publish, Fault::Fail(Kind::NoSpace));
    let start = SystemClock.now();
    let reply = rig.json(ROW).await;
    assert!(start.elapsed() < Duration::from_millis(100));
    assert_eq!(reply.outcome(), (503, Some("queue.no_space".into())));
    assert_eq!(reply.header("retry-after"), Some("30"));
    assert_eq!(rig.json(row(2)).await.status, 200);
    let blocks = rig.queued().await;
    assert_eq!(blocks[0].block.chain.as_ref().unwrap().n, 1, "what was refused for sure leaves no gap in the chain");

    let allowance = Allowance { bytes: 100_000, table_bytes: 100_000, history: Duration::ZERO };
    let small = Rig::with(Setup { allowance, ..Setup::default() });
    let noise: String =
        (0..20_000).map(|n| format!("{{\"id\":{}}}\n", (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let reply = small.lines(noise).await;
    assert_eq!(reply.outcome(), (503, Some("queue.full".into())));
    let value = reply.value();
    let (accepted, listed) = (value["accepted"].as_u64().unwrap(), reply.results());
    assert!(accepted > 0 && accepted % 500 == 0, "{accepted}");
    assert!(listed.iter().all(|(_, status, code)| status == "not_attempted" && code == "queue.full"));
    assert_eq!(listed[0].0, accepted, "the first blocks were stored, in order");
    assert_eq!(small.rows().await.len() as u64, accepted, "what was said is true");
}

#[tokio::test(start_paused = true)]
async fn a_stop_answers_what_is_in_flight_and_leaves_nothing_behind() {
    let rig = Rig::new();
    rig.script.next(Op::Publish, Fault::Delay(Duration::from_secs(2)));
    let first = rig.json(ROW);
    let stopped = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let second = rig.json(row(2));
        rig.stop.give();
        let start = SystemClock.now();
        let (second, ()) = tokio::join!(second, rig.api.finish());
        (second, start.elapsed())
    };
    let (first, (second, took)) = tokio::join!(first, stopped);
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (200, 200));
    assert!(took < Duration::from_secs(3), "an idle table holds nobody up: {took:?}");
    assert_eq!(rig.rows().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn too_many_rows_of_one_table_are_refused_while_others_flow() {
    let options = ApiOptions { table_bytes: 1_000, ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    rig.script.next(Op::Publish, Fault::Delay(Duration::from_secs(3)));
    let waits = rig.lines(format!("{ROW}\n").repeat(400));
    let rest = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let fits = rig.lines(format!("{ROW}\n").repeat(400));
        let refused = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let refused = rig.json(ROW).await;
            let other = rig.send(crate::rig::post("/v1/ingest?table=a.b%2Fc", "application/json", ROW)).await;
            (refused, other)
        };
        tokio::join!(fits, refused)
    };
    let (first, (second, (refused, other))) = tokio::join!(waits, rest);
    assert_eq!((first.status.as_u16(), second.status.as_u16(), other.status.as_u16()), (200, 200, 200));
    assert_eq!(refused.outcome(), (503, Some("server.busy".into())));
    assert_eq!(rig.rows().await.len(), 801);
}

#[tokio::test(start_paused = true)]
async fn a_fault_in_one_publish_does_not_end_its_table() {
    let rig = Rig::with(Setup { wrap: Some(PanicsOnce::wrap), ..Setup::default() });
    let (first, second) = tokio::join!(rig.json(ROW), async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        rig.json(row(2)).await
    });
    assert_eq!(first.outcome(), (503, Some("queue.outcome_unknown".into())));
    assert_eq!(second.status, 200);
    assert_eq!(rig.send(get("/livez")).await.status, 200);
    assert_eq!(rig.rows().await, [row(2)]);
}

/// One client: requests one after another. Gives each record's id and what was said of it.
async fn client(rig: &Rig, mut draw: impl FnMut(usize) -> usize, ids: std::ops::Range<usize>) -> Vec<(usize, String)> {
    let mut said = Vec::new();
    let mut next = ids.start;
    while next < ids.end {
        let end = (next + 1 + draw(700)).min(ids.end);
        let body: String = (next..end).map(|id| row(id) + "\n").collect();
        let path = "/v1/ingest?table=t&results=all";
        let reply = rig.send(crate::rig::post(path, "application/x-ndjson", body)).await;
        let results = reply.results();
        assert_eq!(results.len(), end - next);
        said.extend(results.into_iter().map(|(index, status, _)| (next + index as usize, status)));
        next = end;
    }
    said
}

#[tokio::test(start_paused = true)]
async fn what_a_client_was_told_is_true_under_any_faults() {
    for seed in 0..25_u64 {
        let mut draw = lcg(seed);
        let rig = Rig::new();
        for _ in 0..60 {
            match draw(8) {
                0 => rig.script.next(Op::Publish, Fault::Fail(Kind::Unavailable)),
                1 => rig.script.next(Op::Publish, Fault::Fail(Kind::Unknown)),
                2 | 3 => rig.script.next(Op::Publish, Fault::LoseAnswer),
                4 => rig.script.next(Op::Publish, Fault::Fail(Kind::NoSpace)),
                5 => rig.script.next(Op::Publish, Fault::Repeat),
                _ => rig.script.next(Op::Publish, Fault::Delay(Duration::from_millis(draw(3_000) as u64))),
            }
        }
        let mut draws: Vec<_> = (0..4).map(|_| lcg(draw(1 << 20) as u64)).collect();
        let clients = draws.iter_mut().enumerate().map(|(n, draw)| client(&rig, draw, n * 10_000..n * 10_000 + 4_000));
        let said: Vec<_> = futures::future::join_all(clients).await;
        rig.stop.give();
        rig.api.finish().await;
        let stored: Vec<usize> = rig.rows().await.iter().map(|row| row[6..row.len() - 1].parse().unwrap()).collect();
        let places: std::collections::BTreeMap<usize, usize> =
            stored.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        assert_eq!(places.len(), stored.len(), "seed {seed}: no row is stored twice");
        for said in said {
            let mut before = None;
            for (id, status) in said {
                let place = places.get(&id);
                match status.as_str() {
                    "accepted" => assert!(place.is_some() && place > before, "seed {seed}: {id} is there, in order"),
                    "not_attempted" => assert!(place.is_none(), "seed {seed}: {id} is not there"),
                    "in_flight" => {}
                    other => panic!("{other}"),
                }
                before = place.or(before);
            }
        }
    }
}

/// Numbers that a seed fixes.
fn lcg(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

thread_local! {
    /// What was published in this test: each runs on a thread of its own.
    static RECORDED: std::cell::RefCell<Vec<Block>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Loses every block with rows on its way to the queue, and lets probes through.
#[derive(Debug)]
struct LosesRows(Arc<dyn Broker>);

impl LosesRows {
    fn wrap(inner: Arc<dyn Broker>) -> Arc<dyn Broker> {
        Arc::new(Self(inner))
    }

    fn look(&self, blocks: &[Block]) -> bool {
        RECORDED.with(|recorded| recorded.borrow_mut().extend_from_slice(blocks));
        blocks.iter().all(|block| block.rows == 0)
    }
}

#[derive(Debug)]
struct PanicsOnce(Arc<dyn Broker>, AtomicUsize);

impl PanicsOnce {
    fn wrap(inner: Arc<dyn Broker>) -> Arc<dyn Broker> {
        Arc::new(Self(inner, AtomicUsize::new(0)))
    }

    fn look(&self, _: &[Block]) -> bool {
        assert!(self.1.fetch_add(1, Ordering::Relaxed) > 0, "on purpose");
        true
    }
}

/// A broker that looks at what is published, and decides whether it arrives.
macro_rules! looks_at_publish {
    ($name:ty) => {
        #[async_trait]
        impl Broker for $name {
            async fn publish(&self, blocks: &[Block]) -> Vec<Result<Receipt>> {
                if self.look(blocks) {
                    return self.0.publish(blocks).await;
                }
                blocks.iter().map(|_| Err(Error::new("publish", Kind::Unknown))).collect()
            }
            async fn stored_rows(&self, a: &Tenant, b: &Table, c: BlockId, d: Cursor) -> Result<Option<u32>> {
                self.0.stored_rows(a, b, c, d).await
            }
            fn units(&self) -> Vec<Unit> {
                self.0.units()
            }
            fn unit_of(&self, a: &Tenant, b: &Table) -> Unit {
                self.0.unit_of(a, b)
            }
            async fn feed(&self, a: Unit, b: Budget) -> Result<Box<dyn Feed>> {
                self.0.feed(a, b).await
            }
            async fn release_orphan(&self, a: Unit) -> Result<()> {
                self.0.release_orphan(a).await
            }
            async fn unowned(&self) -> Result<BTreeSet<Unit>> {
                self.0.unowned().await
            }
            async fn history(&self, a: &Tenant, b: &Table, c: From) -> Result<Box<dyn History>> {
                self.0.history(a, b, c).await
            }
            async fn dead_letter(&self, a: &[DeadLetter]) -> Vec<Result<()>> {
                self.0.dead_letter(a).await
            }
            async fn dead_letters(&self, a: &Tenant, b: &DeadLetterQuery) -> Result<DeadLetterPage> {
                self.0.dead_letters(a, b).await
            }
            async fn purge_dead_letters(&self, a: &Tenant, b: &[DeadLetterId]) -> Result<usize> {
                self.0.purge_dead_letters(a, b).await
            }
            async fn set_allowance(&self, a: &Tenant, b: Allowance) -> Result<()> {
                self.0.set_allowance(a, b).await
            }
            async fn status(&self) -> Result<BrokerStatus> {
                self.0.status().await
            }
            async fn close(&self) {
                self.0.close().await;
            }
        }
    };
}

looks_at_publish!(LosesRows);
looks_at_publish!(PanicsOnce);
