//! What only this backend does: folders, disks that fail, space that is freed, damage, looking inside.

mod missing;
mod room;

use super::*;
use crate::{
    AckToken, Broker as _, Budget, DeadLetter, DeadLetterId, DeadLetterQuery, From, Happening, Receipt, Verdict,
};
use bytes::Bytes;
use std::{collections::BTreeMap, path::Path};
use wh_log::disk::sim::SimDisk;
use wh_types::{Block, BlockId, Class, Cursor, Encoding, RowCursor, Table, Tenant, Timestamp};

const WIDE: Budget = Budget { rows: 1 << 20, bytes: 1 << 30 };

fn block(table: &str, n: u32, bytes: usize) -> Block {
    let mut id = [7; 16];
    id[..4].copy_from_slice(&n.to_le_bytes());
    Block {
        id: BlockId(id),
        tenant: Tenant::default(),
        table: Table::new(table).unwrap(),
        received: Timestamp::from_millis(i64::from(n)),
        rows: 2,
        decoded_bytes: 5,
        encoding: Encoding::Zstd,
        body: Bytes::from((0..bytes).map(|at| (at % 253) as u8 ^ n.to_le_bytes()[0]).collect::<Vec<_>>()),
        chain: None,
        trace: None,
    }
}

/// Small segments, nothing remembered of what is settled, a cache of nothing: everything happens soon.
fn eager(dir: impl Into<PathBuf>) -> Options {
    let mut options = Options::new(dir);
    options.shards = 1;
    options.segment_bytes = 64 * 1024;
    options.reserve_bytes = 64 * 1024;
    options.cache_bytes = 0;
    options.duplicate_window = Duration::from_millis(50);
    options.default_allowance.history = Duration::ZERO;
    options.upkeep_every = Duration::from_millis(5);
    options
}

async fn store(broker: &Broker, blocks: &[Block]) -> Vec<Cursor> {
    let stored = |outcome: Result<Receipt>| match outcome.unwrap() {
        Receipt::Stored(cursor) => cursor,
        Receipt::Duplicate(cursor) => panic!("duplicate of {cursor}"),
    };
    broker.publish(blocks).await.into_iter().map(stored).collect()
}

async fn unsettled(broker: &Broker) -> u64 {
    broker.status().await.unwrap().tenants.values().map(|tenant| tenant.unsettled_blocks).sum()
}

/// Takes every block there is, settling those with a verdict, until nothing is unsettled but what was left so.
async fn take_all(broker: &Broker, verdict: impl Fn(&Block) -> Option<Verdict>) -> Vec<Block> {
    let (mut feeds, mut all, mut left, mut quiet) = (Vec::new(), Vec::new(), 0, 0);
    for unit in broker.units() {
        feeds.push(broker.feed(unit, WIDE).await.unwrap());
    }
    while unsettled(broker).await > left {
        let next = futures::future::select_all(feeds.iter_mut().map(|feed| feed.next()));
        // the last may be one that is put aside, and not delivered
        let Ok((next, at, _)) = tokio::time::timeout(Duration::from_millis(100), next).await else {
            quiet += 1;
            assert!(quiet < 300, "{} of {} were delivered", left, unsettled(broker).await);
            continue;
        };
        let delivery = next.unwrap().unwrap();
        match verdict(&delivery.block) {
            Some(verdict) => feeds[at].settle().settle(&[delivery.token], verdict).await.pop().unwrap().unwrap(),
            None => left += 1,
        }
        all.push(delivery.block);
    }
    for feed in feeds {
        feed.release().await.unwrap();
    }
    all
}

async fn until(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !check().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), wait).await.unwrap_or_else(|_| panic!("waited until {what}"));
}

async fn refused(options: Options) -> String {
    let error = Broker::open(options).await.unwrap_err();
    assert_eq!(error.class(), Class::Denied, "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_refused_with_its_path_and_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let text = refused(Options::new(&file)).await;
    assert!(text.contains(file.to_str().unwrap()), "{text}");
    let text = refused(Options::new(file.join("under"))).await;
    assert!(text.contains(file.to_str().unwrap()), "{text}");

    let queue = dir.path().join("queue");
    let open = Broker::open(Options::new(&queue)).await.unwrap();
    let text = refused(Options::new(&queue)).await;
    let owner = format!("process {}", std::process::id());
    assert!(text.contains(queue.to_str().unwrap()) && text.contains(&owner), "{text}");
    open.close().await;
    Broker::open(Options::new(&queue)).await.unwrap().close().await;
}

#[tokio::test]
async fn a_queue_that_is_dropped_gives_its_folder_up() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(Options::new(dir.path())).await.unwrap();
    let feed = broker.feed(broker.units()[0], WIDE).await.unwrap();
    store(&broker, &[block("t", 1, 10)]).await;
    drop((broker, feed));
    until("the folder is free", async || match Broker::open(Options::new(dir.path())).await {
        Ok(broker) => {
            assert_eq!(take_all(&broker, |_| None).await.len(), 1);
            broker.close().await;
            true
        }
        Err(error) => {
            assert_eq!(error.class(), Class::Denied);
            false
        }
    })
    .await;
}

fn on(disk: &SimDisk) -> Options {
    let mut options = eager("/queue");
    options.disk = Arc::new(disk.clone());
    options
}

#[tokio::test]
async fn a_full_disk_refuses_and_takes_again_when_there_is_space() {
    let disk = SimDisk::new(1);
    let broker = Broker::open(on(&disk)).await.unwrap();
    store(&broker, &[block("t", 0, 100)]).await;
    disk.set_capacity(Some(disk.files().iter().map(|(_, size)| size).sum::<u64>() + 20_000));
    let (mut n, refused) = (1, loop_until_refused(&broker).await);
    n += refused.0;
    assert!(matches!(refused.1.class(), Class::Exhausted { .. }), "{}", refused.1);
    assert_eq!(refused.1.code(), "queue.no_space");
    let status = broker.status().await.unwrap();
    assert!(!status.accepting && status.reason.is_some_and(|reason| reason.contains("full")));
    disk.set_capacity(None);
    // the very block that was refused is taken under its id
    until("there is space", async || broker.publish(&[block("t", n, 1_000)]).await[0].is_ok()).await;
    assert!(broker.status().await.unwrap().accepting);
    broker.close().await;
    let broker = Broker::open(on(&disk)).await.unwrap();
    let left = take_all(&broker, |_| None).await;
    assert_eq!(left.len(), n as usize + 1, "nothing that was answered is missing, nothing refused is there");
}

/// Publishes until the disk is full; how many were stored, and what was said.
async fn loop_until_refused(broker: &Broker) -> (u32, Error) {
    for n in 1..1_000 {
        if let Err(error) = broker.publish(&[block("t", n, 1_000)]).await.remove(0) {
            return (n - 1, error);
        }
    }
    panic!("the disk never filled")
}

#[tokio::test]
async fn a_failed_sync_leaves_the_outcome_unknown_and_its_id_resolves_it() {
    let disk = SimDisk::new(2);
    let broker = Broker::open(on(&disk)).await.unwrap();
    store(&broker, &[block("t", 0, 100)]).await;
    // with the first group the log also notes its segments; the next comes after that
    store(&broker, &[block("t", 9, 0).probe()]).await;
    let lost = block("t", 1, 100);
    disk.fail_syncs(1);
    let error = broker.publish(std::slice::from_ref(&lost)).await.remove(0).unwrap_err();
    assert_eq!(error.class(), Class::Unknown);
    // the probe of decision D4: the rows never will be stored
    let probe = broker.publish(&[lost.probe()]).await.remove(0).unwrap();
    assert!(matches!(probe, Receipt::Stored(_)));
    assert_eq!(broker.stored_rows(&lost.tenant, &lost.table, lost.id, probe.cursor()).await.unwrap(), Some(0));
    store(&broker, &[block("t", 2, 100)]).await;
    disk.cut_power();
    broker.close().await;
    disk.power_on();
    let broker = Broker::open(on(&disk)).await.unwrap();
    let left = take_all(&broker, |_| None).await;
    assert_eq!(left, [block("t", 0, 100), block("t", 2, 100)]);
}

#[tokio::test]
async fn space_is_freed_although_one_block_of_another_table_stays_unsettled() {
    let disk = SimDisk::new(3);
    let broker = Broker::open(on(&disk)).await.unwrap();
    let stuck = block("stuck", 0, 500);
    let at = store(&broker, std::slice::from_ref(&stuck)).await[0];
    let letter = DeadLetter {
        id: DeadLetterId(RowCursor { block: at, row: 0 }),
        tenant: Tenant::default(),
        table: Table::new("t").unwrap(),
        body: Bytes::from_static(b"{}"),
        reason: "why".into(),
        code: "27".into(),
        column: None,
        attempted: Timestamp::default(),
        received: Timestamp::default(),
        retry_until: None,
    };
    broker.dead_letter(std::slice::from_ref(&letter)).await.pop().unwrap().unwrap();
    let mut feed = broker.feed(broker.units()[0], WIDE).await.unwrap();
    let settle = feed.settle();
    // 4 MiB through a queue whose segments have 64 KiB
    for n in (10..4_100).step_by(64) {
        let blocks: Vec<Block> = (n..n + 64).map(|n| block("t", n, 1_000)).collect();
        store(&broker, &blocks).await;
        let mut tokens: Vec<AckToken> = Vec::new();
        while tokens.len() < 64 {
            let delivery = feed.next().await.unwrap().unwrap();
            if delivery.block != stuck {
                tokens.push(delivery.token);
            }
        }
        settle.settle(&tokens, Verdict::Ack).await;
    }
    until("the disk holds little", async || {
        let bytes = broker.status().await.unwrap().disk_bytes.unwrap();
        bytes < 200 * 1024
    })
    .await;
    feed.release().await.unwrap();
    // and what was copied forward is read from where it is now, before and after a reopen
    for round in 0..3 {
        let broker = if round == 0 { broker.clone() } else { Broker::open(on(&disk)).await.unwrap() };
        assert_eq!(take_all(&broker, |_| None).await, std::slice::from_ref(&stuck).to_vec(), "round {round}");
        let page = broker.dead_letters(&Tenant::default(), &DeadLetterQuery::default()).await.unwrap();
        assert_eq!(page.letters, std::slice::from_ref(&letter));
        broker.close().await;
    }
}

#[tokio::test]
async fn damage_in_the_middle_is_told_with_its_place_and_the_rest_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = eager(dir.path());
    options.duplicate_window = Duration::from_secs(600);
    let broker = Broker::open(options.clone()).await.unwrap();
    let blocks: Vec<Block> = (0..200).map(|n| block("t", n, 1_000)).collect();
    for piece in blocks.chunks(10) {
        store(&broker, piece).await;
    }
    broker.close().await;
    let sealed = |path: &Path| path.extension().is_some_and(|extension| extension == "seal");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| sealed(path));
    files.sort();
    let mut bytes = std::fs::read(&files[1]).unwrap();
    // inside a body: that of the block whose pattern begins here
    let at = bytes.windows(8).position(|window| window == &block("t", 70, 1_000).body[..8]).unwrap();
    bytes[at + 500] ^= 0x40;
    std::fs::write(&files[1], bytes).unwrap();

    let report = inspect::inspect(dir.path(), None).unwrap();
    assert!(report.is_sound(), "heads are whole: {report:?}");
    let report = inspect::verify(dir.path(), None).unwrap();
    assert_eq!(report.damage_count, 1);
    let (damage, segment) = (report.damages[0], report.segments[1]);
    assert_eq!(damage.place.segment, segment.number);
    assert!((damage.place.offset as usize..(damage.place.offset + damage.place.len) as usize).contains(&(at + 500)));
    assert!(segment.damaged && segment.bytes > 0);

    let broker = Broker::open(options.clone()).await.unwrap();
    let table = Table::new("t").unwrap();
    let start = From::Time(Timestamp::default());
    let mut history = broker.history(&Tenant::default(), &table, start).await.unwrap();
    let (mut shown, mut gaps) = (0, 0);
    loop {
        match history.next().await.unwrap().unwrap() {
            Happening::Block(..) => shown += 1,
            Happening::Gap(_) => gaps += 1,
            Happening::Live => break,
        }
    }
    assert_eq!((shown, gaps), (199, 1), "a reader is told that one is missing");
    let left = take_all(&broker, |_| Some(Verdict::Ack)).await;
    let served: Vec<Block> = blocks.iter().filter(|wanted| left.contains(wanted)).cloned().collect();
    assert_eq!((left.len(), served), (199, left));
    assert!(broker.unowned().await.unwrap().is_empty(), "the damaged one is put aside");
    broker.close().await;
}

#[tokio::test]
async fn looking_inside_counts_what_is_there_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let missing = inspect::inspect(&dir.path().join("nowhere"), None).unwrap_err();
    assert!(missing.to_string().contains("nowhere"), "{missing}");
    let empty = inspect::inspect(dir.path(), None).unwrap_err();
    assert_eq!(empty.class(), Class::Denied, "a folder without a queue is not made one");
    let mut options = Options::new(dir.path());
    options.default_allowance.history = Duration::from_secs(3_600);
    let broker = Broker::open(options).await.unwrap();
    let cursors = store(&broker, &(0..10).map(|n| block("a", n, 100)).collect::<Vec<_>>()).await;
    store(&broker, &[block("b", 20, 100)]).await;
    take_all(&broker, |block| (block.id.0[0] < 4).then_some(Verdict::Ack)).await;
    let busy = inspect::inspect(dir.path(), None).unwrap_err();
    assert!(busy.to_string().contains("process"), "{busy}");
    broker.close().await;
    let listing = || {
        let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap());
        let read = |entry: std::fs::DirEntry| (entry.file_name(), std::fs::read(entry.path()).unwrap());
        files.map(read).filter(|(name, _)| name != "LOCK").collect::<BTreeMap<_, _>>()
    };
    let before = listing();
    let report = inspect::verify(dir.path(), None).unwrap();
    assert!(before == listing(), "files were changed");
    assert!(report.is_sound() && !report.torn);
    assert_eq!(report.epoch, Some(cursors[0].epoch));
    let tenant = &report.tenants[&Tenant::default()];
    let (a, b) = (tenant.tables[&Table::new("a").unwrap()], tenant.tables[&Table::new("b").unwrap()]);
    assert_eq!((a.blocks, a.rows, a.unsettled_blocks, a.unsettled_rows), (10, 20, 6, 12));
    assert_eq!((a.first, a.last), (Some(cursors[0]), Some(cursors[9])));
    assert_eq!((b.blocks, b.unsettled_blocks), (1, 1));
    assert!(report.segments.iter().map(|segment| segment.live_bytes).sum::<u64>() > 11 * 100);
    assert!(report.next_sequence > cursors[9].sequence);
}

#[tokio::test]
async fn five_thousand_mostly_idle_tables_cost_little() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(Options::new(dir.path())).await.unwrap();
    let blocks: Vec<Block> = (0..5_000).map(|n| block(&format!("table {n}"), n, 50)).collect();
    store(&broker, &blocks).await;
    assert_eq!(take_all(&broker, |_| Some(Verdict::Ack)).await.len(), 5_000);
    let mut feed = broker.feed(broker.unit_of(&blocks[0].tenant, &blocks[0].table), WIDE).await.unwrap();
    let fresh = Block { id: BlockId([9; 16]), ..blocks[0].clone() };
    store(&broker, std::slice::from_ref(&fresh)).await;
    assert_eq!(feed.next().await.unwrap().unwrap().block, fresh);
    broker.close().await;
    drop((feed, broker));
    let broker = Broker::open(Options::new(dir.path())).await.unwrap();
    assert_eq!(broker.recovery().blocks, 1);
    broker.close().await;
}

#[tokio::test]
async fn whatever_happens_to_the_files_opening_and_reading_never_panics() {
    let dir = tempfile::tempdir().unwrap();
    let entropy = wh_types::SeededEntropy::new(9);
    let pick = |of: usize| usize::try_from(entropy.next_u64() % of.max(1) as u64).unwrap();
    let whole = dir.path().join("whole");
    let broker = Broker::open(eager(&whole)).await.unwrap();
    for n in 0..60 {
        store(&broker, &[block("t", n, 3_000)]).await;
    }
    take_all(&broker, |block| block.id.0[0].is_multiple_of(2).then_some(Verdict::Ack)).await;
    broker.close().await;
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_owned(), std::fs::read(&path).unwrap())
    };
    let files: Vec<_> = std::fs::read_dir(&whole).unwrap().map(read).collect();
    let mut opened = 0;
    for round in 0..16 {
        let mut files = files.clone();
        for _ in 0..1 + pick(6) {
            let file = pick(files.len());
            let bytes = &mut files[file].1;
            let at = pick(bytes.len());
            match bytes.get_mut(at) {
                Some(byte) if pick(4) > 0 => *byte ^= 1 << pick(8),
                _ => bytes.truncate(at),
            }
        }
        let broken = dir.path().join(round.to_string());
        std::fs::create_dir(&broken).unwrap();
        for (name, bytes) in files {
            std::fs::write(broken.join(name), bytes).unwrap();
        }
        // a folder that is refused is an answer too
        if let Ok(broker) = Broker::open(eager(&broken)).await {
            opened += 1;
            take_all(&broker, |_| Some(Verdict::Ack)).await;
            store(&broker, &[block("t", 1_000, 10)]).await;
            broker.close().await;
        }
    }
    assert!(opened > 6, "most damage is survived: {opened} of 16 opened");
}
