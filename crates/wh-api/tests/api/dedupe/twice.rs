//! One request under an `Idempotency-Key` that comes several times at once, over a store that takes keys one by one: each may
//! get a part of them first.

use super::{World, counts, rows, under_to};
use crate::rig::{Reply, Rig};
use async_trait::async_trait;
use futures::future::join_all;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use wh_dedupe::{
    Dedupe, Result, Retention, Row, Ticket, Under, Verdict,
    sim::{self, Options},
};
use wh_mq::{
    Kind,
    faulty::{Fault, Op},
};
use wh_types::SeededEntropy;

/// With ids, and without.
const PATHS: [&str; 2] = ["/v1/ingest?table=t", "/v1/ingest?table=a.b%2Fc"];

/// Reserves row by row, with a pause between any two.
#[derive(Debug)]
struct OneByOne(sim::Dedupe);

#[async_trait]
impl Dedupe for OneByOne {
    async fn reserve(&self, rows: &[Row], under: &Under) -> Result<Vec<Verdict>> {
        let mut verdicts = Vec::with_capacity(rows.len());
        for row in rows {
            verdicts.extend(self.0.reserve(std::slice::from_ref(row), under).await?);
        }
        Ok(verdicts)
    }

    async fn commit(&self, held: &[Ticket], retention: Retention) -> Vec<Result<()>> {
        self.0.commit(held, retention).await
    }

    async fn release(&self, held: &[Ticket]) -> Vec<Result<()>> {
        self.0.release(held).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

fn process(world: &World, seed: u64) -> Rig {
    let options = Options { clock: Arc::clone(&world.clock), entropy: Arc::new(SeededEntropy::new(seed)) };
    let joined = world.store.join(options);
    joined.link().slow(Duration::ZERO, Duration::from_millis(1));
    world.over(Arc::new(OneByOne(joined)), Arc::new(world.queue.clone()))
}

/// One of them stored it all; the others were told so, or that it is at work.
fn one_was_stored(replies: &[Reply], total: u64, which: &str) {
    let mut whole = 0;
    for reply in replies {
        match reply.outcome() {
            (200, None) => {
                assert_eq!(counts(reply), [total, total, 0, 0], "{which}");
                whole += 1;
            }
            (503, Some(code)) => {
                assert_eq!(code, "idempotency.running", "{which}");
                assert!(reply.header("retry-after").is_some());
            }
            other => panic!("{which}: {other:?}"),
        }
    }
    assert!(whole >= 1, "{which}: nobody's request was stored: {:?}", replies.iter().map(counts).collect::<Vec<_>>());
}

async fn stored_once(rig: &Rig, total: usize, which: &str) {
    let rows = rig.rows().await;
    assert_eq!(rows.len(), total, "{which}");
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), total, "{which}");
}

#[tokio::test(start_paused = true)]
async fn of_requests_that_race_under_one_key_one_is_stored_by_its_first_attempt() {
    const ROWS: usize = 1_200;
    let body = rows(0..ROWS);
    for seed in 0..24_u64 {
        let world = World::new();
        let path = PATHS[(seed % 2) as usize];
        let processes: Vec<Rig> = (0..2 + seed % 2).map(|n| process(&world, seed * 10 + n)).collect();
        let send = async |(n, rig): (u64, &Rig)| {
            // within what the first one's claims take
            tokio::time::sleep(Duration::from_millis(n * (seed * 13 % 300))).await;
            under_to(rig, path, "k", &body).await
        };
        let replies = join_all((0..).zip(&processes).map(send)).await;
        one_was_stored(&replies, ROWS as u64, &format!("seed {seed}"));
        for rig in &processes {
            let again = under_to(rig, path, "k", &body).await;
            assert_eq!((counts(&again), again.header("idempotency-replayed")), ([1_200, 1_200, 0, 0], Some("true")));
        }
        stored_once(&processes[0], ROWS, &format!("seed {seed}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn retries_that_race_for_the_rest_of_a_request_do_not_undo_each_other() {
    // more than one publish call, of which only the first is stored
    const ROWS: usize = 9_000;
    let body = rows(0..ROWS);
    for seed in 0..3_u64 {
        let world = World::new();
        let path = PATHS[(seed % 2) as usize];
        let processes = [process(&world, seed * 10), process(&world, seed * 10 + 1)];
        processes[0].script.next(Op::Publish, Fault::Delay(Duration::ZERO));
        processes[0].script.next(Op::Publish, Fault::Fail(Kind::NoSpace));
        let first = under_to(&processes[0], path, "k", &body).await;
        assert_eq!(first.status, 503);
        assert_eq!(counts(&first), [9_000, 8_000, 0, 0]);
        let send = async |rig: &Rig| under_to(rig, path, "k", &body).await;
        let replies = join_all(processes.iter().map(send)).await;
        one_was_stored(&replies, ROWS as u64, &format!("seed {seed}"));
        stored_once(&processes[0], ROWS, &format!("seed {seed}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn several_requests_that_race_crosswise_do_not_wait_for_each_other_in_vain() {
    for seed in 0..10_u64 {
        let world = World::new();
        let processes = [process(&world, seed * 10), process(&world, seed * 10 + 1)];
        // one publish call of each process takes several of them, in one order or the other
        let bodies: Vec<String> = (0..4).map(|n| rows(n * 1_000..n * 1_000 + 700)).collect();
        let send = async |(at, rig): (usize, &Rig)| {
            let order = (0..4).map(|n| if at == 0 { n } else { 3 - n });
            let all = order.map(async |n| (n, under_to(rig, PATHS[1], &format!("k{n}"), &bodies[n]).await));
            join_all(all).await
        };
        let replies = join_all(processes.iter().enumerate().map(send)).await;
        for n in 0..4 {
            let of = replies.iter().flatten().filter(|(key, _)| *key == n);
            let told: Vec<_> = of.map(|(_, reply)| reply.outcome()).collect();
            assert!(told.iter().any(|(status, _)| *status == 200), "seed {seed}, key {n}: {told:?}");
        }
        stored_once(&processes[0], 2_800, &format!("seed {seed}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_requests_with_one_key_in_one_call_of_one_process_the_second_is_told_at_once() {
    let world = World::new();
    let one = process(&world, 1);
    one.script.next(Op::Publish, Fault::Delay(Duration::from_secs(1)));
    let plug = one.lines("{\"id\":99999}");
    let body = rows(0..1_200);
    let both = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        tokio::join!(under_to(&one, PATHS[0], "k", &body), under_to(&one, PATHS[0], "k", &body))
    };
    let (_, (a, b)) = tokio::join!(plug, both);
    one_was_stored(&[a, b], 1_200, "one process");
    stored_once(&one, 1_201, "one process").await;
}
