//! Sharing and keeping, over a cache in memory.

use super::*;
use crate::codes;
use bytes::Bytes;
use futures::{StreamExt, future::join_all, stream};
use http_body_util::BodyExt;
use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::sync::{Notify, oneshot};
use wh_cache::{Change, memory};
use wh_clickhouse::TableRef;
use wh_mq::{Allowance, Progress, sim};
use wh_types::{Epoch, Mono, SystemClock, Table, Timestamp};

/// No time passes: what is kept stays until it is ended.
#[derive(Debug)]
struct Still(Mono);

impl Clock for Still {
    fn now(&self) -> Mono {
        self.0
    }

    fn wall(&self) -> Timestamp {
        SystemClock.wall()
    }
}

struct Fixture {
    answers: Arc<Answers>,
    store: Arc<dyn Cache>,
    broker: Arc<dyn Broker>,
    tenant: Tenant,
}

impl Fixture {
    fn new() -> Self {
        let clock = Arc::new(Still(SystemClock.now()));
        let options = memory::Options { max_value_bytes: 1_024, ..memory::Options::new(clock) };
        let store: Arc<dyn Cache> = Arc::new(memory::Cache::new(options).unwrap());
        let cache = AnswerCache {
            store: Arc::clone(&store),
            max_value_bytes: 1_024,
            longest: Duration::from_secs(3_600),
            by_marks: true,
        };
        let broker = sim::Broker::new(sim::Options {
            epoch: Epoch(1),
            shards: 1,
            ack_wait: Duration::from_secs(60),
            duplicate_window: Duration::from_secs(120),
            default_allowance: Allowance { bytes: 1 << 20, table_bytes: 1 << 20, history: Duration::ZERO },
            dead_letter_share: 10,
            clock: Arc::new(SystemClock),
        });
        let broker: Arc<dyn Broker> = Arc::new(broker);
        let budget = Budget::new(1 << 20, Duration::from_secs(5));
        let answers =
            Answers::new(Some(cache), Arc::clone(&broker), Arc::new(SystemClock), Arc::new(Meters::new()), budget);
        Self { answers: Arc::new(answers), store, broker, tenant: Tenant::default() }
    }

    fn asked(&self, key: &str) -> Asked<'_> {
        let tables = [TableRef::new("d", "t")].into();
        Asked {
            tenant: &self.tenant,
            database: "d",
            key: Key::of([key.as_bytes()]),
            caps: 1,
            reads: Reads { tables, tracked: true, steady: true },
            life: Life::at_most(Duration::from_secs(3_600)),
            freshness: Freshness::Any,
        }
    }

    async fn write(&self) {
        let change = Change::table(self.tenant.clone(), Table::new("t").unwrap());
        assert!(self.store.invalidate(&[change]).await.iter().all(Result::is_ok));
    }

    /// Asks for an answer that would be this text.
    async fn ask(&self, asked: Asked<'_>, text: &'static str) -> (String, String) {
        seen(self.answers.answer(asked, move || async move { Ok(produced(text)) }).await.unwrap()).await
    }
}

fn produced(text: &'static str) -> Produced {
    Produced { body: Bytes::from_static(text.as_bytes()), told: Vec::new(), held: None, keep: true }
}

/// How it came about, and what it says.
async fn seen(answer: Answer) -> (String, String) {
    use axum::response::IntoResponse;
    let response = answer.into_response();
    let how = response.headers()["x-cache"].to_str().unwrap().to_owned();
    assert_eq!(response.headers().contains_key("age"), how == "HIT");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (how, String::from_utf8(body.to_vec()).unwrap())
}

fn was(how: &str, text: &str) -> (String, String) {
    (how.to_owned(), text.to_owned())
}

#[tokio::test]
async fn an_answer_is_kept_until_what_it_reads_is_written() {
    let fixture = Fixture::new();
    assert_eq!(fixture.ask(fixture.asked("a"), "1").await, was("MISS", "1"));
    assert_eq!(fixture.ask(fixture.asked("a"), "2").await, was("HIT", "1"));
    assert_eq!(fixture.ask(fixture.asked("b"), "3").await, was("MISS", "3"));
    fixture.write().await;
    assert_eq!(fixture.ask(fixture.asked("a"), "4").await, was("MISS", "4"));
}

#[tokio::test]
async fn what_was_written_while_it_was_computed_ends_it_before_it_is_kept() {
    let fixture = Fixture::new();
    let store = Arc::clone(&fixture.store);
    let change = Change::table(fixture.tenant.clone(), Table::new("t").unwrap());
    let slow = move || async move {
        store.invalidate(&[change]).await;
        Ok(produced("old"))
    };
    let answer = fixture.answers.answer(fixture.asked("a"), slow).await.unwrap();
    assert_eq!(seen(answer).await, was("MISS", "old"));
    assert_eq!(fixture.ask(fixture.asked("a"), "new").await, was("MISS", "new"));
}

#[tokio::test]
async fn an_asker_chooses_how_fresh_an_answer_is() {
    let fixture = Fixture::new();
    let with = |freshness| Asked { freshness, ..fixture.asked("a") };
    assert_eq!(fixture.ask(with(Freshness::Apart), "1").await, was("BYPASS", "1"));
    assert_eq!(fixture.ask(with(Freshness::Any), "2").await, was("MISS", "2"), "nothing was kept");
    assert_eq!(fixture.ask(with(Freshness::Fresh), "3").await, was("MISS", "3"));
    assert_eq!(fixture.ask(with(Freshness::Any), "4").await, was("HIT", "3"), "it was kept for others");
    assert_eq!(fixture.ask(with(Freshness::Within(Duration::MAX)), "5").await, was("HIT", "3"));
    let never = Asked { life: Life::at_most(Duration::ZERO), ..fixture.asked("a") };
    assert_eq!(fixture.ask(never, "7").await, was("BYPASS", "7"));
}

#[tokio::test]
async fn cut_large_and_failed_answers_are_not_kept() {
    let fixture = Fixture::new();
    let cut = || async { Ok(Produced { keep: false, ..produced("cut") }) };
    seen(fixture.answers.answer(fixture.asked("a"), cut).await.unwrap()).await;
    let large = || async { Ok(Produced { body: vec![b'x'; 2_000].into(), ..produced("") }) };
    seen(fixture.answers.answer(fixture.asked("a"), large).await.unwrap()).await;
    let failed = || async { Err(ApiError::new(&codes::CLICKHOUSE_UNAVAILABLE, "away")) };
    fixture.answers.answer(fixture.asked("a"), failed).await.unwrap_err();
    assert_eq!(fixture.ask(fixture.asked("a"), "whole").await, was("MISS", "whole"));
}

#[tokio::test]
async fn a_thousand_at_once_are_computed_once() {
    let fixture = Fixture::new();
    let (computed, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let ask = || {
        let (computed, go) = (Arc::clone(&computed), Arc::clone(&go));
        fixture.answers.answer(fixture.asked("a"), move || async move {
            computed.fetch_add(1, Ordering::Relaxed);
            go.notified().await;
            Ok(produced("1"))
        })
    };
    let mut all: Vec<_> = (0..1_000).map(|_| Box::pin(ask())).collect();
    for one in &mut all {
        assert!(futures::poll!(one).is_pending());
    }
    assert_eq!((computed.load(Ordering::Relaxed), fixture.answers.flights.len()), (1, 1));
    go.notify_one();
    for answer in join_all(all).await {
        assert_eq!(seen(answer.unwrap()).await, was("MISS", "1"));
    }
    assert_eq!((computed.load(Ordering::Relaxed), fixture.answers.flights.len()), (1, 0));
}

#[tokio::test]
async fn who_leaves_leaves_the_others_alone_and_the_last_one_ends_it() {
    let fixture = Fixture::new();
    let (send, receive) = oneshot::channel::<&'static str>();
    let mut first = Box::pin(
        fixture.answers.answer(fixture.asked("a"), move || async move { Ok(produced(receive.await.unwrap())) }),
    );
    let other = || fixture.answers.answer(fixture.asked("a"), || async { Ok(produced("another")) });
    let (mut second, mut third) = (Box::pin(other()), Box::pin(other()));
    for one in [futures::poll!(&mut first), futures::poll!(&mut second), futures::poll!(&mut third)] {
        assert!(one.is_pending());
    }
    drop(first);
    drop(third);
    assert!(!send.is_closed(), "one still waits");
    send.send("1").unwrap();
    assert_eq!(seen(second.await.unwrap()).await, was("MISS", "1"));

    let (mut send, receive) = oneshot::channel::<&'static str>();
    let mut only = Box::pin(
        fixture.answers.answer(fixture.asked("b"), move || async move { Ok(produced(receive.await.unwrap())) }),
    );
    assert!(futures::poll!(&mut only).is_pending());
    drop(only);
    send.closed().await;
    assert_eq!(fixture.answers.flights.len(), 0);
    assert_eq!(fixture.ask(fixture.asked("b"), "2").await, was("MISS", "2"));
}

#[tokio::test]
async fn only_what_is_the_same_now_is_shared() {
    let fixture = Fixture::new();
    let forever = || async { std::future::pending::<Result<Produced, ApiError>>().await };
    let mut running = Box::pin(fixture.answers.answer(fixture.asked("a"), forever));
    assert!(futures::poll!(&mut running).is_pending());
    let caps = Asked { caps: 2, ..fixture.asked("a") };
    assert_eq!(fixture.ask(caps, "other bounds").await, was("MISS", "other bounds"));
    let fresh = Asked { freshness: Freshness::Fresh, ..fixture.asked("b") };
    assert_eq!(fixture.ask(fresh, "now").await, was("MISS", "now"));
    fixture.write().await;
    assert_eq!(fixture.ask(fixture.asked("a"), "after").await, was("MISS", "after"), "it began before the write");
    assert_eq!(fixture.answers.flights.len(), 1);
}

#[tokio::test]
async fn a_stream_is_kept_when_it_ended_well_and_is_small() {
    let fixture = Fixture::new();
    let piece = |text: &'static [u8]| Ok(Bytes::from_static(text));
    let pass = async |pieces: Vec<io::Result<Bytes>>, all: bool| {
        let Looked::Miss(place) = fixture.answers.look(&fixture.asked("s")).await else { panic!("kept already") };
        let mut passed = Box::pin(tee(stream::iter(pieces), fixture.answers.gather(place, Vec::new())));
        if all {
            while passed.next().await.is_some() {}
        } else {
            passed.next().await.unwrap().unwrap();
        }
    };
    pass(vec![piece(b"1\n"), Err(io::Error::other("broken"))], true).await;
    pass(vec![piece(b"1\n"), piece(b"2\n")], false).await;
    pass(vec![piece(&[b'x'; 1_000]), piece(&[b'x'; 1_000])], true).await;
    pass(vec![piece(b"1\n"), piece(b"2\n")], true).await;
    assert_eq!(fixture.ask(fixture.asked("s"), "").await, was("HIT", "1\n2\n"));
}

#[tokio::test]
async fn a_mark_of_an_insert_elsewhere_ends_it_too() {
    let fixture = Fixture::new();
    let mark = |number: u64| Progress {
        tenant: fixture.tenant.clone(),
        table: Table::new("t").unwrap(),
        epoch: Epoch(1),
        committed: number,
        inserting: number,
        parked: Vec::new(),
        named_after: 0,
        owner: 1,
        number,
    };
    assert_eq!(fixture.ask(fixture.asked("a"), "1").await, was("MISS", "1"));
    fixture.broker.marks().announce(&[mark(1)]).await.unwrap();
    fixture.broker.marks().hear().await.unwrap();
    assert_eq!(fixture.ask(fixture.asked("a"), "2").await, was("MISS", "2"));
    assert_eq!(fixture.ask(fixture.asked("a"), "3").await, was("HIT", "2"));
    fixture.broker.marks().announce(&[mark(2)]).await.unwrap();
    fixture.broker.marks().hear().await.unwrap();
    assert_eq!(fixture.ask(fixture.asked("a"), "4").await, was("MISS", "4"));
}
