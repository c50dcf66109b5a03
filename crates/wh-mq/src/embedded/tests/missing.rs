//! Segments that vanished or were cut short: what an operator and a reader are told.

use super::*;

/// A closed queue of one table over several segments, everything kept.
async fn queue(dir: &Path) -> (Options, Vec<Cursor>) {
    let mut options = eager(dir);
    options.duplicate_window = Duration::from_secs(600);
    options.default_allowance.history = Duration::from_secs(600);
    let broker = Broker::open(options.clone()).await.unwrap();
    let mut cursors = Vec::new();
    for n in 0..200 {
        cursors.extend(store(&broker, &[block("t", n, 1_000)]).await);
    }
    broker.close().await;
    (options, cursors)
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let of_a_segment =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "seal" || extension == "open");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(of_a_segment);
    files.sort();
    files
}

fn cut(file: &Path, bytes: u64) {
    std::fs::OpenOptions::new().write(true).open(file).unwrap().set_len(bytes).unwrap();
}

fn size(file: &Path) -> u64 {
    std::fs::metadata(file).unwrap().len()
}

/// What a reader from the beginning is shown: blocks, and gaps.
async fn shown(broker: &Broker) -> (usize, usize) {
    let start = From::Time(Timestamp::default());
    let mut history = broker.history(&Tenant::default(), &Table::new("t").unwrap(), start).await.unwrap();
    let (mut blocks, mut gaps) = (0, 0);
    loop {
        match history.next().await.unwrap().unwrap() {
            Happening::Block(..) => blocks += 1,
            Happening::Gap(_) => gaps += 1,
            Happening::Live => return (blocks, gaps),
        }
    }
}

#[tokio::test]
async fn a_segment_deleted_in_the_middle_is_named_and_the_rest_is_served_with_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let (options, cursors) = queue(dir.path()).await;
    let whole = inspect::verify(dir.path(), None).unwrap();
    assert!(whole.is_sound() && whole.listed);
    let files = segments(dir.path());
    assert!(files.len() >= 3, "{files:?}");
    std::fs::remove_file(&files[1]).unwrap();
    for look in [inspect::inspect, inspect::verify] {
        let report = look(dir.path(), None).unwrap();
        let missing = report.missing[0];
        assert!(!report.is_sound() && report.damage_count == 0 && missing.whole);
        assert_eq!((report.missing.len(), missing.place.segment), (1, whole.segments[1].number));
        assert_eq!(u64::from(missing.place.offset + missing.place.len), whole.segments[1].bytes);
    }
    let broker = Broker::open(options.clone()).await.unwrap();
    assert_eq!(broker.recovery().missing.len(), 1);
    let (blocks, gaps) = shown(&broker).await;
    assert!(blocks < 200 && gaps == 1, "{blocks} blocks, {gaps} gaps");
    let left = take_all(&broker, |_| None).await;
    assert_eq!(left.len(), blocks);
    assert!(store(&broker, &[block("t", 500, 1_000)]).await[0].sequence > cursors[199].sequence);
    broker.close().await;
    // it is not forgotten by starting once
    assert_eq!(inspect::verify(dir.path(), None).unwrap().missing.len(), 1);
    let broker = Broker::open(options).await.unwrap();
    assert_eq!(shown(&broker).await, (blocks + 1, 1));
    broker.close().await;
}

#[tokio::test]
async fn the_only_segment_deleted_is_named_and_no_cursor_is_given_twice() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 1 << 20, ..eager(dir.path()) };
    let broker = Broker::open(options.clone()).await.unwrap();
    let cursors = store(&broker, &(0..20).map(|n| block("t", n, 1_000)).collect::<Vec<_>>()).await;
    broker.close().await;
    let files = segments(dir.path());
    assert_eq!(files.len(), 1);
    std::fs::remove_file(&files[0]).unwrap();
    let report = inspect::verify(dir.path(), None).unwrap();
    assert!(!report.is_sound() && report.missing[0].whole && report.epoch == Some(cursors[0].epoch));
    let broker = Broker::open(options).await.unwrap();
    assert_eq!((broker.recovery().missing.len(), broker.recovery().blocks), (1, 0));
    let next = store(&broker, &[block("t", 500, 1_000)]).await[0];
    assert!(next > cursors[19], "{next} was {} before", cursors[19]);
    broker.close().await;
}

#[tokio::test]
async fn a_sealed_segment_cut_in_the_middle_is_named_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let (options, _) = queue(dir.path()).await;
    let file = &segments(dir.path())[1];
    let at = size(file) / 2;
    cut(file, at);
    let report = inspect::verify(dir.path(), None).unwrap();
    assert_eq!((report.missing.len(), u64::from(report.missing[0].place.offset)), (1, at));
    assert!(!report.missing[0].whole && report.damage_count > 0 && report.segments[1].damaged);
    let broker = Broker::open(options).await.unwrap();
    let (blocks, gaps) = shown(&broker).await;
    assert!(blocks < 200 && gaps >= 1, "{blocks} blocks, {gaps} gaps");
    broker.close().await;
}

#[tokio::test]
async fn synced_blocks_cut_from_the_live_end_are_missed_and_a_torn_write_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (options, _) = queue(dir.path()).await;
    let file = segments(dir.path()).pop().unwrap();
    // what no answer ever spoke of: half a write
    let end = size(&file);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes.extend_from_slice(&[0x5a; 700]);
    std::fs::write(&file, bytes).unwrap();
    assert!(inspect::verify(dir.path(), None).unwrap().is_sound());
    // the last block was answered for; behind it stands only the mark of the end
    cut(&file, end - 32 - 500);
    let report = inspect::verify(dir.path(), None).unwrap();
    assert_eq!((report.missing.len(), u64::from(report.missing[0].place.offset)), (1, end - 32 - 500));
    assert!(!report.torn);
    let broker = Broker::open(options).await.unwrap();
    let (blocks, gaps) = shown(&broker).await;
    assert!((150..200).contains(&blocks) && gaps >= 1, "{blocks} blocks, {gaps} gaps");
    broker.close().await;
}

#[tokio::test]
async fn a_queue_from_before_the_list_says_that_it_cannot_know() {
    let dir = tempfile::tempdir().unwrap();
    let (options, _) = queue(dir.path()).await;
    std::fs::remove_file(dir.path().join("extent")).unwrap();
    let report = inspect::verify(dir.path(), None).unwrap();
    assert!(report.is_sound() && !report.listed);
    let broker = Broker::open(options).await.unwrap();
    assert!(!broker.recovery().listed);
    broker.close().await;
    assert!(inspect::verify(dir.path(), None).unwrap().listed);
}

#[tokio::test]
async fn a_budget_is_shown_where_it_is_known_and_not_made_up() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(eager(dir.path())).await.unwrap();
    let acme = Tenant::new("acme").unwrap();
    store(&broker, &[block("t", 1, 100), Block { tenant: acme.clone(), ..block("t", 2, 100) }]).await;
    let allowance = Allowance { bytes: 12_345_678, table_bytes: 12_345_678, history: Duration::ZERO };
    broker.set_allowance(&acme, allowance).await.unwrap();
    broker.close().await;
    let report = inspect::inspect(dir.path(), None).unwrap();
    assert_eq!(report.tenants[&acme].budget_bytes, Some(12_345_678));
    assert_eq!(report.tenants[&Tenant::default()].budget_bytes, None);
    let configured = Allowance { bytes: 99, ..allowance };
    let report = inspect::inspect(dir.path(), Some(configured)).unwrap();
    assert_eq!(report.tenants[&acme].budget_bytes, Some(12_345_678));
    assert_eq!(report.tenants[&Tenant::default()].budget_bytes, Some(99));
}
