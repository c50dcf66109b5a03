//! The store on the log's simulated disk, and its upkeep.

use super::*;
use crate::{Dedupe as _, Scope, port::MAX_ROWS};
use wh_log::disk::sim::SimDisk;
use wh_types::{BlockId, Epoch, Mono, Table as Name, Tenant, Timestamp};

/// The machine's clock, ahead by what a test has let pass. Paused time would not do: the log's committer is a thread, and
/// while a runtime waits for a thread paused time runs on.
#[derive(Debug, Default)]
struct Ahead(Mutex<Duration>);

impl Ahead {
    fn pass(&self, time: Duration) {
        *self.0.lock() += time;
    }
}

impl Clock for Ahead {
    fn now(&self) -> Mono {
        SystemClock.now() + *self.0.lock()
    }

    fn wall(&self) -> Timestamp {
        SystemClock.wall() + *self.0.lock()
    }
}

fn options(disk: &SimDisk) -> Options {
    let mut options = Options::new("/dedupe");
    options.disk = Arc::new(disk.clone());
    options.segment_bytes = 64 * 1024;
    options.upkeep_every = Duration::from_millis(20);
    options
}

fn rows(name: &str, count: usize) -> Vec<Row> {
    let scope = Scope::new(&Tenant::default(), &Name::new("t").unwrap());
    (0..count).map(|n| Row::new(scope.event(&format!("{name}-{n}")).unwrap())).collect()
}

fn under(lease: Duration) -> Under {
    Under { stream: 0, epoch: Epoch(1), block: BlockId([1; 16]), lease }
}

const LONG: Duration = Duration::from_secs(600);

async fn take(store: &Dedupe, rows: &[Row]) -> Vec<Ticket> {
    let verdicts = store.reserve(rows, &under(LONG)).await.unwrap();
    let ticket = |verdict| {
        let Verdict::New(ticket) = verdict else { panic!("{verdict:?}") };
        ticket
    };
    verdicts.into_iter().map(ticket).collect()
}

async fn put(store: &Dedupe, rows: &[Row], retention: Retention) {
    let tickets = take(store, rows).await;
    assert!(store.commit(&tickets, retention).await.iter().all(Result::is_ok));
}

async fn until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what}: not in time");
}

fn all_seen(verdicts: &[Verdict]) -> bool {
    verdicts.iter().all(|verdict| matches!(verdict, Verdict::Seen { .. }))
}

#[tokio::test]
async fn memory_and_disk_are_given_back_when_keys_are_forgotten() {
    let disk = SimDisk::new(1);
    let (mut options, time) = (options(&disk), Arc::new(Ahead::default()));
    options.clock = time.clone();
    let store = Dedupe::open(options.clone()).await.unwrap();
    for round in 0..20 {
        put(&store, &rows(&format!("brief-{round}"), MAX_ROWS), Retention::For(Duration::from_secs(300))).await;
    }
    let before = store.usage();
    assert_eq!((before.known, before.claims), (20_000, 0));
    assert!(before.disk_bytes > 20_000 * 32, "{before:?}");
    time.pass(Duration::from_secs(400));
    until("forgotten", || store.usage().known == 0).await;
    until("freed", || store.usage().disk_bytes <= 2 * u64::from(options.segment_bytes)).await;
    assert!(store.usage().table_bytes < before.table_bytes / 8, "{:?}, before {before:?}", store.usage());
    take(&store, &rows("brief-3", MAX_ROWS)).await;
    store.close().await;
}

#[tokio::test]
async fn what_is_kept_among_what_goes_is_written_again_and_survives() {
    let disk = SimDisk::new(2);
    let (mut options, time) = (options(&disk), Arc::new(Ahead::default()));
    options.clock = time.clone();
    let store = Dedupe::open(options.clone()).await.unwrap();
    let scope = Scope::new(&Tenant::default(), &Name::new("t").unwrap());
    let mut record = Row::new(scope.idempotency("k", 0).unwrap());
    record.payload = bytes::Bytes::from_static(b"a hash");
    put(&store, &[record.clone()], Retention::Forever).await;
    let open = take(&store, &rows("open", 3)).await;
    put(&store, &rows("ever", 100), Retention::Forever).await;
    for round in 0..60 {
        put(&store, &rows(&format!("brief-{round}"), MAX_ROWS), Retention::For(Duration::from_secs(100))).await;
        time.pass(Duration::from_secs(10));
        // at most the live ones of ten rounds, four times over, and two segments
        let most = 4 * 16 * 1_000 * 20 + 3 * u64::from(options.segment_bytes);
        until("cleaned", || store.usage().disk_bytes < most).await;
    }
    time.pass(Duration::from_secs(200));
    until("only what stays is left", || store.usage().known == 101).await;
    until("freed", || store.usage().disk_bytes <= 3 * u64::from(options.segment_bytes)).await;
    let check = async |store: &Dedupe| {
        let verdicts = store.reserve(&rows("ever", 100), &under(LONG)).await.unwrap();
        assert!(all_seen(&verdicts), "{verdicts:?}");
        let verdicts = store.reserve(&[record.clone()], &under(LONG)).await.unwrap();
        assert_eq!(verdicts, [Verdict::Seen { payload: record.payload.clone() }]);
    };
    check(&store).await;
    assert!(store.release(&open[..1]).await[0].is_ok());
    store.close().await;
    let store = Dedupe::open(options).await.unwrap();
    assert_eq!((store.recovery().known, store.recovery().claims, store.recovery().damaged), (101, 2, 0));
    check(&store).await;
    let verdicts = store.reserve(&rows("open", 3), &under(LONG)).await.unwrap();
    let [Verdict::New(_), Verdict::Lapsed { .. }, Verdict::Lapsed { .. }] = &verdicts[..] else {
        panic!("{verdicts:?}")
    };
}

#[tokio::test]
async fn it_is_bounded_and_says_so() {
    let disk = SimDisk::new(3);
    let mut options = options(&disk);
    (options.max_known, options.max_claims) = (1_000, 100);
    let store = Dedupe::open(options).await.unwrap();
    let tickets = take(&store, &rows("a", 100)).await;
    let full = async |rows: &[Row]| {
        let error = store.reserve(rows, &under(LONG)).await.unwrap_err();
        assert!(matches!(error.class(), wh_types::Class::Exhausted { .. }), "{error}");
        error.to_string()
    };
    assert!(full(&rows("b", 1)).await.contains("100 open claims"));
    assert!(store.commit(&tickets, Retention::Forever).await.iter().all(Result::is_ok));
    for round in 0..9 {
        put(&store, &rows(&format!("c{round}"), 100), Retention::Forever).await;
    }
    assert!(full(&rows("d", 1)).await.contains("1000 keys"));
    store.close().await;
}

#[tokio::test]
async fn a_reservation_that_is_given_up_holds_nothing() {
    let disk = SimDisk::new(4);
    let store = Dedupe::open(options(&disk)).await.unwrap();
    let rows = rows("x", 50);
    for _ in 0..20 {
        let claim = under(LONG);
        let reserve = store.reserve(&rows, &claim);
        // polled once: decided and queued, or even done
        if let Some(Ok(verdicts)) = once(reserve).await {
            let tickets = verdicts.into_iter().filter_map(|verdict| match verdict {
                Verdict::New(ticket) => Some(ticket),
                Verdict::Busy { .. } | Verdict::Seen { .. } | Verdict::Lapsed { .. } | Verdict::Same(_) => None,
            });
            store.release(&tickets.collect::<Vec<_>>()).await;
        }
    }
    let tickets = take(&store, &rows).await;
    assert_eq!(store.usage().claims, 50);
    if once(store.commit(&tickets, Retention::Forever)).await.is_none() {
        assert!(store.commit(&tickets, Retention::Forever).await.iter().all(Result::is_ok));
    }
    assert_eq!((store.usage().claims, store.usage().known), (0, 50));
}

/// Polls a future once, and drops it.
async fn once<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        value = future => Some(value),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test]
async fn a_failed_sync_is_not_known_and_a_full_disk_changed_nothing() {
    let disk = SimDisk::new(5);
    let store = Dedupe::open(options(&disk)).await.unwrap();
    let tickets = take(&store, &rows("x", 5)).await;
    disk.fail_syncs(1_000);
    for outcome in store.commit(&tickets, Retention::Forever).await {
        assert_eq!(outcome.unwrap_err().class(), wh_types::Class::Unknown);
    }
    disk.fail_syncs(0);
    disk.set_capacity(Some(disk.used()));
    let mut refused = 0;
    for round in 0..200 {
        match store.reserve(&rows(&format!("full-{round}"), 500), &under(LONG)).await {
            Ok(_) => {}
            Err(error) => {
                assert!(matches!(error.class(), wh_types::Class::Exhausted { .. }), "{error}");
                refused += 1;
                break;
            }
        }
    }
    assert_eq!(refused, 1);
    disk.set_capacity(None);
    assert!(store.commit(&tickets, Retention::Forever).await.iter().all(Result::is_ok));
    let verdicts = store.reserve(&rows("x", 5), &under(LONG)).await.unwrap();
    assert!(all_seen(&verdicts), "{verdicts:?}");
}
