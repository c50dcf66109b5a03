//! Each test breaks one kind of request, once or for good.

use std::{slice, time::Duration};
use wh_dedupe::{
    Dedupe as _, Retention, Row, Scope, Ticket, Under, Verdict,
    dynamodb::{Credentials, Dedupe, Options},
};
use wh_testkit::{
    dynamodb::Server,
    fault::{Action, Proxy, Rule},
};
use wh_types::{BlockId, Class, Clock as _, Epoch, Secret, SystemClock, Table, Tenant};

/// What only a claim's put, a takeover and a commit have in them.
const PUT: &str = "attribute_not_exists";
const TAKE_OVER: &str = "tk = :before";
const COMMIT: &str = "SET st = :two";
const LONG: Duration = Duration::from_secs(600);
const DAY: Retention = Retention::For(Duration::from_secs(86_400));

struct Stage {
    proxy: Proxy,
    /// Behind the proxy.
    store: Dedupe,
    /// Another process's, straight to the table.
    other: Dedupe,
    _server: Server,
}

fn options(endpoint: String, timeout: Duration) -> Options {
    let mut options = Options::new("dedupe");
    options.region = Some("eu-central-1".to_owned());
    options.endpoint = Some(endpoint);
    options.credentials = Credentials::Keys { id: "id".to_owned(), secret: Secret::from("secret") };
    options.timeout = timeout;
    options
}

impl Stage {
    async fn open(timeout: Duration) -> Self {
        let server = Server::start().await.unwrap();
        let mut making = options(server.url(), Duration::from_secs(60));
        making.create_table = true;
        // an emulator on a busy machine is slow
        making.attempt = Duration::from_secs(20);
        let other = Dedupe::connect(making).await.unwrap();
        let proxy = Proxy::start(server.url()).await.unwrap();
        let mut through = options(proxy.url(), timeout);
        through.attempt = timeout / 2;
        let store = loop {
            // the table check has ten times the timeout, which may be short
            if let Ok(store) = Dedupe::connect(through.clone()).await {
                break store;
            }
        };
        Self { proxy, store, other, _server: server }
    }

    /// Time enough for everything that is to work.
    async fn patient() -> Self {
        Self::open(Duration::from_secs(40)).await
    }

    /// For calls that are to fail.
    async fn hasty() -> Self {
        Self::open(Duration::from_millis(800)).await
    }
}

fn rows(name: &str, count: usize) -> Vec<Row> {
    let scope = Scope::new(&Tenant::default(), &Table::new("t").unwrap());
    (0..count).map(|n| Row::new(scope.event(&format!("{name}-{n}")).unwrap())).collect()
}

fn under(n: u8, lease: Duration) -> Under {
    Under { stream: 1, epoch: Epoch(2), block: BlockId([n; 16]), lease }
}

fn tickets(verdicts: Vec<Verdict>) -> Vec<Ticket> {
    let ticket = |verdict| {
        let Verdict::New(ticket) = verdict else { panic!("{verdict:?}") };
        ticket
    };
    verdicts.into_iter().map(ticket).collect()
}

async fn take(store: &Dedupe, rows: &[Row], n: u8) -> Vec<Ticket> {
    tickets(store.reserve(rows, &under(n, LONG)).await.unwrap())
}

async fn is_seen(store: &Dedupe, row: &Row) -> bool {
    let verdicts = store.reserve(slice::from_ref(row), &under(99, LONG)).await.unwrap();
    matches!(verdicts[..], [Verdict::Seen { .. }])
}

/// What AWS answers.
fn answers(status: u16, code: &str) -> Action {
    let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"injected"}}"#);
    let headers = vec![("content-type".to_owned(), "application/x-amz-json-1.0".to_owned())];
    Action::Reply { status, headers, body: body.into_bytes(), cut: false }
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_recognised_by_its_token() {
    let stage = Stage::patient().await;
    let all = rows("x", 10);
    let lost = stage.proxy.add(Rule::any(Action::DropReply).contains(PUT).times(4));
    let held = take(&stage.store, &all, 1).await;
    assert_eq!(stage.proxy.fired(lost), 4);
    for verdict in stage.other.reserve(&all, &under(2, LONG)).await.unwrap() {
        assert!(matches!(verdict, Verdict::Busy { .. }), "{verdict:?}");
    }
    assert!(stage.store.commit(&held, DAY).await.iter().all(Result::is_ok));
    assert!(is_seen(&stage.other, &all[0]).await && is_seen(&stage.other, &all[9]).await);
}

#[tokio::test]
async fn a_takeover_whose_answer_was_lost_is_recognised_by_its_token() {
    let stage = Stage::patient().await;
    let row = rows("x", 1);
    tickets(stage.other.reserve(&row, &under(7, Duration::from_millis(10))).await.unwrap());
    stage.proxy.add(Rule::any(Action::DropReply).contains(TAKE_OVER).times(1));
    let (origin, ticket) = loop {
        match stage.store.reserve(&row, &under(8, LONG)).await.unwrap().remove(0) {
            Verdict::Lapsed { origin, ticket, .. } => break (origin, ticket),
            Verdict::Busy { .. } => {}
            other @ (Verdict::New(_) | Verdict::Seen { .. } | Verdict::Same(_)) => panic!("{other:?}"),
        }
    };
    assert_eq!(origin.block, BlockId([7; 16]));
    assert_eq!(stage.proxy.stats().fired("drop_reply"), 1);
    assert!(stage.store.commit(&[ticket], DAY).await[0].is_ok());
    assert!(is_seen(&stage.other, &row[0]).await);
}

#[tokio::test]
async fn a_commit_and_a_release_whose_answers_were_lost_are_done() {
    let stage = Stage::patient().await;
    let all = rows("x", 6);
    let held = take(&stage.store, &all, 1).await;
    stage.proxy.add(Rule::any(Action::DropReply).contains(COMMIT).times(2));
    assert!(stage.store.commit(&held[..3], DAY).await.iter().all(Result::is_ok));
    // nothing in its body tells a release
    stage.proxy.clear();
    stage.proxy.add(Rule::any(Action::DropReply).times(2));
    assert!(stage.store.release(&held[3..]).await.iter().all(Result::is_ok));
    assert_eq!(stage.proxy.stats().fired("drop_reply"), 4);
    for row in &all[..3] {
        assert!(is_seen(&stage.other, row).await);
    }
    take(&stage.other, &all[3..], 2).await;
}

#[tokio::test]
async fn a_call_that_fails_gives_back_what_may_have_landed() {
    let stage = Stage::hasty().await;
    let all = rows("x", 12);
    // of all puts nothing is heard, while releases are answered
    let lost = stage.proxy.add(Rule::any(Action::DropReply).contains(PUT));
    let error = stage.store.reserve(&all, &under(1, LONG)).await.unwrap_err();
    assert_eq!(error.class(), Class::Unknown, "{error}");
    assert!(stage.proxy.fired(lost) > 0);
    // long before the lease is over
    take(&stage.other, &all, 2).await;
}

#[tokio::test]
async fn a_takeover_that_may_have_landed_lapses_again_and_keeps_its_block() {
    let stage = Stage::hasty().await;
    let row = rows("x", 1);
    tickets(stage.other.reserve(&row, &under(7, Duration::from_millis(10))).await.unwrap());
    let lost = stage.proxy.add(Rule::any(Action::DropReply).contains(TAKE_OVER));
    while stage.proxy.fired(lost) == 0 {
        drop(stage.store.reserve(&row, &under(8, LONG)).await);
    }
    let verdict = stage.other.reserve(&row, &under(9, LONG)).await.unwrap().remove(0);
    let Verdict::Lapsed { origin, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(origin.block, BlockId([7; 16]));
}

#[tokio::test]
async fn a_server_that_fails_may_have_done_it_and_nothing_is_held_for_long() {
    let stage = Stage::hasty().await;
    let all = rows("x", 3);
    stage.proxy.add(Rule::any(answers(500, "InternalServerError")).contains(PUT));
    let error = stage.store.reserve(&all, &under(1, LONG)).await.unwrap_err();
    assert_eq!(error.class(), Class::Unknown, "{error}");
    stage.proxy.clear();
    take(&stage.other, &all, 2).await;
}

#[tokio::test]
async fn throttling_is_tried_again_and_said_when_it_stays() {
    let stage = Stage::patient().await;
    let throttle = answers(400, "ProvisionedThroughputExceededException");
    let brief = stage.proxy.add(Rule::any(throttle.clone()).contains(PUT).times(3));
    let held = take(&stage.store, &rows("x", 4), 1).await;
    assert_eq!(stage.proxy.fired(brief), 3);
    stage.proxy.add(Rule::any(throttle).contains(COMMIT).times(3));
    assert!(stage.store.commit(&held, DAY).await.iter().all(Result::is_ok));

    let stage = Stage::hasty().await;
    stage.proxy.add(Rule::any(answers(400, "RequestLimitExceeded")));
    let error = stage.store.reserve(&rows("y", 4), &under(1, LONG)).await.unwrap_err();
    assert!(matches!(error.class(), Class::Exhausted { .. }), "{error}");
    assert!(error.to_string().contains("RequestLimitExceeded"), "{error}");
    take(&stage.other, &rows("y", 4), 2).await;
}

#[tokio::test]
async fn a_store_that_hangs_does_not_hold_a_call() {
    let stage = Stage::hasty().await;
    let held = take(&stage.other, &rows("x", 1), 1).await;
    stage.proxy.add(Rule::any(Action::Hang));
    let began = SystemClock.now();
    let error = stage.store.reserve(&rows("y", 50), &under(1, LONG)).await.unwrap_err();
    assert_eq!(error.class(), Class::Unknown, "{error}");
    assert_eq!(stage.store.commit(&held, DAY).await[0].as_ref().unwrap_err().class(), Class::Unknown);
    assert_eq!(stage.store.release(&held).await[0].as_ref().unwrap_err().class(), Class::Unknown);
    // four times 0.8 s, what is taken back included; far below what the transport would wait
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_not_asked_for_a_while_and_then_again() {
    let stage = Stage::open(Duration::from_millis(60)).await;
    let throttle = stage.proxy.add(Rule::any(answers(400, "ThrottlingException")));
    let mut asked = true;
    for n in 0..500 {
        let before = stage.proxy.fired(throttle);
        assert!(stage.store.reserve(&rows(&format!("x-{n}"), 1), &under(1, LONG)).await.is_err());
        asked = stage.proxy.fired(throttle) > before;
        if !asked {
            break;
        }
    }
    assert!(!asked, "500 failures did not open the breaker");
    stage.proxy.clear();
    let mut tries = 0;
    while stage.store.reserve(&rows("y", 1), &under(2, LONG)).await.is_err() {
        tries += 1;
        assert!(tries < 3_000, "the breaker does not close");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_cannot_work_is_not_tried_again() {
    let stage = Stage::patient().await;
    let rows = [
        ("AccessDeniedException", Class::Denied),
        ("ExpiredTokenException", Class::Denied),
        ("ResourceNotFoundException", Class::NotFound),
        ("ValidationException", Class::Bug),
    ]
    .map(|(code, class)| (code, class, rows(code, 1)));
    for (code, class, row) in rows {
        let rule = stage.proxy.add(Rule::any(answers(400, code)));
        let error = stage.store.reserve(&row, &under(1, LONG)).await.unwrap_err();
        assert_eq!((error.class(), stage.proxy.fired(rule)), (class, 1), "{code}: {error}");
        stage.proxy.clear();
    }
}
