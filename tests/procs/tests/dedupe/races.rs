//! Nothing fails: two processes get the same events at one time.

use super::{PLAIN, Pair, TABLE, try_send};
use futures::future::join_all;
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use wh_testkit::http;
use wh_types::Tasks;

const CLIENTS: u64 = 6;
const BATCHES: u64 = 10;
const ROWS: u64 = 10;

/// The events of a client, in batches; each two clients have the same ones.
fn batches(client: u64) -> impl Iterator<Item = Vec<u64>> {
    (0..BATCHES).map(move |batch| {
        let first = (client / 2) * 1_000 + batch * ROWS;
        (first..first + ROWS).collect()
    })
}

#[tokio::test]
async fn ids_that_reach_two_processes_at_one_time_are_stored_once_and_told_so_once() {
    let pair = Pair::start().await;
    let clients = (0..CLIENTS).map(async |client| {
        let api = if client % 2 == 0 { &pair.one.api } else { &pair.two.api };
        let (mut new, mut again) = (Vec::new(), 0);
        for batch in batches(client) {
            let mut open = batch;
            while !open.is_empty() {
                let told = try_send(api, TABLE, &open).await.unwrap();
                assert!(matches!(told.status, 200 | 503), "{told:?}");
                new.extend(told.each.iter().filter(|(_, status)| *status == "accepted").map(|(n, _)| *n));
                again += told.each.values().filter(|status| *status != "accepted").count();
                open = told
                    .each
                    .into_iter()
                    .filter(|(_, status)| !matches!(status.as_str(), "accepted" | "duplicate"))
                    .map(|(n, _)| n)
                    .collect();
                // a client waits too
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        (new, again)
    });
    let (mut new, mut again) = (BTreeMap::new(), 0);
    for (numbers, others) in join_all(clients).await {
        numbers.into_iter().for_each(|n| *new.entry(n).or_insert(0_u64) += 1);
        again += others;
    }
    let all: Vec<u64> = (0..CLIENTS).flat_map(batches).flatten().collect();
    Pair::each_once(&new, all.iter().copied());
    assert!(again >= all.len() / 2, "each came twice at least: {again}");

    // one event, fifty times at one time
    let sent = (0..50).map(async |n| {
        let api = if n % 2 == 0 { &pair.one.api } else { &pair.two.api };
        api.post(TABLE, super::rows([9_000])).await.unwrap()
    });
    let mut new = 0;
    for reply in join_all(sent).await {
        let answer: serde_json::Value = reply.json().unwrap();
        match reply.status.as_u16() {
            200 => new += answer["accepted"].as_u64().unwrap(),
            503 => assert!(reply.header("retry-after").is_some(), "{answer}"),
            status => panic!("{status} {answer}"),
        }
    }
    assert!(new <= 1, "one stored it, the others are duplicates or told to come again: {new}");
    new += super::until_stored(&pair.one.api, [9_000]).await.len() as u64;
    assert_eq!(new, 1);
    let found = pair.inserted(TABLE).await;
    Pair::each_once(&found, all.into_iter().chain([9_000]));
}

#[tokio::test]
async fn a_request_with_a_key_that_reaches_two_processes_is_stored_once_and_its_key_stands_for_one_body() {
    let pair = Pair::start().await;
    let tasks = Tasks::new();
    // rows of this table are not told apart: only the key says that they are the same
    let post = |party: &super::Party, key: &str, first: u64| {
        let request = http::post(party.api.url(&format!("/v1/ingest?table={PLAIN}")), super::rows(first..first + 20))
            .header("content-type", "application/x-ndjson")
            .header("idempotency-key", key)
            .timeout(super::WAIT);
        tasks.spawn("client", async move {
            let reply = request.send().await.unwrap();
            let answer: serde_json::Value = reply.json().unwrap();
            (reply.status.as_u16(), answer, reply.header("idempotency-replayed").is_some())
        })
    };
    for n in 0..10_u64 {
        let key = format!("key/{n}");
        // both at one time; where each of them claims some of the records, both give them back, and then take turns
        let mut open: VecDeque<_> = [vec![&pair.one, &pair.two]].into();
        let mut new = 0;
        while let Some(parties) = open.pop_front() {
            let sent: Vec<_> = parties.iter().map(|party| post(party, &key, n * 100)).collect();
            for (party, sent) in parties.into_iter().zip(sent) {
                let (status, answer, replayed) = sent.await.unwrap();
                match status {
                    200 => {
                        assert_eq!(answer["accepted"], 20, "{answer}");
                        new += u32::from(!replayed);
                    }
                    503 => open.push_back(vec![party]),
                    _ => panic!("{status} {answer}"),
                }
            }
        }
        assert_eq!(new, 1, "one of them stored it, the other was told that it is");
        // the same key with another body, at either
        for party in [&pair.one, &pair.two] {
            let (status, answer) = loop {
                let (status, answer, _) = post(party, &key, n * 100 + 1).await.unwrap();
                // a store that is slow is away for that moment
                if status != 503 {
                    break (status, answer);
                }
            };
            assert_eq!((status, &answer["code"]), (409, &"idempotency.mismatch".into()), "{answer}");
        }
    }
    let found = pair.inserted(PLAIN).await;
    assert_eq!(found.len(), 200, "{found:?}");
    Pair::each_once(&found, (0..10).flat_map(|n| n * 100..n * 100 + 20));
}
