//! The disk under the embedded queue and the store of ids takes no writes for a while: events are refused with a reason, none
//! that was accepted is lost, and it goes on by itself once there is room.

use procs::{System, Writers};
use std::{collections::BTreeSet, time::Duration};
use wh_testkit::{http, until};

const WAIT: Duration = Duration::from_secs(180);
const ROUNDS: u64 = 3;

/// Waits until an event is answered with this status; gives the code of the answer.
async fn answered(system: &System, status: u16, ids: &mut std::ops::RangeFrom<u64>) -> (u64, String) {
    until(WAIT, "an event to be answered so", || {
        let id = ids.next().unwrap();
        async move {
            let body = format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"one"}}"#);
            let reply = system.post("application/json", body).await?;
            anyhow::ensure!(reply.status == status, "{} {}", reply.status, reply.text());
            assert_eq!(reply.header("retry-after").is_some(), status != 200, "{}", reply.text());
            Ok((id, reply.json()?["code"].as_str().unwrap_or_default().to_owned()))
        }
    })
    .await
    .unwrap()
}

/// Under load, over and over; gives the codes of what was refused meanwhile.
async fn without_room(more: &str) -> BTreeSet<String> {
    let mut system = System::with_limits(&format!("{more}ingest: {{batch_wait: 50ms}}")).await.unwrap();
    let writers = Writers::start(&system.url("/v1/ingest"), 4, 7);
    // far from the writers' numbers
    let (mut ids, mut codes, mut single) = (1_u64 << 40.., BTreeSet::new(), BTreeSet::new());
    for round in 1..=ROUNDS {
        writers.until_more(200 * round, WAIT).await.unwrap();
        system.wavehouse.limit_files(Some(0)).unwrap();
        codes.insert(answered(&system, 503, &mut ids).await.1);
        let live = http::get(system.url("/livez")).send().await.unwrap();
        assert_eq!(live.status, 200, "{}", live.text());
        let ready = http::get(system.url("/readyz")).send().await.unwrap();
        assert!(matches!(ready.status.as_u16(), 200 | 503), "{}", ready.text());
        system.wavehouse.limit_files(None).unwrap();
        single.insert(answered(&system, 200, &mut ids).await.0);
    }
    writers.until_more(100, WAIT).await.unwrap();
    let mut accepted = writers.stop().await.unwrap().accepted;
    accepted.extend(single);
    until(WAIT, "every accepted event to be in ClickHouse", || async {
        let found = system.engine.query("SELECT DISTINCT id FROM events FORMAT TSV").await?;
        let found: BTreeSet<u64> = found.lines().map(str::parse).collect::<Result<_, _>>()?;
        match accepted.difference(&found).next() {
            None => Ok(()),
            Some(first) => anyhow::bail!("{} of {} found, {first} is missing", found.len(), accepted.len()),
        }
    })
    .await
    .unwrap();
    let sql = "SELECT count() - uniqExact(id) FROM events";
    assert_eq!(system.number(sql).await.unwrap(), 0, "nothing was stored twice");
    assert!(system.wavehouse.stop(WAIT).await.unwrap().success(), "{}", system.wavehouse.tail(20));
    let log = system.wavehouse.log();
    assert!(!log.contains("panicked"), "{log}");
    // what was written is whole
    system.restart().await.unwrap();
    answered(&system, 200, &mut ids).await;
    codes
}

#[tokio::test]
async fn a_queue_whose_disk_takes_no_writes_refuses_events_loses_none_and_goes_on() {
    let codes = without_room("").await;
    assert!(codes.iter().all(|code| code.starts_with("queue.")), "{codes:?}");
}

#[tokio::test]
async fn a_store_of_ids_whose_disk_takes_no_writes_refuses_events_and_stores_each_once() {
    let codes = without_room("  dedupe: {enabled: true, id_field: id}\n").await;
    let known = ["dedupe.unavailable", "dedupe.busy"];
    assert!(codes.iter().all(|code| known.contains(&code.as_str()) || code.starts_with("queue.")), "{codes:?}");
}
