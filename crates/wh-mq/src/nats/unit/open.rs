//! Taking a unit, and the end of all of them.

use super::{
    desk::Desk,
    feed::NatsFeed,
    metrics, orphan,
    pull::{Pull, Times},
    reading::read_with_places,
    run::Runner,
    settler::{Order, Settler},
    term::Term,
    topics::Topics,
    units::Slot,
};
use crate::{
    Began, Budget, Error, Feed, Floor, Kind, Result, Unit,
    nats::{error, shared::Shared},
};
use futures::{future::join_all, stream::FuturesUnordered};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
use wh_nats::Puller;
use wh_topology::defaults::PRIORITY_GROUP;

const OP: &str = "feed";
/// How long an ack may stay unanswered.
const ACK_ANSWER: Duration = Duration::from_secs(2);
/// How long the units may take to end with the queue.
const CLOSE: Duration = Duration::from_secs(8);

/// Takes a unit (mq20–mq32).
///
/// # Errors
/// Conflict (a feed of this process has it), `NotFound`, Unavailable, Stopping.
pub(crate) async fn open(shared: &Arc<Shared>, unit: Unit, budget: Budget) -> Result<Box<dyn Feed>> {
    shared.running(OP)?;
    let (partition, durable) = shared.durable(OP, unit)?;
    let claimed = shared.units.claim(unit).ok_or_else(|| Error::new(OP, Kind::UnitHeld(unit)))?;
    if let Some(Slot::Orphan(term)) = claimed.before() {
        orphan::bury(shared, partition, durable, term).await?;
    }
    metrics::describe();
    let (stream, name) = (partition.name(), durable.name.as_str());
    let failed = |error| error::request(OP, error);
    let connection = &shared.connection;
    let (found, (settled, delivered)) = read_with_places(&connection.api(), stream, name).await.map_err(failed)?;
    let link = connection.watch();
    let puller = Puller::open(connection, stream, name, PRIORITY_GROUP).await.map_err(failed)?;
    let mut past = shared.units.past(unit);
    let mut desk = Desk::new(budget, durable.ack_wait, std::mem::take(&mut past.attempts), past.last);
    let delivered = delivered.max(past.delivered_to);
    desk.inherit(past.settled_on(&found.created));
    let left_over = desk.unconfirmed();
    let began = Began {
        floor: Floor { epoch: partition.epoch(), settled, delivered },
        // a reset leaves nothing unsettled
        in_order: found.unsettled == 0,
    };
    let (orders, to_settle) = mpsc::unbounded_channel();
    let term = Arc::new(Term::new(unit, desk, orders, found.created.clone()));
    if !left_over.is_empty() {
        term.order(Order::again(left_over));
    }
    let settler = Settler::new(connection.clone(), term.clone(), ACK_ANSWER);
    let settler = shared.tasks.spawn("unit/settle", settler.run(to_settle));
    let times = Times::new(durable.pinned_ttl, durable.max_ack_pending);
    let now = shared.clock().now();
    let (control, controlled) = mpsc::unbounded_channel();
    let runner = Runner {
        shared: shared.clone(),
        term: term.clone(),
        stream: stream.to_owned(),
        durable: name.to_owned(),
        created: found.created.clone(),
        times,
        puller,
        pull: Pull::new(times, now, &found),
        control: controlled,
        settler,
        link,
        asks: FuturesUnordered::new(),
        commands: Vec::new(),
        reserved: 0,
        starved: false,
        ack_again: false,
        upkeep: now,
        unpinned: None,
        place: 0,
        topics: Topics::default(),
        halted: false,
        halting: Vec::new(),
        releasing: None,
    };
    claimed.set(Some(Slot::Owned(term.clone())));
    shared.tasks.spawn("unit/pull", runner.run());
    Ok(Box::new(NatsFeed::new(shared.clone(), term, control, began)))
}

/// Ends every feed of this process: nothing is taken any more, `next` gives `None`, settling answers `Stopping`, and the
/// units are given up.
pub(crate) async fn close(shared: &Arc<Shared>) {
    let ends = shared.units.all().into_iter().map(async |(unit, slot)| match slot {
        Slot::Owned(term) => term.ended.wait().await,
        Slot::Orphan(term) => {
            let Ok((partition, durable)) = shared.durable("close", unit) else { return };
            if let Err(error) = orphan::bury(shared, partition, durable, &term).await {
                tracing::debug!(%unit, %error, "unit {unit} frees itself later");
            }
        }
        Slot::Busy | Slot::Released(_) => {}
    });
    // a server that does not answer is not waited for: the units free themselves
    tokio::time::timeout(CLOSE, join_all(ends)).await.ok();
}
