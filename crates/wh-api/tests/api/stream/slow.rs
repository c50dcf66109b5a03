//! Clients that read too slowly: what they chose, and never less without a word.

use super::{Reading, end, gap, old, ready, row};
use crate::rig::{Rig, Setup, get};
use std::collections::BTreeMap;
use wh_api::ApiOptions;

const ROWS: u64 = 300;

/// A small ring.
fn rig() -> Rig {
    let options = ApiOptions { stream_bytes: 20_000, ..ApiOptions::default() };
    Rig::with(Setup { options, ..Setup::default() })
}

fn text(n: u64) -> String {
    format!("{{\"id\":{n},\"n\":{},\"note\":\"{}\"}}", n % 3, "x".repeat(1_000))
}

/// Rows that a quick stream sees one by one, while a slow one reads nothing.
async fn meanwhile(rig: &Rig, rows: std::ops::RangeInclusive<u64>) {
    let mut quick = Reading::open(rig, get("/v1/stream?table=t")).await;
    for n in rows {
        rig.json(text(n)).await;
        quick.shows(&[row(&format!("0000000e-{n}.0"), &text(n))]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_is_told_reads_the_history_and_slows_nobody() {
    let rig = rig();
    for path in ["/v1/stream?table=t", "/v1/stream?table=t&slow=gap"] {
        let mut slow = Reading::open(&rig, get(path)).await;
        let before = rig.broker.status().await.unwrap().tenants.values().map(|held| held.unsettled_blocks).sum::<u64>();
        let rows = before + 1..=before + ROWS;
        meanwhile(&rig, rows.clone()).await;
        slow.shows(&[gap(Some(&format!("0000000e-{before}")), None, "slow")]).await;
        let mut live = false;
        for n in rows {
            let (id, text) = (format!("0000000e-{n}.0"), text(n));
            let event = slow.event().await;
            if event.kind == "ready" {
                live = true;
                slow.shows(&[row(&id, &text)]).await;
            } else {
                assert_eq!(event, if live { row(&id, &text) } else { old(&id, &text) });
            }
        }
        let last = format!("0000000e-{}.0", before + ROWS);
        if !live {
            slow.shows(&[ready(&last, "t")]).await;
        }
        // and is back among the live
        let next = before + ROWS + 1;
        rig.json(text(next)).await;
        slow.shows(&[row(&format!("0000000e-{next}.0"), &text(next))]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_may_choose_its_end_and_go_on_later() {
    let rig = rig();
    let mut slow = Reading::open(&rig, get("/v1/stream?table=t&slow=end")).await;
    rig.json(text(1)).await;
    slow.shows(&[row("0000000e-1.0", &text(1))]).await;
    meanwhile(&rig, 2..=ROWS).await;
    slow.shows(&[end("slow", Some("0000000e-1.0"))]).await;
    assert_eq!(slow.next().await, None);
    let mut again = Reading::begin(&rig, super::resume("/v1/stream?table=t&slow=end", "0000000e-1.0")).await;
    for n in 2..=ROWS {
        again.shows(&[old(&format!("0000000e-{n}.0"), &text(n))]).await;
    }
    assert_eq!(again.event().await.kind, "ready");
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_may_choose_the_newest_row_of_each_key() {
    let rig = Rig::new();
    let mut slow = Reading::open(&rig, get("/v1/stream?table=t&slow=latest&key=n")).await;
    rig.json(text(1)).await;
    slow.shows(&[row("0000000e-1.0", &text(1))]).await;
    meanwhile(&rig, 2..=60).await;
    let newest = [58, 59, 60].map(|n| row(&format!("0000000e-{n}.0"), &text(n)));
    slow.shows(&newest).await;
    rig.json(text(61)).await;
    slow.shows(&[row("0000000e-61.0", &text(61))]).await;
}

#[tokio::test(start_paused = true)]
async fn the_newest_row_of_each_key_comes_also_when_it_is_long_gone_from_memory() {
    let rig = rig();
    let mut slow = Reading::open(&rig, get("/v1/stream?table=t&slow=latest&key=n")).await;
    // a key that nobody speaks of again, and a row without one
    rig.json(r#"{"id":1,"n":77}"#).await;
    rig.json(r#"{"id":2}"#).await;
    meanwhile(&rig, 3..=ROWS).await;
    let (mut newest, mut count, mut last) = (BTreeMap::new(), 0, String::new());
    let mut without = 0;
    loop {
        let event = slow.event().await;
        match event.kind.as_str() {
            "row" => {
                let row = event.value();
                match row["n"].as_u64() {
                    Some(key) => drop(newest.insert(key, row["id"].as_u64().unwrap())),
                    None => without += 1,
                }
                count += 1;
                last = event.id.unwrap();
            }
            "ready" => {}
            other => panic!("{other}: nothing is missing"),
        }
        if last == format!("0000000e-{ROWS}.0") {
            break;
        }
    }
    assert_eq!(newest, BTreeMap::from([(0, 300), (1, 298), (2, 299), (77, 1)]));
    assert_eq!(without, 1);
    assert!(count < ROWS, "{count} of {ROWS} rows came");
}

#[tokio::test(start_paused = true)]
async fn a_burst_reaches_every_stream_whole_and_costs_nobody_for_the_slow_one() {
    const BURST: u64 = 40_000;
    let options = ApiOptions { stream_bytes: 400_000, ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    let open = || Reading::open(&rig, get("/v1/stream?table=t"));
    let mut slow = open().await;
    let mut quick = Vec::new();
    for _ in 0..5 {
        quick.push(open().await);
    }
    for from in (0..BURST).step_by(2_000) {
        rig.lines((from..from + 2_000).map(|n| format!("{{\"id\":{n}}}\n")).collect::<String>()).await;
        for reading in &mut quick {
            for n in from..from + 2_000 {
                let event = reading.event().await;
                assert_eq!((event.data, event.replay), (format!("{{\"id\":{n}}}"), false));
            }
        }
    }
    let (mut next, mut told, mut live) = (0, 0, true);
    while next < BURST {
        let event = slow.event().await;
        match event.kind.as_str() {
            "row" => {
                assert_eq!((event.data, event.replay), (format!("{{\"id\":{next}}}"), !live));
                next += 1;
            }
            "gap" => {
                assert_eq!(event.value()["reason"], "slow");
                (live, told) = (false, told + 1);
            }
            "ready" => live = true,
            other => panic!("{other}"),
        }
    }
    assert_eq!(told, 1, "it is told once");
}

#[tokio::test]
async fn a_choice_that_makes_no_sense_is_refused() {
    let rig = Rig::new();
    for (query, code) in [
        ("slow=never", "request.invalid"),
        ("slow=latest", "request.invalid"),
        ("key=n", "request.invalid"),
        ("slow=latest&key=nope", "column.not_found"),
    ] {
        let refused = rig.send(get(&format!("/v1/stream?table=t&{query}"))).await;
        assert_eq!(refused.outcome(), ((400), Some(code.into())), "{query}");
    }
}
