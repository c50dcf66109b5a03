//! What a publish comes to when servers freeze, die, fill up or are not there.

use crate::{
    stand::{Stand, block, choices, publish},
    three::Three,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;
use wh_mq::{Broker as _, Receipt, nats::Fault};
use wh_testkit::{
    chaos::{Tcp, Way},
    nats::{Options, Shape},
    until,
};
use wh_topology::Choices;
use wh_types::{Block, Class};

const FULL: Class = Class::Exhausted { retry_after: Duration::from_secs(30) };

#[expect(clippy::disallowed_methods, reason = "a test measures how long it took")]
fn now() -> Instant {
    Instant::now()
}

/// How late a busy machine may notice that a time is over.
const LATE: Duration = Duration::from_secs(10);

/// A stand whose attempts are so long that what does not wait for one of them is told from what does.
async fn patient(shape: &Shape) -> Result<Stand> {
    Stand::with(Choices { publish_timeout: 3 * LATE, ..choices() }, shape, Options::default()).await
}

fn class(outcome: wh_mq::Result<Receipt>) -> Class {
    outcome.map(|receipt| panic!("{receipt:?}")).unwrap_err().class()
}

#[tokio::test]
async fn a_frozen_server_leaves_the_outcome_unknown_and_a_probe_tells_it() -> Result<()> {
    let mut stand = Stand::new().await?;
    let broker = stand.broker().await?;
    let known = block("t", 3);
    assert!(matches!(publish(&broker, &known).await?, Receipt::Stored(_)));
    stand.server.process().pause()?;
    let (lost, began) = (block("t", 2), now());
    assert_eq!(class(publish(&broker, &lost).await), Class::Unknown);
    let took = began.elapsed();
    ensure!(took <= stand.spec.publish_budget() + LATE, "the budget was overrun: {took:?}");
    stand.server.process().resume()?;
    until(Duration::from_secs(60), "it is connected again", || async {
        broker.status().await.is_ok_and(|status| status.accepting)
    })
    .await?;
    // whatever the frozen server still had in its sockets is handled before what is sent now
    match publish(&broker, &lost.probe()).await? {
        Receipt::Stored(_) => assert_eq!(class_or_duplicate(publish(&broker, &lost).await), "duplicate"),
        Receipt::Duplicate(at) => {
            let rows = broker.stored_rows(&lost.tenant, &lost.table, lost.id, at).await?;
            assert_eq!(rows, Some(2), "the rows of the lost block");
        }
    }
    Ok(())
}

fn class_or_duplicate(outcome: wh_mq::Result<Receipt>) -> &'static str {
    match outcome {
        Ok(Receipt::Duplicate(_)) => "duplicate",
        Ok(Receipt::Stored(_)) => "stored",
        Err(_) => "failed",
    }
}

#[tokio::test]
async fn a_killed_server_that_comes_back_within_the_budget_stores_every_block_once_in_order() -> Result<()> {
    let mut stand = Stand::with(
        Choices { publish_timeout: Duration::from_secs(20), ..choices() },
        &Shape::default(),
        Options::default(),
    )
    .await?;
    let broker = stand.broker().await?;
    let blocks: Vec<Block> = (0..400).map(|_| block("t", 1)).collect();
    let (outcomes, restarted) = tokio::join!(
        async {
            let mut outcomes = Vec::new();
            for piece in blocks.chunks(40) {
                outcomes.extend(broker.publish(piece).await);
            }
            outcomes
        },
        async {
            until(Duration::from_secs(60), "some are stored", || async {
                stand.messages().await.is_ok_and(|n| n > 40)
            })
            .await?;
            stand.server.restart().await
        }
    );
    restarted?;
    let mut sequences = Vec::new();
    for outcome in outcomes {
        sequences.push(outcome?.cursor().sequence);
    }
    ensure!(sequences.is_sorted_by(|a, b| a < b), "out of order: {sequences:?}");
    assert_eq!(stand.messages().await?, 400);
    Ok(())
}

#[tokio::test]
async fn a_stream_leader_that_is_killed_stops_publishes_for_its_election_and_loses_none() -> Result<()> {
    let mut three = Three::new().await?;
    let broker = three.broker().await?;
    let (blocks, stream) = ((0..3_000).map(|_| block("t", 1)).collect::<Vec<Block>>(), three.stream());
    let publishing = async {
        let (mut outcomes, mut longest) = (Vec::new(), Duration::ZERO);
        for piece in blocks.chunks(50) {
            let began = now();
            outcomes.extend(broker.publish(piece).await);
            longest = longest.max(began.elapsed());
        }
        (outcomes, longest)
    };
    let killing = async {
        let leader = three.cluster.stream_leader(&stream).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        three.cluster.node_mut(leader).process().kill()?;
        anyhow::Ok(())
    };
    let ((outcomes, longest), killed) = tokio::join!(publishing, killing);
    killed?;
    let mut sequences = Vec::new();
    for outcome in outcomes {
        sequences.push(outcome?.cursor().sequence);
    }
    ensure!(sequences.is_sorted_by(|a, b| a < b), "out of order");
    let info = three.cluster.operator().stream_info(&stream).await?;
    assert_eq!(info["state"]["messages"], 3_000);
    println!("the longest publish took {longest:?}");
    Ok(())
}

#[tokio::test]
async fn a_full_stream_is_exhausted_for_thirty_seconds_and_duplicates_are_still_known() -> Result<()> {
    let shape = Shape { max_bytes: Some(64 * 1024), ..Shape::default() };
    let stand = patient(&shape).await?;
    let broker = stand.broker().await?;
    let mut stored = Vec::new();
    loop {
        let next = block("t", 100);
        let began = now();
        match publish(&broker, &next).await {
            Ok(receipt) => stored.push((next, receipt.cursor())),
            full => {
                assert_eq!(class(full), FULL);
                ensure!(began.elapsed() < LATE, "a full stream is not asked again");
                break;
            }
        }
        ensure!(stored.len() < 10_000, "it never fills");
    }
    let (first, at) = stored.first().context("some fit")?;
    assert_eq!(publish(&broker, first).await?, Receipt::Duplicate(*at));
    let smaller = block("u", 100);
    assert_eq!(class(publish(&broker, &smaller).await), FULL, "the stream is full for every table");
    Ok(())
}

#[tokio::test]
async fn a_table_at_its_cap_is_refused_while_others_flow() -> Result<()> {
    let shape = Shape { max_msgs_per_subject: Some(5), ..Shape::default() };
    let stand = Stand::with(choices(), &shape, Options::default()).await?;
    let broker = stand.broker().await?;
    let blocks: Vec<Block> = (0..8).map(|_| block("t", 1)).collect();
    let outcomes = broker.publish(&blocks).await;
    let stored = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(stored, 5, "{outcomes:?}");
    for refused in outcomes.into_iter().skip(5) {
        assert_eq!(class(refused), FULL);
    }
    publish(&broker, &block("u", 1)).await?;
    Ok(())
}

#[tokio::test]
async fn a_server_out_of_space_is_exhausted() -> Result<()> {
    // nothing is reserved for the partition, so that the server's store ends before its stream does
    let shape = Shape { max_bytes: Some(-1), other_bytes: Some(128 * 1024), ..Shape::default() };
    let small = Options { jetstream: "max_file_store: 2M".into(), ..Options::default() };
    let stand = Stand::with(choices(), &shape, small).await?;
    let broker = stand.broker().await?;
    let mut stored = 0;
    let full = loop {
        match publish(&broker, &block("t", 500)).await {
            Ok(_) => stored += 1,
            full => break full,
        }
        ensure!(stored < 10_000, "it never fills");
    };
    ensure!(stored > 0, "nothing fits");
    assert_eq!(class(full), FULL);
    Ok(())
}

#[tokio::test]
async fn a_block_beyond_the_streams_largest_message_is_invalid() -> Result<()> {
    let stand = Stand::new().await?;
    let broker = stand.broker().await?;
    let stream = stand.spec.names().partition_stream(0);
    stand.operator().change_stream(&stream, &json!({"max_msg_size": 400})).await?;
    assert_eq!(class(publish(&broker, &block("t", 500)).await), Class::Invalid);
    publish(&broker, &block("t", 1)).await?;
    Ok(())
}

#[tokio::test]
async fn a_block_that_another_stream_takes_is_not_stored_and_told() -> Result<()> {
    let stand = Stand::new().await?;
    let broker = stand.broker().await?;
    let mut faults = broker.faults().watch();
    let (names, mut operator) = (stand.spec.names().clone(), stand.operator());
    operator.delete_stream(&names.partition_stream(0)).await?;
    let other = json!({"name": "OTHER", "subjects": [names.partition_subjects(0)], "storage": "file"});
    operator.create_stream(&other).await?;
    assert_eq!(class(publish(&broker, &block("t", 1)).await), Class::Unavailable);
    faults.changed().await?;
    let fault = faults.borrow().clone();
    ensure!(matches!(&fault, Some(Fault::AckedElsewhere { by, .. }) if by == "OTHER"), "{fault:?}");
    let status = broker.status().await;
    ensure!(status.map_or(true, |status| !status.accepting));
    Ok(())
}

#[tokio::test]
async fn a_stream_that_is_gone_is_unavailable_after_the_budget() -> Result<()> {
    let stand = Stand::new().await?;
    let broker = stand.broker().await?;
    stand.operator().delete_stream(&stand.spec.names().partition_stream(0)).await?;
    let began = now();
    assert_eq!(class(publish(&broker, &block("t", 1)).await), Class::Unavailable);
    let (took, budget) = (began.elapsed(), stand.spec.publish_budget());
    ensure!(took > budget / 2 && took <= budget + LATE, "{took:?} of {budget:?}");
    let mut faults = broker.faults().watch();
    let fault = faults.wait_for(Option::is_some).await?.clone();
    ensure!(matches!(fault, Some(Fault::Gone { .. })), "{fault:?}");
    Ok(())
}

#[tokio::test]
async fn a_connection_that_is_lost_before_the_hand_over_is_unavailable() -> Result<()> {
    let mut stand =
        Stand::with(Choices { publish_timeout: LATE, ..choices() }, &Shape::default(), Options::default()).await?;
    let broker = stand.broker().await?;
    publish(&broker, &block("t", 1)).await?;
    stand.server.process().kill()?;
    until(Duration::from_secs(60), "the loss is noticed", || async {
        broker.status().await.is_ok_and(|status| !status.accepting)
    })
    .await?;
    assert_eq!(class(publish(&broker, &block("t", 1)).await), Class::Unavailable);
    // a break longer than one attempt is not waited out
    tokio::time::sleep(stand.spec.choices().publish_timeout).await;
    let began = now();
    assert_eq!(class(publish(&broker, &block("t", 1)).await), Class::Unavailable);
    ensure!(began.elapsed() < LATE / 2, "{:?}", began.elapsed());
    stand.server.restart().await?;
    until(Duration::from_secs(60), "it is back", || async {
        broker.status().await.is_ok_and(|status| status.accepting)
    })
    .await?;
    publish(&broker, &block("t", 1)).await?;
    assert_eq!(stand.messages().await?, 2);
    Ok(())
}

#[tokio::test]
async fn answers_that_never_arrive_are_unknown_and_the_retry_finds_the_block() -> Result<()> {
    let stand = Stand::new().await?;
    let proxy = Tcp::start(stand.server.port()).await?;
    let connection = wh_nats::Connection::open(stand.connecting(Some(proxy.port()))).await?;
    let broker = stand.broker_on(connection).await?;
    proxy.black_hole(Way::ToClient);
    let lost = block("t", 4);
    assert_eq!(class(publish(&broker, &lost).await), Class::Unknown);
    proxy.heal();
    until(Duration::from_secs(60), "answers come again", || async {
        broker.status().await.is_ok_and(|status| status.accepting)
    })
    .await?;
    let Receipt::Duplicate(at) = publish(&broker, &lost.probe()).await? else { panic!("it was stored") };
    assert_eq!(broker.stored_rows(&lost.tenant, &lost.table, lost.id, at).await?, Some(4));
    assert_eq!(stand.messages().await?, 1);
    Ok(())
}

/// The answer to the first attempt is lost with its connection, and the second attempt meets the first one.
async fn published_twice(stand: &Stand, block: &Block) -> Result<wh_mq::Result<Receipt>> {
    let proxy = Tcp::start(stand.server.port()).await?;
    let connection = wh_nats::Connection::open(stand.connecting(Some(proxy.port()))).await?;
    let broker = stand.broker_on(connection).await?;
    let before = stand.messages().await?;
    proxy.black_hole(Way::ToClient);
    let (outcome, broken) = tokio::join!(publish(&broker, block), async {
        until(Duration::from_secs(60), "it is stored", || async {
            stand.messages().await.is_ok_and(|messages| messages > before)
        })
        .await?;
        proxy.cut();
        proxy.heal();
        anyhow::Ok(())
    });
    broken?;
    Ok(outcome)
}

#[tokio::test]
async fn a_retry_that_meets_its_own_first_attempt_is_stored_once_and_a_probes_proves_nothing() -> Result<()> {
    let stand = Stand::with(
        Choices { publish_timeout: Duration::from_secs(5), ..choices() },
        &Shape::default(),
        Options::default(),
    )
    .await?;
    let (rows, probe) = (block("t", 3), block("t", 3).probe());
    let at = published_twice(&stand, &rows).await??.cursor();
    let outcome = published_twice(&stand, &probe).await?;
    assert_eq!(class(outcome), Class::Unknown, "it could be the first attempt's probe, and is");
    assert_eq!(stand.messages().await?, 2);
    // asked again, the look-up tells
    let broker = stand.broker().await?;
    let Receipt::Duplicate(probed) = publish(&broker, &probe).await? else { panic!("it was stored") };
    assert_eq!(broker.stored_rows(&probe.tenant, &probe.table, probe.id, probed).await?, Some(0));
    assert_eq!(broker.stored_rows(&rows.tenant, &rows.table, rows.id, at).await?, Some(3));
    Ok(())
}

#[tokio::test]
async fn a_user_without_the_right_is_denied_at_once() -> Result<()> {
    let stand = patient(&Shape::default()).await?;
    let broker = stand.broker().await?;
    let mut server = stand.server;
    let none = "permissions { publish { allow: [\"$JS.API.>\"] }\nsubscribe { allow: [\"_INBOX_wh.>\"] } }";
    server.reload(Options::default().user("wavehouse", none)).await?;
    let outcome = until(Duration::from_secs(60), "it is refused", || async {
        let began = now();
        let outcome = publish(&broker, &block("t", 1)).await;
        outcome.is_err().then(|| (class(outcome), began.elapsed())).filter(|(class, _)| *class == Class::Denied)
    })
    .await?;
    ensure!(outcome.1 < LATE, "{outcome:?}");
    Ok(())
}

/// Decision D4, row by row, under one id.
#[tokio::test]
async fn probes_tell_what_became_of_a_block() -> Result<()> {
    let mut stand = Stand::new().await?;
    let broker = stand.broker().await?;
    let rows = async |block: &Block, at| broker.stored_rows(&block.tenant, &block.table, block.id, at).await;
    // never stored: the first probe is stored, and the original is too late for ever
    let never = block("t", 3);
    let Receipt::Stored(probe) = publish(&broker, &never.probe()).await? else { panic!("a probe of nothing") };
    assert_eq!(publish(&broker, &never).await?, Receipt::Duplicate(probe));
    // a repeated probe meets the first one, and the look-up says so
    assert_eq!(publish(&broker, &never.probe()).await?, Receipt::Duplicate(probe));
    assert_eq!(rows(&never, probe).await?, Some(0));
    // stored: the first probe is a duplicate, and so is every other
    let there = block("t", 5);
    let at = publish(&broker, &there).await?.cursor();
    for _ in 0..2 {
        assert_eq!(publish(&broker, &there.probe()).await?, Receipt::Duplicate(at));
    }
    assert_eq!(rows(&there, at).await?, Some(5));
    // another id at that place is not known there
    assert_eq!(rows(&never, at).await?, None);
    // what is kept is known after the server's restart
    stand.server.restart().await?;
    until(Duration::from_secs(60), "it is back", || async {
        broker.status().await.is_ok_and(|status| status.accepting)
    })
    .await?;
    assert_eq!(publish(&broker, &there.probe()).await?, Receipt::Duplicate(at));
    assert_eq!(rows(&there, at).await?, Some(5));
    Ok(())
}
