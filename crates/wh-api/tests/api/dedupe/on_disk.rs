//! The store in the data folder, with the queue beside it: in real time, as both have threads of their own.

use super::{World, counts, lines, row, under};
use crate::rig::Rig;
use async_trait::async_trait;
use std::{fs, io::ErrorKind, path::Path, pin::pin, sync::Arc, time::Duration};
use wh_dedupe::{Dedupe, Result, Retention, Row, Ticket, Under, Verdict, log};
use wh_mq::{
    Broker as _, embedded,
    faulty::{Fault, Op},
};
use wh_testkit::until;
use wh_types::{Stop, SystemClock};

const WAIT: Duration = Duration::from_secs(30);

/// A store whose commits never come to an end.
#[derive(Debug)]
struct NeverCommits(Arc<log::Dedupe>, Stop);

#[async_trait]
impl Dedupe for NeverCommits {
    async fn reserve(&self, rows: &[Row], under: &Under) -> Result<Vec<Verdict>> {
        self.0.reserve(rows, under).await
    }

    async fn commit(&self, _: &[Ticket], _: Retention) -> Vec<Result<()>> {
        self.1.give();
        std::future::pending().await
    }

    async fn release(&self, held: &[Ticket]) -> Vec<Result<()>> {
        self.0.release(held).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

fn world() -> World {
    // a machine that is busy with other things may take its time
    let patience = Duration::from_secs(60);
    World { clock: Arc::new(SystemClock), lease: patience * 5, patience, ..World::new() }
}

/// The files of both as they are now: what a process leaves that is killed at this moment. They may still be written to;
/// where one goes meanwhile it is begun anew.
fn copied(from: &Path, to: &Path) {
    for folder in ["queue", "dedupe"] {
        while !copied_whole(&from.join(folder), &to.join(folder)) {
            fs::remove_dir_all(to.join(folder)).unwrap();
        }
    }
}

fn copied_whole(from: &Path, to: &Path) -> bool {
    fs::create_dir_all(to).unwrap();
    let mut entries = fs::read_dir(from).unwrap().map(std::result::Result::unwrap).collect::<Vec<_>>();
    // first what says how far the log is
    entries.sort_by_key(|entry| entry.file_name() != "extent");
    entries.iter().all(|entry| match fs::copy(entry.path(), to.join(entry.file_name())) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => panic!("{error}"),
    })
}

async fn over(dir: &Path) -> Rig {
    world().over(store(dir).await, Arc::new(queue(dir).await))
}

async fn queue(dir: &Path) -> embedded::Broker {
    embedded::Broker::open(embedded::Options { shards: 1, ..embedded::Options::new(dir.join("queue")) }).await.unwrap()
}

async fn store(dir: &Path) -> Arc<log::Dedupe> {
    Arc::new(log::Dedupe::open(log::Options::new(dir.join("dedupe"))).await.unwrap())
}

#[tokio::test]
async fn what_was_stored_is_known_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let world = world();
    for start in 0..3 {
        let (queue, store) = (queue(dir.path()).await, store(dir.path()).await);
        let one = world.over(store.clone(), Arc::new(queue.clone()));
        let fresh = if start == 0 { [2_000, 2_000, 0, 0] } else { [2_000, 0, 2_000, 0] };
        assert_eq!(counts(&lines(&one, 0..2_000).await), fresh, "start {start}");
        let keyed = under(&one, "k", &row(5_000)).await;
        assert_eq!((counts(&keyed), keyed.header("idempotency-replayed").is_some()), ([1, 1, 0, 0], start > 0));
        one.stop.give();
        one.api.finish().await;
        store.close().await;
        if start == 2 {
            assert_eq!(one.rows().await.len(), 2_001);
        }
        queue.close().await;
    }
}

#[tokio::test]
async fn killed_between_publish_and_commit_the_rows_are_known_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    let reached = Stop::new();
    let stuck = NeverCommits(store(&before).await, reached.clone());
    let one = world().over(Arc::new(stuck), Arc::new(queue(&before).await));
    {
        let body = row(9_999);
        let mut asked = pin!(under(&one, "k", &body));
        tokio::select! {
            reply = &mut asked => panic!("answered: {reply:?}"),
            () = reached.wait() => copied(&before, &after),
        }
    }
    let next = over(&after).await;
    let again = under(&next, "k", &row(9_999)).await;
    assert_eq!((counts(&again), again.header("idempotency-replayed")), ([1, 1, 0, 0], Some("true")));
    assert_eq!(counts(&lines(&next, [9_999, 10_000]).await), [2, 1, 1, 0]);
    assert_eq!(next.rows().await, [row(9_999), row(10_000)]);
}

#[tokio::test]
async fn killed_between_claim_and_publish_the_rows_are_stored_when_they_come_again() {
    let dir = tempfile::tempdir().unwrap();
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    let one = over(&before).await;
    one.script.next(Op::Publish, Fault::Delay(Duration::from_secs(3_600)));
    {
        let mut asked = pin!(lines(&one, 0..700));
        let mut reached = pin!(until(WAIT, "the publish to be reached", || async {
            if one.script.is_done() { Ok(()) } else { Err(anyhow::anyhow!("not yet")) }
        }));
        tokio::select! {
            reply = &mut asked => panic!("answered: {reply:?}"),
            reached = &mut reached => reached.unwrap(),
        }
        copied(&before, &after);
    }
    let next = over(&after).await;
    let again = lines(&next, 0..700).await;
    assert_eq!((again.status.as_u16(), counts(&again)), (200, [700, 700, 0, 0]));
    assert_eq!(counts(&lines(&next, 0..700).await), [700, 0, 700, 0]);
    assert_eq!(next.rows().await.len(), 700);
}
