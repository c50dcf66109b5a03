//! One stream's way through one table: along the ring, and through the history where the ring does not reach. The change
//! between the two is at a place, so that nothing is lost or doubled there.

use super::{
    channel::{Channel, Phase},
    frame::{Frames, Why},
    hub::{DELAYS, Hub},
    latest::Latest,
    lifetime::Reason,
    position::{Origin, Position},
    replay::{Fed, Took},
    ring::{Item, Read},
    way::{Failing, Replay, Way},
    wish::{Slow, Told, Wish},
};
use crate::error::ApiError;
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::sleep_until};
use wh_mq::{From, Gap, Happening};
use wh_types::{Block, Class, Cursor, Mono, Table, Tenant};

/// How long a history that fails is tried again before the stream ends.
const GIVE_UP: Duration = Duration::from_secs(60);
/// Bytes of waiting rows among which only the newest of each key is sent.
const CONFLATED: usize = 1 << 20;

/// Reads one table for one stream.
#[derive(Debug)]
pub(super) struct Reader {
    hub: Arc<Hub>,
    tenant: Tenant,
    table: Table,
    channel: Arc<Channel>,
    phase: watch::Receiver<Phase>,
    wish: Wish,
    way: Way,
    /// Up to where the client has everything.
    place: Origin,
    /// Blocks up to the place may come yet, and are passed over.
    passing: bool,
    /// What comes was stored before the table is live for this stream.
    replaying: bool,
    /// It was too slow for the live rows, and is not back at them.
    behind: bool,
    /// To be told first.
    owed: Option<Told>,
}

enum Step {
    Told(Told),
    /// Nothing to tell, but it went on.
    Again,
    Nothing,
}

impl Reader {
    /// A reader of a table that is followed.
    pub(super) fn new(
        hub: Arc<Hub>,
        tenant: Tenant,
        table: Table,
        (channel, phase): (Arc<Channel>, watch::Receiver<Phase>),
        origin: Origin,
        wish: Wish,
    ) -> Self {
        let ring = channel.ring.lock();
        let head = ring.head();
        let from_now = Way::Ring { at: head, seam: Some(head) };
        let now = ring.through().map_or(Origin::Now, |through| Origin::After(Position::behind(through)));
        let (way, place) = match origin {
            Origin::Now | Origin::Lost => (from_now, now),
            Origin::After(place) => {
                let at = ring.locate(place, false);
                (at.map_or_else(Way::history, |at| Way::Ring { at, seam: Some(head) }), origin)
            }
            Origin::Since(_) => (Way::history(), origin),
        };
        drop(ring);
        let owed = (origin == Origin::Lost).then_some(Told::Gap { from: None, to: None, why: Why::Lost });
        let (passing, replaying, behind) = (true, true, false);
        Self { hub, tenant, table, channel, phase, wish, way, place, passing, replaying, behind, owed }
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Up to where the client has everything that was taken.
    pub(super) fn place(&self) -> Origin {
        self.place
    }

    /// What there is to tell now. Nothing: [`Reader::wait`].
    pub(super) fn take(&mut self) -> Option<Told> {
        if let Some(owed) = self.owed.take() {
            return Some(owed);
        }
        let latest = match &self.wish.slow {
            Slow::Latest(key) if self.waits() => Some(key.clone()),
            Slow::Latest(_) | Slow::Gap | Slow::End => None,
        };
        let first = self.next()?;
        let (Told::Rows(frames), Some(key)) = (&first, latest) else { return Some(first) };
        let mut latest = Latest::new(&key);
        latest.add(frames);
        while latest.bytes() < CONFLATED && self.owed.is_none() {
            match self.next() {
                Some(Told::Rows(frames)) => latest.add(&frames),
                other => {
                    self.owed = other;
                    break;
                }
            }
        }
        let (frames, gone) = latest.frames();
        self.hub.meters.conflated.increment(gone);
        Some(Told::Rows(frames))
    }

    /// Whether rows wait because the client is slow.
    fn waits(&self) -> bool {
        match self.way {
            Way::Ring { at, seam: None } => self.channel.ring.lock().waiting(at) > 1,
            Way::Ring { .. } | Way::History(_) => self.behind,
        }
    }

    fn next(&mut self) -> Option<Told> {
        loop {
            let step = match self.way {
                Way::Ring { .. } => self.along_the_ring(),
                Way::History(_) => self.through_the_history(),
            };
            match step {
                Step::Told(told) => return Some(told),
                Step::Again => {}
                Step::Nothing => return None,
            }
        }
    }

    /// Returns once there may be something to take.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn wait(&mut self) {
        let changed = async {
            // the channel is held, and so its sender
            drop(self.phase.changed().await);
        };
        let Way::History(replay) = &mut self.way else { return changed.await };
        match &mut **replay {
            Replay { feed: Some(feed), .. } => tokio::select! {
                () = feed.wait() => {}
                () = changed => {}
            },
            Replay { failing: Some(failing), .. } => tokio::select! {
                () = sleep_until(failing.again) => {}
                () = changed => {}
            },
            Replay { .. } => {}
        }
    }

    fn along_the_ring(&mut self) -> Step {
        let phase = *self.phase.borrow_and_update();
        let Way::Ring { at, seam } = &mut self.way else { return Step::Again };
        if seam.is_some_and(|seam| *at >= seam) {
            *seam = None;
            return self.ready();
        }
        let number = *at;
        let read = self.channel.ring.lock().read(at);
        match read {
            Read::Item(Item::Block(shown)) => {
                let Some(first) = self.first_row(shown.cursor) else { return Step::Again };
                let view = match self.wish.view.now() {
                    Ok(view) => view,
                    Err(error) => return self.view_gone(&error),
                };
                let frames = self.channel.frames(number, &shown, view, self.replaying);
                self.rows(shown.cursor, shown.rows(), first, frames)
            }
            Read::Item(Item::Gap(gap)) => self.gap(gap),
            Read::Behind(sets) => self.fell_behind(sets),
            Read::Nothing if phase == Phase::Ended => Step::Told(Told::End(Reason::Closed)),
            Read::Nothing => Step::Nothing,
        }
    }

    fn through_the_history(&mut self) -> Step {
        if let Some(way) = self.back_to_the_ring() {
            (self.way, self.passing) = (way, true);
            return Step::Again;
        }
        let now = self.hub.clock.now();
        let Way::History(replay) = &mut self.way else { return Step::Again };
        let Some(feed) = &mut replay.feed else {
            if replay.failing.is_some_and(|failing| now < failing.again) {
                return Step::Nothing;
            }
            let from = match self.place {
                Origin::After(place) => From::After(place.before()),
                Origin::Since(time) => From::Time(time),
                Origin::Now | Origin::Lost => From::Now,
            };
            replay.feed = Some(self.hub.replays.feed(&self.tenant, &self.table, from));
            self.passing = true;
            return Step::Again;
        };
        match feed.take() {
            Took::Nothing => Step::Nothing,
            Took::Over => {
                replay.feed = None;
                Step::Again
            }
            Took::Fed(Fed::Open(seam)) => {
                replay.seam = seam;
                self.opened()
            }
            Took::Fed(Fed::Happening(Happening::Block(cursor, block))) => {
                (replay.certain, replay.failing) = (true, None);
                self.block(cursor, &block)
            }
            Took::Fed(Fed::Happening(Happening::Gap(gap))) => self.gap(gap),
            Took::Fed(Fed::Happening(Happening::Live)) => {
                (replay.certain, replay.failing) = (true, None);
                if let Some(seam) = replay.seam {
                    self.at_the_seam(seam);
                }
                if self.replaying { self.ready() } else { Step::Again }
            }
            Took::Fed(Fed::Closed) => Step::Told(Told::End(Reason::Closed)),
            Took::Fed(Fed::Failed(error)) if error.class() == Class::Stopping => Step::Told(Told::End(Reason::Closed)),
            Took::Fed(Fed::Failed(error)) => self.failed(&error, now),
        }
    }

    /// The ring has everything after the place.
    fn back_to_the_ring(&self) -> Option<Way> {
        let (Way::History(replay), Origin::After(place)) = (&self.way, self.place) else { return None };
        if !replay.certain {
            return None;
        }
        let ring = self.channel.ring.lock();
        let at = ring.locate(place, true)?;
        Some(Way::Ring { at, seam: self.replaying.then(|| ring.head()) })
    }

    /// A place in front of all that the history has was never in it: nothing is known of what follows there.
    fn opened(&mut self) -> Step {
        let Way::History(replay) = &self.way else { return Step::Again };
        let (Origin::After(place), Some(seam), false) = (self.place, replay.seam, replay.certain) else {
            return Step::Again;
        };
        if place.block.epoch != seam.epoch || place.block.sequence <= seam.sequence {
            return Step::Again;
        }
        let from = Some(place.to_string());
        self.place = Origin::Lost;
        // of a place that is further away the history tells by itself
        if place.before().sequence > seam.sequence {
            return Step::Again;
        }
        Step::Told(Told::Gap { from, to: None, why: Why::Lost })
    }

    /// Nothing of the table is between the place and the seam.
    fn at_the_seam(&mut self, seam: Cursor) {
        let further = match self.place {
            Origin::After(place) => place.block.epoch != seam.epoch || place.block.sequence < seam.sequence,
            Origin::Now | Origin::Lost | Origin::Since(_) => true,
        };
        if further {
            self.place = Origin::After(Position::behind(seam));
        }
    }

    fn ready(&mut self) -> Step {
        (self.replaying, self.behind) = (false, false);
        Step::Told(Told::Ready)
    }

    /// The first row of a block that the client does not have. `None`: it has all.
    fn first_row(&self, cursor: Cursor) -> Option<u32> {
        match self.place {
            Origin::After(place) if self.passing => place.first_row(cursor),
            Origin::After(_) | Origin::Now | Origin::Since(_) | Origin::Lost => Some(0),
        }
    }

    fn block(&mut self, cursor: Cursor, block: &Block) -> Step {
        let Some(first) = self.first_row(cursor) else { return Step::Again };
        let frames = match self.wish.view.now() {
            Ok(view) => super::block::project(cursor, block, view, self.replaying),
            Err(error) => return self.view_gone(&error),
        };
        self.rows(cursor, block.rows, first, frames)
    }

    fn rows(&mut self, cursor: Cursor, rows: u32, first: u32, frames: Option<Frames>) -> Step {
        let from = std::mem::replace(&mut self.place, Origin::After(Position::behind_rows(cursor, rows)));
        self.passing = false;
        let Some(frames) = frames else {
            return Step::Told(Told::Gap { from: id(from), to: self.id(), why: Why::Lost });
        };
        let frames = frames.beyond(first);
        if frames.count == 0 { Step::Again } else { Step::Told(Told::Rows(frames)) }
    }

    /// What the stream shows cannot be had of the table as it is now. The place stays before the block.
    fn view_gone(&self, error: &ApiError) -> Step {
        let table = &self.table;
        tracing::debug!(%table, "a stream of {table} ends: {}", error.message());
        Step::Told(Told::End(Reason::ViewGone))
    }

    fn gap(&mut self, Gap { after, before }: Gap) -> Step {
        // it ends where the client has been already
        if let (true, Origin::After(place), Some(before)) = (self.passing, self.place, before)
            && before.epoch == place.block.epoch
            && before.sequence <= place.block.sequence
        {
            return Step::Again;
        }
        let from = self.id().or_else(|| after.map(|at| at.to_string()));
        Step::Told(Told::Gap { from, to: before.map(|at| at.to_string()), why: Why::Lost })
    }

    /// What the client has not got is no longer in the ring.
    fn fell_behind(&mut self, sets: u64) -> Step {
        self.hub.meters.events.dropped.increment(sets);
        if self.wish.slow == Slow::End {
            return Step::Told(Told::End(Reason::Slow));
        }
        if !matches!(self.place, Origin::After(_)) {
            let first = self.channel.ring.lock().first();
            self.way = Way::Ring { at: first, seam: None };
            return Step::Told(Told::Gap { from: None, to: None, why: Why::Lost });
        }
        self.way = Way::certain_history();
        (self.replaying, self.behind) = (true, true);
        match self.wish.slow {
            Slow::Latest(_) => Step::Again,
            Slow::Gap | Slow::End => Step::Told(Told::Gap { from: self.id(), to: None, why: Why::Slow }),
        }
    }

    fn failed(&mut self, error: &wh_mq::Error, now: Mono) -> Step {
        let table = &self.table;
        tracing::warn!(%table, %error, "the history of {table} cannot be read for a stream");
        let Way::History(replay) = &mut self.way else { return Step::Again };
        let Failing { since, times, .. } = replay.failing.unwrap_or(Failing { since: now, times: 0, again: now });
        if now.saturating_duration_since(since) > GIVE_UP {
            return Step::Told(Told::End(Reason::HistoryUnavailable));
        }
        let again = now + DELAYS.delay(times + 1, &*self.hub.entropy);
        replay.failing = Some(Failing { since, times: times + 1, again });
        replay.feed = None;
        Step::Again
    }

    /// The place as clients have it, where it is known.
    fn id(&self) -> Option<String> {
        id(self.place)
    }
}

fn id(place: Origin) -> Option<String> {
    let id = place.to_string();
    (!id.is_empty()).then_some(id)
}
