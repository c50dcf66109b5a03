//! A full disk that settled history could make room on.

use super::*;

/// Everything is kept for long, so that nothing goes by itself.
fn patient(disk: &SimDisk) -> Options {
    let mut options = on(disk);
    options.duplicate_window = Duration::from_secs(600);
    options.default_allowance.history = Duration::from_secs(600);
    options
}

/// As much as the disk has now and a little more.
fn limit(disk: &SimDisk, more: u64) {
    disk.set_capacity(Some(disk.used() + more));
}

/// Publishes one by one until the disk is full or so many are stored; gives how many, and the refusal.
async fn fill(broker: &Broker, numbers: std::ops::Range<u32>, bytes: usize) -> (u32, Option<Error>) {
    let first = numbers.start;
    for n in numbers.clone() {
        if let Err(error) = broker.publish(&[block("t", n, bytes)]).await.remove(0) {
            return (n - first, Some(error));
        }
    }
    (numbers.end - first, None)
}

fn missed(happening: &Happening) -> bool {
    matches!(happening, Happening::Gap(_))
}

#[tokio::test]
async fn settled_history_is_given_up_on_a_full_disk_and_publishing_goes_on() {
    // small segments, and one that is never full by itself
    for segment_bytes in [64 * 1024, 64 * 1024 * 1024] {
        let disk = SimDisk::new(4);
        let options = Options { segment_bytes, ..patient(&disk) };
        let broker = Broker::open(options.clone()).await.unwrap();
        store(&broker, &[block("t", 0, 100)]).await;
        limit(&disk, 200_000);
        let (stored, refused) = fill(&broker, 1..1_000, 8_000).await;
        let refused = refused.expect("nothing is settled, so the disk is full for good");
        assert!((10..50).contains(&stored), "{stored}");
        assert_eq!((refused.code(), matches!(refused.class(), Class::Exhausted { .. })), ("queue.no_space", true));
        let status = broker.status().await.unwrap();
        assert!(!status.accepting && status.reason.is_some_and(|reason| reason.contains("full")));

        let mut history = broker.history(&Tenant::default(), &Table::new("t").unwrap(), From::Now).await.unwrap();
        assert!(matches!(history.next().await.unwrap(), Some(Happening::Live)));
        assert_eq!(take_all(&broker, |_| Some(Verdict::Ack)).await.len(), stored as usize + 1);
        // far more than the disk has, a little at a time
        let mut next = 2_000;
        let mut refusals = 0;
        while next < 2_200 {
            let (stored, refused) = fill(&broker, next..next + 10, 8_000).await;
            next += stored;
            refusals += usize::from(refused.is_some());
            // once everything is settled it has no excuse
            take_all(&broker, |_| Some(Verdict::Ack)).await;
            until("there is room again", async || fill(&broker, next..next + 1, 8_000).await.1.is_none()).await;
            next += 1;
        }
        take_all(&broker, |_| Some(Verdict::Ack)).await;
        assert!(refusals < 12, "{refusals}: where enough is settled, nobody is refused");
        assert!(broker.status().await.unwrap().accepting);
        // ids are known for their window although their blocks are gone, here and after a restart
        for round in 0..2 {
            for n in [0, 1, 2_000, 2_199] {
                let again = broker.publish(&[block("t", n, 8_000)]).await.remove(0).unwrap();
                assert!(matches!(again, Receipt::Duplicate(_)), "round {round}: {again:?} for {n}");
            }
            if round == 0 {
                broker.close().await;
                let other = Broker::open(options.clone()).await.unwrap();
                assert_eq!((other.recovery().damage_count, other.recovery().missing.len()), (0, 0));
                assert_eq!(other.recovery().blocks, 0, "what was settled stays so");
                for n in [0, 1, 2_000, 2_199] {
                    let again = other.publish(&[block("t", n, 8_000)]).await.remove(0).unwrap();
                    assert!(matches!(again, Receipt::Duplicate(_)), "{again:?} for {n}");
                }
                let start = From::Time(Timestamp::default());
                let mut history = other.history(&Tenant::default(), &Table::new("t").unwrap(), start).await.unwrap();
                assert!(missed(&history.next().await.unwrap().unwrap()), "a reader is told of what was given up");
                other.close().await;
                break;
            }
        }
    }
}

#[tokio::test]
async fn what_is_not_settled_is_never_given_up_and_moves_out_of_the_way() {
    let disk = SimDisk::new(5);
    let mut options = patient(&disk);
    options.ack_wait = Duration::from_secs(600);
    let broker = Broker::open(options.clone()).await.unwrap();
    let (stuck, rest): (Vec<Block>, Vec<Block>) =
        (0..100).map(|n| block("t", n, 2_000)).partition(|block| block.id.0[0].is_multiple_of(20));
    store(&broker, &(0..100).map(|n| block("t", n, 2_000)).collect::<Vec<_>>()).await;
    take_all(&broker, |block| rest.contains(block).then_some(Verdict::Ack)).await;
    limit(&disk, 10_000);
    for next in 1_000..1_030 {
        until("there is room again", async || fill(&broker, next..next + 1, 8_000).await.1.is_none()).await;
        take_all(&broker, |block| (!stuck.contains(block)).then_some(Verdict::Ack)).await;
    }
    broker.close().await;
    disk.set_capacity(None);
    let broker = Broker::open(options).await.unwrap();
    assert_eq!(take_all(&broker, |_| None).await, stuck);
    broker.close().await;
}

#[tokio::test]
async fn a_disk_that_is_really_full_loses_nothing_and_is_used_again_when_there_is_room() {
    let disk = SimDisk::new(6);
    let broker = Broker::open(patient(&disk)).await.unwrap();
    let reserve = |disk: &SimDisk| disk.files().iter().any(|(path, _)| path.ends_with("reserve"));
    assert!(reserve(&disk));
    limit(&disk, 100_000);
    let (stored, refused) = fill(&broker, 0..1_000, 8_000).await;
    assert!(refused.is_some());
    // it is asked again and again, and somebody settles nothing
    for n in 0..50 {
        let refused = broker.publish(&[block("t", 5_000 + n, 8_000)]).await.remove(0).unwrap_err();
        assert_eq!(refused.code(), "queue.no_space");
    }
    assert!(reserve(&disk), "it is kept for when there is something to free");
    // others take what is left, the reserve too
    broker.close().await;
    disk.kill_process();
    let broker = Broker::open(patient(&disk)).await.unwrap();
    assert_eq!(broker.recovery().blocks, u64::from(stored), "a full disk is started on");
    // without anybody asking it is noticed that there is room
    assert!(broker.publish(&[block("t", 7_000, 8_000)]).await[0].is_err());
    assert!(!broker.status().await.unwrap().accepting);
    disk.set_capacity(Some(disk.used() + 16 * 1024 * 1024));
    until("it accepts", async || broker.status().await.unwrap().accepting).await;
    store(&broker, &[block("t", 8_000, 8_000)]).await;
    assert_eq!(take_all(&broker, |_| None).await.len(), stored as usize + 1);
    broker.close().await;
}

#[tokio::test]
async fn without_a_reserve_a_full_disk_waits_for_somebody_to_make_room() {
    let disk = SimDisk::new(7);
    let options = Options { reserve_bytes: 0, ..patient(&disk) };
    let broker = Broker::open(options).await.unwrap();
    store(&broker, &[block("t", 0, 100)]).await;
    disk.set_capacity(Some(disk.used() + 50_000));
    let (stored, refused) = fill(&broker, 1..1_000, 8_000).await;
    assert!(refused.is_some());
    disk.set_capacity(None);
    until("there is room", async || fill(&broker, 900..901, 8_000).await.1.is_none()).await;
    assert_eq!(take_all(&broker, |_| None).await.len(), stored as usize + 2);
    broker.close().await;
}
