//! Seeded runs: processes that share a queue and a store, faults of both at random, clients that send until they are told.

use super::{World, row};
use crate::rig::{Rig, post};
use std::{collections::BTreeMap, time::Duration};
use wh_mq::{
    Kind,
    faulty::{Fault, Op},
};

const CLIENTS: usize = 6;
const IDS: usize = 300;

/// Numbers that a seed fixes.
fn lcg(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    }
}

/// Sends ids, some of them others' too, until each was said to be stored. Counts by id how often that was said to be new.
async fn client(rigs: &[&Rig], seed: u64) -> BTreeMap<usize, u32> {
    let mut draw = lcg(seed);
    let mut new: BTreeMap<usize, u32> = BTreeMap::new();
    let mut batch = 0_u32;
    let mut wanted: Vec<usize> = (0..40).map(|_| draw(IDS)).collect();
    while !wanted.is_empty() {
        let size = (1 + draw(12)).min(wanted.len());
        let mut ids: Vec<usize> = wanted.drain(..size).collect();
        let key = (draw(3) == 0).then(|| format!("{seed}-{batch}"));
        batch += 1;
        let body: String = ids.iter().map(|id| row(*id) + "\n").collect();
        // a request under a key is sent again as it was; without one only what is open
        loop {
            let body = if key.is_some() { body.clone() } else { ids.iter().map(|id| row(*id) + "\n").collect() };
            let mut request = post("/v1/ingest?table=t&results=all", "application/x-ndjson", body);
            if let Some(key) = &key {
                request.headers_mut().insert("idempotency-key", key.parse().unwrap());
            }
            let reply = rigs[draw(rigs.len())].send(request).await;
            let replayed = reply.header("idempotency-replayed").is_some();
            let mut open = Vec::new();
            for (index, status, _) in reply.results() {
                let id = ids[usize::try_from(index).unwrap()];
                match status.as_str() {
                    "accepted" if key.is_none() && !replayed => *new.entry(id).or_default() += 1,
                    "accepted" | "duplicate" => {}
                    _ => open.push(id),
                }
            }
            if open.is_empty() {
                break;
            }
            if key.is_none() {
                ids = open;
            }
            let seconds: u64 = reply.header("retry-after").map_or(1, |seconds| seconds.parse().unwrap());
            tokio::time::sleep(Duration::from_millis(seconds.min(10) * 100 * (1 + draw(10) as u64))).await;
        }
    }
    new
}

#[tokio::test(start_paused = true)]
async fn under_any_faults_each_event_is_stored_once() {
    for seed in 0..30_u64 {
        let mut draw = lcg(seed);
        let world = World::new();
        let processes = [world.process(seed * 10), world.process(seed * 10 + 1)];
        for process in &processes {
            process.link.fail_randomly([0.0, 0.05, 0.2][draw(3)]);
            process.link.slow(Duration::ZERO, Duration::from_millis(1 + draw(200) as u64));
            for _ in 0..120 {
                match draw(9) {
                    0 => process.rig.script.next(Op::Publish, Fault::Fail(Kind::Unavailable)),
                    1 => process.rig.script.next(Op::Publish, Fault::Fail(Kind::Unknown)),
                    2 | 3 => process.rig.script.next(Op::Publish, Fault::LoseAnswer),
                    4 => process.rig.script.next(Op::Publish, Fault::Fail(Kind::NoSpace)),
                    5 => process.rig.script.next(Op::Publish, Fault::Repeat),
                    6 => process.rig.script.next(Op::StoredRows, Fault::Fail(Kind::Unavailable)),
                    _ => {
                        let delay = Duration::from_millis(draw(4_000) as u64);
                        process.rig.script.next(Op::Publish, Fault::Delay(delay));
                    }
                }
            }
        }
        let rigs = [&processes[0].rig, &processes[1].rig];
        let clients = (0..CLIENTS as u64).map(|n| client(&rigs, seed * 100 + n));
        let told = futures::future::join_all(clients).await;
        for process in &processes {
            process.rig.stop.give();
            process.rig.api.finish().await;
        }
        let mut stored: BTreeMap<String, u32> = BTreeMap::new();
        for row in processes[0].rig.rows().await {
            *stored.entry(row).or_default() += 1;
        }
        let twice: Vec<_> = stored.iter().filter(|(_, times)| **times != 1).collect();
        assert!(twice.is_empty(), "seed {seed}: stored twice: {twice:?}");
        let mut new: BTreeMap<usize, u32> = BTreeMap::new();
        for (id, times) in told.into_iter().flatten() {
            *new.entry(id).or_default() += times;
        }
        for (id, times) in new {
            assert!(stored.contains_key(&row(id)), "seed {seed}: {id} was accepted and is not there");
            assert!(times <= 1, "seed {seed}: {id} was said to be new {times} times");
        }
        let mut sent = (0..CLIENTS as u64).flat_map(|n| {
            let mut draw = lcg(seed * 100 + n);
            (0..40).map(move |_| draw(IDS))
        });
        assert!(sent.all(|id| stored.contains_key(&row(id))), "seed {seed}: something was lost");
    }
}
