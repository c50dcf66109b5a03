//! The history without consumers: readers under load, after breaks, and where the server lost or removed something.

mod faults;
mod watch;

use crate::stand::{Stand, block, choices, publish, table, tenant};
use anyhow::{Context as _, Result, ensure};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use watch::{Shown, Watch};
use wh_mq::{Broker as _, From, Gap, Happening, nats};
use wh_testkit::nats::{Options, Shape};
use wh_topology::Choices;
use wh_types::{Block, Chain, Cursor, Epoch, Timestamp};

/// Publishes blocks of a table, each counted as their publisher's next; gives their cursors.
async fn stored(broker: &nats::Broker, name: &str, process: &str, from: u64, count: u64) -> Result<Vec<Cursor>> {
    let chained = |n| Block { chain: Some(Chain { process: Arc::from(process), n }), ..block(name, 2) };
    let (blocks, mut cursors): (Vec<Block>, _) = ((from..from + count).map(chained).collect(), Vec::new());
    // a call has a budget of time for all of its blocks
    for some in blocks.chunks(200) {
        for outcome in broker.publish(some).await {
            cursors.push(outcome?.cursor());
        }
    }
    Ok(cursors)
}

async fn follow(broker: &nats::Broker, name: &str, from: From) -> Result<Watch> {
    Ok(Watch::new(broker.history(&tenant(), &table(name), from).await?))
}

/// A queue with room for few recent blocks.
async fn small(stand: &Stand, ring_bytes: usize) -> Result<nats::Broker> {
    let mut options = nats::Options::new(stand.spec.clone());
    options.ring_bytes = ring_bytes;
    Ok(nats::Broker::open(stand.connect().await?, options).await?)
}

fn before_all(cursor: Cursor) -> From {
    From::After(Cursor { sequence: 0, ..cursor })
}

const TABLES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Several processes publish into several tables and partitions until told to stop. Gives what each table got.
async fn load(stand: &Stand, publishers: usize, stop: &AtomicBool) -> Result<Vec<Vec<Cursor>>> {
    let one = async |number: usize| {
        let (broker, mut all) = (stand.broker().await?, vec![Vec::new(); TABLES.len()]);
        let process = format!("p{number}");
        while !stop.load(Ordering::Relaxed) {
            for (table, stored_so_far) in TABLES.iter().zip(&mut all) {
                let n = stored_so_far.len() as u64;
                stored_so_far.extend(stored(&broker, table, &process, n, 1 + n % 4).await?);
            }
        }
        broker.close().await;
        anyhow::Ok(all)
    };
    let each = futures::future::try_join_all((0..publishers).map(one)).await?;
    let mut all = vec![Vec::new(); TABLES.len()];
    for (table, cursors) in each.into_iter().flat_map(|one| one.into_iter().enumerate()) {
        all[table].extend(cursors);
    }
    all.iter_mut().for_each(|cursors| cursors.sort_unstable());
    Ok(all)
}

/// What is shown of one table to readers that come while it is published, from now, from a cursor and from a time, by a
/// process with this much room for recent blocks.
async fn seams_under_load(ring_bytes: usize) -> Result<()> {
    let own = Choices { partitions: 3, ..choices() };
    let stand = Stand::with(own, &Shape::default(), Options::default()).await?;
    let first = stand.broker().await?;
    let mut began = Vec::new();
    for table in TABLES {
        began.extend(stored(&first, table, "first", 0, 1).await?);
    }
    let reading = small(&stand, ring_bytes).await?;
    let stop = AtomicBool::new(false);
    let read = async {
        let mut watches = Vec::new();
        for _ in 0..6 {
            for (at, name) in TABLES.iter().enumerate() {
                for from in [From::Now, before_all(began[at]), From::After(began[at]), From::Time(Timestamp::default())]
                {
                    watches.push((at, from, follow(&reading, name, from).await?));
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        stop.store(true, Ordering::Relaxed);
        anyhow::Ok(watches)
    };
    let (written, watches) = tokio::try_join!(load(&stand, 3, &stop), read)?;
    for (at, from, mut watch) in watches {
        let mut all: Vec<Cursor> = written[at].clone();
        all.insert(0, began[at]);
        let shown = watch.until(*all.last().context("nothing was written")?).await?;
        ensure!(shown.gaps.is_empty() && shown.lives == 1, "{from:?} of {}: {:?}", TABLES[at], shown.gaps);
        let skipped = match from {
            From::Now => all.len() - shown.cursors.len(),
            From::After(cursor) => usize::from(cursor.sequence > 0),
            From::Time(_) => 0,
        };
        ensure!(shown.cursors == all[skipped..], "{from:?} of {}: {}", TABLES[at], shown.compared(&all[skipped..]));
    }
    reading.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_at_any_seam_under_load() -> Result<()> {
    seams_under_load(64 << 20).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_at_any_seam_with_little_memory() -> Result<()> {
    seams_under_load(64 << 10).await
}

#[tokio::test]
async fn another_process_goes_on_at_any_cursor() -> Result<()> {
    let stand = Stand::new().await?;
    let broker = stand.broker().await?;
    let mut cursors = Vec::new();
    for n in 0..60 {
        cursors.extend(stored(&broker, "t", "p", n, 1).await?);
        // others between
        stored(&broker, "u", "p", n, n % 3).await?;
    }
    let other = stand.broker().await?;
    for from in [0, 1, 17, 42, 58, 59] {
        let mut watch = follow(&other, "t", From::After(cursors[from])).await?;
        let shown = watch.live().await?;
        ensure!(shown.cursors == cursors[from + 1..], "{from}: {}", shown.compared(&cursors[from + 1..]));
        ensure!(shown.gaps.is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn what_the_history_removed_is_a_gap_before_the_first_block() -> Result<()> {
    let stand = Stand::new().await?;
    let broker = stand.broker().await?;
    let cursors = stored(&broker, "t", "p", 0, 30).await?;
    let history = &stand.spec.names().history;
    stand.operator().ask(&format!("STREAM.PURGE.{history}"), r#"{"keep":10}"#).await?;
    let other = stand.broker().await?;
    let gap = Gap { after: Some(cursors[4]), before: Some(cursors[20]) };
    let mut watch = follow(&other, "t", From::After(cursors[4])).await?;
    assert_eq!(watch.next().await?, Happening::Gap(gap));
    assert_eq!(watch.live().await?.cursors, cursors[20..]);
    // from a time: what may have been stored since is gone as well
    let mut watch = follow(&other, "t", From::Time(Timestamp::default())).await?;
    assert_eq!(watch.next().await?, Happening::Gap(Gap { after: None, before: Some(cursors[20]) }));
    // a cursor that is kept
    let mut watch = follow(&other, "t", From::After(cursors[20])).await?;
    assert_eq!(watch.live().await?, Shown::new(&cursors[21..]));
    // who heard all of it needs no history
    let mut watch = follow(&broker, "t", From::After(cursors[4])).await?;
    assert_eq!(watch.live().await?, Shown::new(&cursors[5..]));
    Ok(())
}

#[tokio::test]
async fn blocks_of_an_unknown_epoch_or_a_place_that_never_was_are_a_gap() -> Result<()> {
    let stand = Stand::new().await?;
    let broker = stand.broker().await?;
    let cursors = stored(&broker, "t", "p", 0, 5).await?;
    for after in [Cursor { epoch: Epoch(!cursors[0].epoch.0), ..cursors[2] }, Cursor { sequence: 99, ..cursors[2] }] {
        let mut watch = follow(&broker, "t", From::After(after)).await?;
        let gap = Gap { after: Some(after), before: Some(cursors[0]) };
        assert_eq!(watch.next().await?, Happening::Gap(gap));
        assert_eq!(watch.live().await?, Shown::new(&cursors));
    }
    Ok(())
}

#[tokio::test]
async fn a_slow_reader_catches_up_and_slows_nobody() -> Result<()> {
    let stand = Stand::new().await?;
    let broker = small(&stand, 64 << 10).await?;
    let first = stored(&broker, "t", "p", 0, 1).await?;
    let mut slow = follow(&broker, "t", From::After(first[0])).await?;
    let mut quick = follow(&broker, "t", From::Now).await?;
    assert_eq!(quick.next().await?, Happening::Live);
    let mut cursors = Vec::new();
    for n in 0..30 {
        let at = stored(&broker, "t", "p", 1 + n * 100, 100).await?;
        assert_eq!(quick.until(at[99]).await?, Shown::new(&at).without_live());
        cursors.extend(at);
    }
    let shown = slow.until(cursors[2_999]).await?;
    ensure!(shown.cursors == cursors, "{}", shown.compared(&cursors));
    assert_eq!((shown.gaps.len(), shown.lives), (0, 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_readers_are_shown_everything() -> Result<()> {
    let stand = Stand::new().await?;
    let broker = stand.broker().await?;
    let first = stored(&broker, "t", "p", 0, 50).await?;
    let opening = (0..200).map(|n| follow(&broker, "t", if n % 2 == 0 { From::Now } else { before_all(first[0]) }));
    let watches = futures::future::try_join_all(opening).await?;
    let mut cursors = first.clone();
    for n in 0..20 {
        cursors.extend(stored(&broker, "t", "p", 50 + n * 10, 10).await?);
    }
    let last = cursors[249];
    let readers = watches.into_iter().enumerate().map(|(n, mut watch)| {
        let expected = Shown::new(if n % 2 == 0 { &cursors[50..] } else { &cursors });
        async move {
            let shown = watch.until(last).await?;
            ensure!(shown == expected, "reader {n}: {}", shown.compared(&expected.cursors));
            Ok(())
        }
    });
    futures::future::try_join_all(readers).await?;
    Ok(())
}

#[tokio::test]
async fn a_process_that_does_not_serve_follows_nothing() -> Result<()> {
    let stand = Stand::new().await?;
    let mut options = nats::Options::new(stand.spec.clone());
    options.role = wh_topology::Role::Ingest;
    let broker = nats::Broker::open(stand.connect().await?, options).await?;
    let refused = broker.history(&tenant(), &table("t"), From::Now).await.unwrap_err();
    assert_eq!(refused.class(), wh_types::Class::Unsupported);
    publish(&broker, &block("t", 1)).await?;
    Ok(())
}
