//! Acks of an owner that was cut off for so long that its term ended: what it had settled does not come a second time.

use crate::{
    faults_unit::{UNIT, blocks as blocks_of, broker_through, one_unit, publish_all},
    flow::{WIDE, settle, take},
    stand::Stand,
};
use anyhow::{Result, ensure};
use std::time::Duration;
use wh_mq::{AckToken, Broker as _, Delivery, Verdict, nats};
use wh_testkit::{chaos::Tcp, until};
use wh_types::BlockId;

const SECOND: Duration = Duration::from_secs(1);
/// Of twenty blocks so many are settled while nobody hears it.
const SETTLED: usize = 12;

/// An owner that took twenty blocks, was cut off, settled some and gave its unit up, all unheard. Gives the blocks in the
/// order they stand in.
async fn cut_off(stand: &Stand, proxy: &Tcp) -> Result<(nats::Broker, Vec<BlockId>)> {
    let (owner, blocks) = (broker_through(stand, proxy.port()).await?, blocks_of(20));
    publish_all(&stand.broker().await?, &blocks, Duration::ZERO).await?;
    let mut feed = owner.feed(UNIT, WIDE).await?;
    let taken = take(&mut *feed, blocks.len()).await?;
    proxy.down().await;
    let tokens: Vec<AckToken> = taken[..SETTLED].iter().map(|delivery| delivery.token).collect();
    let outcomes = feed.settle().settle(&tokens, Verdict::Ack).await;
    ensure!(outcomes.iter().all(Result::is_err), "nobody can have heard it: {outcomes:?}");
    feed.halt().await?;
    ensure!(feed.release().await.is_err(), "nor that it is given up");
    ensure!(stand.messages().await? == 20, "the server knows of none");
    Ok((owner, ids(&taken)))
}

async fn taken_over(broker: &nats::Broker) -> Result<()> {
    until(90 * SECOND, "it may be taken over", || async { broker.release_orphan(UNIT).await.is_ok() }).await?;
    Ok(())
}

fn ids(taken: &[Delivery]) -> Vec<BlockId> {
    taken.iter().map(|delivery| delivery.block.id).collect()
}

#[tokio::test]
async fn acks_that_outlived_their_term_are_sent_before_anybody_takes_the_unit() -> Result<()> {
    let stand = one_unit().await?;
    let proxy = Tcp::start(stand.server.port()).await?;
    let (owner, blocks) = cut_off(&stand, &proxy).await?;
    proxy.up().await?;
    // nobody takes the unit meanwhile: they are sent by themselves
    until(60 * SECOND, "they are sent", || async { matches!(stand.messages().await, Ok(8)) }).await?;
    // whoever takes it over gets the rest and nothing else
    let next = stand.broker().await?;
    taken_over(&next).await?;
    let mut feed = next.feed(UNIT, WIDE).await?;
    let rest = take(&mut *feed, 8).await?;
    assert_eq!(ids(&rest), blocks[SETTLED..]);
    settle(&*feed.settle(), &rest, Verdict::Ack).await?;
    assert_eq!(stand.messages().await?, 0);
    owner.close().await;
    Ok(())
}

#[tokio::test]
async fn what_was_settled_unheard_is_not_handed_on_again_by_the_process_that_settled_it() -> Result<()> {
    for restarted in [false, true] {
        let mut stand = one_unit().await?;
        let proxy = Tcp::start(stand.server.port()).await?;
        let (owner, blocks) = cut_off(&stand, &proxy).await?;
        // after either, the replies that its acks would go to are void
        if restarted {
            stand.server.restart().await?;
        }
        taken_over(&stand.broker().await?).await?;
        proxy.up().await?;
        until(60 * SECOND, "it takes the unit again", || async { owner.unowned().await.is_ok() }).await?;
        taken_over(&owner).await?;
        let mut feed = owner.feed(UNIT, WIDE).await?;
        let more = blocks_of(1);
        publish_all(&stand.broker().await?, &more, Duration::ZERO).await?;
        let rest = take(&mut *feed, 9).await?;
        assert_eq!(ids(&rest), [&blocks[SETTLED..], &[more[0].id]].concat(), "restarted: {restarted}");
        until(60 * SECOND, "the others are acked", || async { matches!(stand.messages().await, Ok(9)) }).await?;
        settle(&*feed.settle(), &rest, Verdict::Ack).await?;
        assert_eq!(stand.messages().await?, 0, "restarted: {restarted}");
        feed.halt().await?;
        feed.release().await?;
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_left_out_on_a_durable_that_was_made_anew() -> Result<()> {
    let stand = one_unit().await?;
    let proxy = Tcp::start(stand.server.port()).await?;
    let (owner, blocks) = cut_off(&stand, &proxy).await?;
    let (stream, durable) = (stand.spec.names().partition_stream(0), stand.spec.names().durable(0));
    let mut operator = stand.operator();
    let config = operator.consumer_info(&stream, &durable).await?["config"].take();
    operator.delete_durable(&stream, &durable).await?;
    operator.create_durable(&stream, &config).await?;
    proxy.up().await?;
    until(60 * SECOND, "it takes the unit again", || async { owner.unowned().await.is_ok() }).await?;
    taken_over(&owner).await?;
    let mut feed = owner.feed(UNIT, WIDE).await?;
    let all = take(&mut *feed, 20).await?;
    assert_eq!(ids(&all), blocks);
    Ok(())
}
