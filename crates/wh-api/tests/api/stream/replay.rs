//! What was stored before: to a client that comes back, or that asks for it.

use super::{Event, Reading, end, gap, old, ready, resume, row};
use crate::rig::{Rig, Setup, get, rows_of};
use std::{sync::Arc, time::Duration};
use wh_api::ApiOptions;
use wh_mq::{
    Allowance, Broker, Kind,
    faulty::{Fault, Op},
    sim,
};
use wh_types::{Epoch, SystemClock};

const PATH: &str = "/v1/stream?table=t";

fn queue(history: Duration) -> Arc<dyn Broker> {
    Arc::new(sim::Broker::new(sim::Options {
        epoch: Epoch(0xe),
        shards: 1,
        ack_wait: Duration::from_secs(60),
        duplicate_window: Duration::from_secs(120),
        default_allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history },
        dead_letter_share: 10,
        clock: Arc::new(SystemClock),
    }))
}

/// A process over that queue.
fn process(queue: &Arc<dyn Broker>) -> Rig {
    Rig::with(Setup { queue: Some(Arc::clone(queue)), ..Setup::default() })
}

/// Three blocks of two rows each: 1 to 6.
async fn six(rig: &Rig) {
    for n in [1, 3, 5] {
        rig.lines(format!("{{\"id\":{n}}}\n{{\"id\":{}}}", n + 1)).await;
    }
}

fn six_events() -> Vec<Event> {
    (0..6).map(|n| old(&format!("0000000e-{}.{}", n / 2 + 1, n % 2), &format!("{{\"id\":{}}}", n + 1))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_gets_what_it_missed_marked_and_then_what_is_live() {
    let queue = queue(Duration::from_secs(600));
    let rig = process(&queue);
    six(&rig).await;
    let all = six_events();
    // from the history, and while somebody reads also from the ring
    let keeper = Reading::open(&rig, get(PATH)).await;
    six(&rig).await;
    let later = all.iter().map(|event| {
        let (block, row) = event.id().strip_prefix("0000000e-").unwrap().split_once('.').unwrap();
        let block = block.parse::<u64>().unwrap() + 3;
        Event { id: Some(format!("0000000e-{block}.{row}")), ..event.clone() }
    });
    let all: Vec<_> = all.iter().cloned().chain(later).collect();
    for (n, event) in all.iter().enumerate() {
        for request in [resume(PATH, event.id()), get(&format!("{PATH}&since={}", event.id()))] {
            let mut reading = Reading::begin(&rig, request).await;
            reading.shows(&all[n + 1..]).await;
            let ready = reading.event().await;
            assert_eq!(ready.kind, "ready");
            assert!(ready.id().starts_with("0000000e-6"), "{ready:?}");
        }
    }
    drop(keeper);
    let mut reading = Reading::begin(&rig, resume(PATH, "0000000e-6.0")).await;
    reading.shows(&[old("0000000e-6.1", r#"{"id":6}"#), ready("0000000e-6.1", "t")]).await;
    rig.json(r#"{"id":7}"#).await;
    reading.shows(&[row("0000000e-7.0", r#"{"id":7}"#)]).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_ring_is_not_asked_of_the_history() {
    let rig = Rig::new();
    let _keeper = Reading::open(&rig, get(PATH)).await;
    six(&rig).await;
    rig.script.next(Op::History, Fault::Fail(Kind::Unavailable));
    let mut reading = Reading::begin(&rig, resume(PATH, "0000000e-1.0")).await;
    reading.shows(&six_events()[1..]).await;
    reading.shows(&[ready("0000000e-3.1", "t")]).await;
    assert!(!rig.script.is_done(), "nobody opened a history");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_saw_no_row_yet_goes_on_from_its_ready() {
    let queue = queue(Duration::from_secs(600));
    let (one, two) = (process(&queue), process(&queue));
    one.json(r#"{"id":0}"#).await;
    let mut reading = Reading::begin(&one, get(PATH)).await;
    let id = reading.event().await.id.unwrap();
    drop(reading);
    one.json(r#"{"id":1}"#).await;
    for rig in [one, two] {
        let mut reading = Reading::begin(&rig, resume(PATH, &id)).await;
        reading.shows(&[old("0000000e-2.0", r#"{"id":1}"#), ready("0000000e-2.0", "t")]).await;
    }
}

#[tokio::test]
async fn a_stream_begins_at_a_time_or_an_age() {
    let rig = Rig::new();
    six(&rig).await;
    for since in ["1h", "1h30m", "2025-01-01T00:00:00Z", "2025-01-01T01:00:00%2B01:00"] {
        let mut reading = Reading::begin(&rig, get(&format!("{PATH}&since={since}"))).await;
        reading.shows(&six_events()).await;
        reading.shows(&[ready("0000000e-3.1", "t")]).await;
    }
    let mut reading = Reading::begin(&rig, get(&format!("{PATH}&since=2100-01-01T00:00:00Z"))).await;
    reading.shows(&[ready("0000000e-3", "t")]).await;
    rig.json(r#"{"id":7}"#).await;
    reading.shows(&[row("0000000e-4.0", r#"{"id":7}"#)]).await;
}

#[tokio::test(start_paused = true)]
async fn what_no_history_has_is_a_gap() {
    let all = six_events();
    for keeps in [false, true] {
        let queue = queue(Duration::from_secs(600));
        let rig = process(&queue);
        six(&rig).await;
        let _keeper = if keeps { Some(Reading::open(&rig, get(PATH)).await) } else { None };
        // of another epoch, and from beyond its end: then what there is
        for id in ["0000000f-2.0", "0000000e-99.0", "0000000e-99"] {
            let mut reading = Reading::begin(&rig, resume(PATH, id)).await;
            let told = reading.event().await;
            assert_eq!((told.kind.as_str(), &told.value()["reason"]), ("gap", &"lost".into()), "{id}");
            reading.shows(&all).await;
            reading.shows(&[ready("0000000e-3.1", "t")]).await;
        }
        // right beyond the end
        let mut reading = Reading::begin(&rig, resume(PATH, "0000000e-4.0")).await;
        reading.shows(&[gap(Some("0000000e-4.0"), None, "lost"), ready("0000000e-3", "t")]).await;
        rig.json(r#"{"id":7}"#).await;
        let live = reading.event().await;
        assert_eq!(
            (live.data.as_str(), live.replay),
            (r#"{"id":7}"#, false),
            "it is not taken for what the client had"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_history_trimmed_below_the_place_gives_a_gap_that_names_it() {
    let queue = queue(Duration::from_secs(1));
    let rig = process(&queue);
    six(&rig).await;
    assert_eq!(rig.queued().await.iter().flat_map(rows_of).count(), 6);
    tokio::time::sleep(Duration::from_secs(5)).await;
    // looking, and storing, is what lets go of the old
    queue.status().await.unwrap();
    rig.json(r#"{"id":7}"#).await;
    queue.status().await.unwrap();
    let mut reading = Reading::begin(&rig, resume(PATH, "0000000e-1.1")).await;
    let told = reading.event().await;
    assert_eq!((told.kind.as_str(), &told.value()["from"]), ("gap", &"0000000e-1.1".into()));
    reading.shows(&[old("0000000e-4.0", r#"{"id":7}"#), ready("0000000e-4.0", "t")]).await;
}

#[tokio::test(start_paused = true)]
async fn a_history_that_cannot_be_read_is_tried_again_and_then_ends_the_stream() {
    let rig = Rig::new();
    six(&rig).await;
    rig.script.spare(Op::History, 1);
    rig.script.next(Op::History, Fault::Fail(Kind::Unavailable));
    rig.script.spare(Op::History, 1);
    rig.script.spare(Op::HistoryNext, 2);
    rig.script.next(Op::HistoryNext, Fault::Fail(Kind::Unavailable));
    let mut reading = Reading::begin(&rig, resume(PATH, "0000000e-1.0")).await;
    reading.shows(&six_events()[1..]).await;
    reading.shows(&[ready("0000000e-3.1", "t")]).await;
    assert!(rig.script.is_done());
    drop(reading);

    let rig = Rig::new();
    six(&rig).await;
    rig.script.spare(Op::History, 1);
    (0..1_000).for_each(|_| rig.script.next(Op::History, Fault::Fail(Kind::Unavailable)));
    let mut reading = Reading::begin(&rig, resume(PATH, "0000000e-1.0")).await;
    reading.shows(&[end("history_unavailable", Some("0000000e-1.0"))]).await;
    assert_eq!(reading.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_take_its_replay_makes_room_for_who_waits() {
    let options = ApiOptions { max_replays: 1, ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    for n in 0..40 {
        rig.json(format!("{{\"id\":{n}}}")).await;
    }
    let from = "0000000e-1.0";
    let mut stuck = Reading::begin(&rig, resume(PATH, from)).await;
    // it has begun, and stops
    assert_eq!(stuck.event().await.id(), "0000000e-2.0");
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(Reading::begin(&rig, resume(PATH, from)).await);
    }
    others.push(stuck);
    let firsts = [2, 2, 2, 3];
    for (reading, first) in others.iter_mut().zip(firsts) {
        for n in first..=40 {
            assert_eq!(reading.event().await, old(&format!("0000000e-{n}.0"), &format!("{{\"id\":{}}}", n - 1)));
        }
        assert_eq!(reading.event().await.kind, "ready");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_replay_too() {
    let options = ApiOptions { max_replays: 1, ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    for n in 0..40 {
        rig.json(format!("{{\"id\":{n}}}")).await;
    }
    let mut first = Reading::begin(&rig, resume(PATH, "0000000e-1.0")).await;
    assert_eq!(first.event().await.id(), "0000000e-2.0");
    let mut second = Reading::begin(&rig, resume(PATH, "0000000e-1.0")).await;
    rig.stop.give();
    for reading in [&mut first, &mut second] {
        let mut last = Event::default();
        while let Some(event) = reading.next().await {
            last = event;
        }
        assert_eq!((last.kind.as_str(), &last.value()["reason"]), ("end", &"stopping".into()));
    }
    rig.api.finish().await;
}
