//! Breaks, elections, and streams that are purged, deleted or made anew under readers.

use super::{before_all, follow, stored, watch::Shown};
use crate::stand::{Stand, choices};
use anyhow::{Result, ensure};
use std::time::Duration;
use wh_mq::{From, Happening, nats};
use wh_nats::Connection;
use wh_testkit::{
    chaos::{Tcp, Way},
    nats::{Cluster, Options, PASSWORD, Shape},
    until,
};
use wh_topology::{Rights, RightsFormat, Role, Spec, Topology};
use wh_types::Secret;

const WITHIN: Duration = Duration::from_secs(90);

#[tokio::test]
async fn what_is_stored_while_the_connection_is_cut_is_filled() -> Result<()> {
    let stand = Stand::new().await?;
    let (writer, proxy) = (stand.broker().await?, Tcp::start(stand.server.port()).await?);
    let connection = Connection::open(stand.connecting(Some(proxy.port()))).await?;
    let reading = stand.broker_on(connection.clone()).await?;
    let mut cursors = stored(&writer, "t", "p", 0, 10).await?;
    let mut all = follow(&reading, "t", before_all(cursors[0])).await?;
    let mut now = follow(&reading, "t", From::Now).await?;
    for round in 0..6 {
        match round % 3 {
            // the server closes
            0 => proxy.cut(),
            // nobody says anything any more
            1 => proxy.black_hole(Way::Both),
            _ => proxy.down().await,
        }
        cursors.extend(stored(&writer, "t", "p", cursors.len() as u64, 20).await?);
        match round % 3 {
            0 => {}
            1 => {
                until(WITHIN, "it is noticed", || async { !connection.is_connected() }).await?;
                proxy.heal();
            }
            _ => proxy.up().await?,
        }
        cursors.extend(stored(&writer, "t", "p", cursors.len() as u64, 20).await?);
    }
    let last = cursors[cursors.len() - 1];
    for (watch, expected) in [(&mut all, &cursors[..]), (&mut now, &cursors[10..])] {
        let shown = watch.until(last).await?;
        ensure!(shown == Shown::new(expected), "{}", shown.compared(expected));
    }
    Ok(())
}

#[tokio::test]
async fn what_is_more_bytes_than_a_slow_process_may_hold_is_dropped_and_filled() -> Result<()> {
    let stand = Stand::new().await?;
    let (writer, proxy) = (stand.broker().await?, Tcp::start(stand.server.port()).await?);
    let mut connecting = stand.connecting(Some(proxy.port()));
    // one message at a time: of two that come in one piece the second is dropped
    connecting.subscription_bytes = 1;
    let connection = Connection::open(connecting).await?;
    let reading = stand.broker_on(connection.clone()).await?;
    let mut watch = follow(&reading, "t", From::Now).await?;
    proxy.black_hole(Way::ToClient);
    let cursors = stored(&writer, "t", "p", 0, 4_000).await?;
    proxy.heal();
    let shown = watch.until(cursors[3_999]).await?;
    ensure!(shown == Shown::new(&cursors), "{}", shown.compared(&cursors));
    ensure!(connection.state().slow_consumers > 0, "nothing was dropped");
    Ok(())
}

#[tokio::test]
async fn a_server_that_restarts_costs_readers_nothing() -> Result<()> {
    let mut stand = Stand::new().await?;
    let broker = stand.broker().await?;
    let mut cursors = stored(&broker, "t", "p", 0, 10).await?;
    let mut watch = follow(&broker, "t", before_all(cursors[0])).await?;
    assert_eq!(watch.live().await?, Shown::new(&cursors));
    for _ in 0..2 {
        stand.server.restart().await?;
        let n = cursors.len() as u64;
        let more = until(WITHIN, "it is stored", || stored(&broker, "t", "p", n, 10)).await?;
        assert_eq!(watch.until(more[9]).await?, Shown::new(&more).without_live());
        cursors.extend(more);
    }
    Ok(())
}

#[tokio::test]
async fn a_stream_made_anew_is_a_gap_and_a_new_epoch() -> Result<()> {
    let stand = Stand::new().await?;
    let (broker, mut operator) = (stand.broker().await?, stand.operator());
    let old = stored(&broker, "t", "p", 0, 5).await?;
    let mut live = follow(&broker, "t", before_all(old[0])).await?;
    assert_eq!(live.live().await?, Shown::new(&old));

    let stream = stand.spec.names().partition_stream(0);
    let config = operator.stream_info(&stream).await?["config"].take();
    operator.delete_stream(&stream).await?;
    // a stream that comes back at once may bring old blocks with it
    tokio::time::sleep(Duration::from_millis(500)).await;
    operator.create_stream(&config).await?;
    // another process finds the stream as it is now; nobody made its durables
    let mut options = nats::Options::new(stand.spec.clone());
    options.role = Role::Api;
    let other = nats::Broker::open(stand.connect().await?, options).await?;
    let new = stored(&other, "t", "p2", 0, 3).await?;
    ensure!(new[0].epoch != old[0].epoch && new[0].sequence == 1, "{new:?}");
    let Happening::Gap(gap) = live.next().await? else { panic!("no gap") };
    // told as soon as it is noticed, which may be before anything follows
    ensure!(gap.after == Some(old[4]) && gap.before.is_none_or(|before| before == new[0]), "{gap:?}");
    assert_eq!(live.until(new[2]).await?, Shown::new(&new).without_live());
    // who was there before knows what the old cursor means; who came later has to say that it does not
    let known = follow(&broker, "t", From::After(old[2])).await?.live().await?;
    assert_eq!(known, Shown::new(&[&old[3..], &new[..]].concat()));
    let mut unknown = follow(&other, "t", From::After(old[2])).await?;
    let Happening::Gap(gap) = unknown.next().await? else { panic!("no gap") };
    assert_eq!(gap.after, Some(old[2]));
    let kept = unknown.live().await?;
    ensure!(kept.gaps.is_empty() && kept.cursors.len() == 8 && kept.cursors.ends_with(&new), "{kept:?}");
    Ok(())
}

#[tokio::test]
async fn a_history_that_misses_blocks_costs_live_readers_nothing() -> Result<()> {
    let stand = Stand::new().await?;
    let (broker, mut operator) = (stand.broker().await?, stand.operator());
    let mut cursors = stored(&broker, "t", "p", 0, 5).await?;
    let mut live = follow(&broker, "t", before_all(cursors[0])).await?;
    assert_eq!(live.live().await?, Shown::new(&cursors));

    let history = &stand.spec.names().history;
    let config = operator.stream_info(history).await?["config"].take();
    operator.delete_stream(history).await?;
    cursors.extend(stored(&broker, "t", "p", 5, 5).await?);
    operator.create_stream(&config).await?;
    cursors.extend(stored(&broker, "t", "p", 10, 5).await?);
    assert_eq!(live.until(cursors[14]).await?, Shown::new(&cursors[5..]).without_live());
    // this process heard them all
    let ring = follow(&broker, "t", From::After(cursors[2])).await?.live().await?;
    assert_eq!(ring, Shown::new(&cursors[3..]));
    // another did not
    let other = stand.broker().await?;
    let mut late = follow(&other, "t", From::After(cursors[2])).await?;
    let Happening::Gap(gap) = late.next().await? else { panic!("no gap") };
    assert_eq!(gap.after, Some(cursors[2]));
    let shown = late.live().await?;
    ensure!(shown.cursors.ends_with(&cursors[10..]), "{}", shown.compared(&cursors[10..]));
    Ok(())
}

#[tokio::test]
async fn a_history_purged_under_a_replay_is_a_gap_and_goes_on_live() -> Result<()> {
    let stand = Stand::new().await?;
    let (writer, reading) = (stand.broker().await?, stand.broker().await?);
    let mut cursors = Vec::new();
    for n in 0..10 {
        cursors.extend(stored(&writer, "t", "p", n * 100, 100).await?);
    }
    // it heard none of them
    let reading_late = stand.broker().await?;
    let mut replay = follow(&reading_late, "t", before_all(cursors[0])).await?;
    assert!(matches!(replay.next().await?, Happening::Block(at, _) if at == cursors[0]));
    stand.operator().purge(&stand.spec.names().history).await?;
    let more = stored(&writer, "t", "p", 1_000, 3).await?;
    let shown = replay.until(more[2]).await?;
    assert_eq!((shown.gaps.len(), shown.lives), (1, 1), "{:?}", shown.gaps);
    let got = shown.cursors.len() - 3;
    ensure!(shown.cursors[..got] == cursors[1..=got], "{}", shown.compared(&cursors[1..]));
    ensure!(shown.cursors[got..] == more);
    // who heard them shows them
    let heard = follow(&reading, "t", From::After(cursors[500])).await?.live().await?;
    assert_eq!(heard, Shown::new(&[&cursors[501..], &more[..]].concat()));
    Ok(())
}

#[tokio::test]
async fn a_dead_leader_of_the_history_costs_live_readers_nothing() -> Result<()> {
    let mut own = choices();
    own.replicas = 3;
    let topology = Topology::new(Spec::new(own)?)?;
    let rights = Rights::new(&topology.spec, Role::Both).print(RightsFormat::Nats);
    let mut cluster = Cluster::with(Options::default().user(Role::Both.user(), rights)).await?;
    crate::stand::create(&mut cluster.operator(), &topology, &Shape::default()).await?;
    let names = topology.spec.names();
    let (partition, history) = (names.partition_stream(0), names.history.clone());
    // the partition is led elsewhere, so that only the history loses something
    let (victim, leader) = until(WITHIN, "they are led by different servers", || async {
        let (of_history, of_partition) =
            (cluster.stream_leader(&history).await.ok()?, cluster.stream_leader(&partition).await.ok()?);
        if of_history == of_partition {
            cluster.operator().step_down_stream(&history).await.ok()?;
            return None;
        }
        Some((of_history, of_partition))
    })
    .await?;
    let connect = async || {
        let mut options = wh_nats::Options::new([cluster.node(leader).url()]);
        let password = Secret::from(PASSWORD);
        options.credentials = wh_nats::Credentials::Password { user: Role::Both.user().into(), password };
        options.inbox_prefix = names.inbox().to_owned();
        Connection::open(options).await
    };
    let open = async || {
        let options = nats::Options::new(topology.spec.clone());
        anyhow::Ok(nats::Broker::open(connect().await?, options).await?)
    };
    let (writer, reading) = (open().await?, open().await?);
    let mut cursors = stored(&writer, "t", "p", 0, 20).await?;
    let mut all = follow(&reading, "t", before_all(cursors[0])).await?;
    assert_eq!(all.live().await?, Shown::new(&cursors));
    let mut now = follow(&reading, "t", From::Now).await?;
    assert_eq!(now.next().await?, Happening::Live);
    cluster.node_mut(victim).process().kill()?;
    let killed = cursors.len();
    // through the election, and after it
    let elected = async || cluster.stream_leader(&history).await.is_ok_and(|leader| leader != victim);
    let mut rounds = 0;
    while rounds < 20 || !elected().await {
        cursors.extend(stored(&writer, "t", "p", cursors.len() as u64, 20).await?);
        rounds += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    cursors.extend(stored(&writer, "t", "p", cursors.len() as u64, 20).await?);
    let last = cursors[cursors.len() - 1];
    for watch in [&mut all, &mut now] {
        assert_eq!(watch.until(last).await?, Shown::new(&cursors[killed..]).without_live());
    }
    // from a cursor of before as well: this process has them
    let resumed = follow(&reading, "t", From::After(cursors[3])).await?.live().await?;
    assert_eq!(resumed, Shown::new(&cursors[4..]));
    Ok(())
}
