//! The store's bounds, beginnings and upkeep. What it promises is in the conformance suite.

use super::{disk::Disk, state::State, *};
use crate::{Dedupe as _, Origin, Scope, Token, hash::KeyHash};
use std::sync::atomic::AtomicI64;
use wh_types::{BlockId, Class, Epoch, Mono, Table as Name, Tenant, Timestamp};

const LONG: Duration = Duration::from_secs(600);
const BRIEF: Retention = Retention::For(Duration::from_secs(300));

/// A wall clock that goes when it is told.
#[derive(Debug)]
struct Told(AtomicI64);

impl Clock for Told {
    fn now(&self) -> Mono {
        SystemClock.now()
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed) * 1_000)
    }
}

fn options(dir: &tempfile::TempDir) -> (Options, Arc<Told>) {
    let clock = Arc::new(Told(AtomicI64::new(1_750_000_000)));
    let mut options = Options::new(dir.path().join("dedupe"));
    options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    (options, clock)
}

fn rows(name: &str, count: usize) -> Vec<Row> {
    let scope = Scope::new(&Tenant::default(), &Name::new("t").unwrap());
    (0..count).map(|n| Row::new(scope.event(&format!("{name}-{n}")).unwrap())).collect()
}

fn under(lease: Duration) -> Under {
    Under { stream: 0, epoch: Epoch(1), block: BlockId([1; 16]), lease }
}

fn take(state: &mut State, rows: &[Row]) -> Vec<Ticket> {
    let ticket = |verdict| {
        let Verdict::New(ticket) = verdict else { panic!("{verdict:?}") };
        ticket
    };
    state.reserve(rows, &under(LONG)).unwrap().into_iter().map(ticket).collect()
}

fn put(state: &mut State, rows: &[Row], retention: Retention) {
    let tickets = take(state, rows);
    assert!(state.commit(&tickets, retention).iter().all(Result::is_ok));
}

#[test]
fn what_is_over_is_forgotten_a_step_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let (mut options, clock) = options(&dir);
    options.forget_after = Duration::ZERO;
    let mut state = State::open(options).unwrap();
    for round in 0..3 {
        put(&mut state, &rows(&format!("brief-{round}"), 800), BRIEF);
    }
    put(&mut state, &rows("ever", 10), Retention::Forever);
    state.reserve(&rows("lapses", 7), &under(Duration::from_millis(10))).unwrap();
    take(&mut state, &rows("open", 5));
    while state.reserve(&rows("lapses", 1), &under(LONG)).unwrap().iter().all(|v| matches!(v, Verdict::Busy { .. })) {
        std::thread::yield_now();
    }
    clock.0.fetch_add(301, Ordering::Relaxed);
    let steps = (0..10).take_while(|_| state.sweep().unwrap()).count();
    assert_eq!(steps, 2, "2,410 keys in steps of 1,000");
    // the one that was asked for is held again
    assert_eq!((state.known_keys(), state.open_claims()), (10, 6));
    state.flush().unwrap();
    let verdicts = state.reserve(&rows("brief-1", 800), &under(LONG)).unwrap();
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::New(_))));
}

#[test]
fn open_claims_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let (mut options, _) = options(&dir);
    options.max_claims = 100;
    let mut state = State::open(options).unwrap();
    let tickets = take(&mut state, &rows("a", 100));
    let error = state.reserve(&rows("b", 1), &under(LONG)).unwrap_err();
    assert!(matches!(error.class(), Class::Exhausted { .. }) && error.to_string().contains("100 open claims"));
    assert!(state.release(&tickets[..1]).iter().all(Result::is_ok));
    take(&mut state, &rows("b", 1));
}

#[test]
fn a_claim_whose_commit_is_there_is_dropped_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let (options, _) = options(&dir);
    let (both, open) = (&rows("both", 1)[0], &rows("open", 1)[0]);
    {
        let disk = Disk::open(&options).unwrap();
        let origin = Origin::new(&under(LONG), options.clock.wall());
        for row in [both, open] {
            disk.claims.insert(row.key.hash(), item::claim(Token([7; 16]), &origin, b"p")).unwrap();
        }
        let known = item::Known { until: u32::MAX, token: Token([7; 16]), payload: bytes::Bytes::from_static(b"p") };
        disk.known.insert(both.key.hash(), known.encode()).unwrap();
        disk.flush("test").unwrap();
    }
    let mut state = State::open(options).unwrap();
    assert_eq!(state.open_claims(), 1);
    let verdicts = state.reserve(&[both.clone(), open.clone()], &under(LONG)).unwrap();
    let [Verdict::Seen { payload }, Verdict::Lapsed { origin, .. }] = &verdicts[..] else { panic!("{verdicts:?}") };
    assert_eq!((&payload[..], origin.block), (&b"p"[..], BlockId([1; 16])));
}

#[test]
fn a_commit_that_is_repeated_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = State::open(options(&dir).0).unwrap();
    let tickets = take(&mut state, &rows("x", 2));
    for _ in 0..2 {
        assert!(state.commit(&tickets, BRIEF).iter().all(Result::is_ok));
    }
    assert_eq!(state.release(&tickets)[0].as_ref().unwrap_err().class(), Class::Fenced);
    assert_eq!(state.known_keys(), 2);
}

#[test]
fn after_a_failed_write_it_refuses_everything() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = State::open(options(&dir).0).unwrap();
    let tickets = take(&mut state, &rows("x", 1));
    state.fail(&Error::new("flush", Kind::Unavailable));
    let classes = [
        state.reserve(&rows("y", 1), &under(LONG)).unwrap_err().class(),
        state.commit(&tickets, BRIEF)[0].as_ref().unwrap_err().class(),
        state.release(&tickets)[0].as_ref().unwrap_err().class(),
        state.sweep().unwrap_err().class(),
    ];
    assert_eq!(classes, [Class::Unavailable; 4]);
}

#[test]
fn a_folder_with_something_else_in_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (options, _) = options(&dir);
    {
        let disk = Disk::open(&options).unwrap();
        disk.claims.insert(KeyHash([1; 16]).0, b"short").unwrap();
        disk.flush("test").unwrap();
    }
    assert_eq!(State::open(options).unwrap_err().class(), Class::Corrupt);
}

#[tokio::test]
async fn a_folder_has_one_owner_and_is_free_after_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let (options, _) = options(&dir);
    let store = Dedupe::open(options.clone()).await.unwrap();
    let error = Dedupe::open(options.clone()).await.unwrap_err();
    assert_eq!(error.class(), Class::Conflict, "{error}");
    assert_eq!(store.reserve(&rows("x", 3), &under(LONG)).await.unwrap().len(), 3);
    assert_eq!(store.usage().claims, 3);
    store.close().await;
    drop(store);
    let store = Dedupe::open(options).await.unwrap();
    assert_eq!(store.usage().claims, 3);
    let verdicts = store.reserve(&rows("x", 3), &under(LONG)).await.unwrap();
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Lapsed { .. })), "{verdicts:?}");
}
