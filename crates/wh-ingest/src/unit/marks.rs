//! A unit tells how far its tables are: before an insert, after it, and once a second while a table lags. What a mark says
//! is `marking.rs`'s.

use super::{Slot, UnitLoop};
use crate::{
    marking::{Marking, Owner},
    metrics,
    table::TableRows,
    work::Key,
    worker::Shared,
};
use futures::{FutureExt, future::BoxFuture};
use std::{
    future::{pending, ready},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use wh_coord::Term;
use wh_mq::{Began, Floor, Marks, Progress};
use wh_types::{Clock, Mono};

/// Marks of tables that lag are repeated this often.
const BEAT: Duration = Duration::from_secs(1);
/// An insert waits for its announcement so long. A queue that does not answer for longer knows of no mark, and the insert
/// is not held up by it.
const WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Teller {
    marks: Arc<dyn Marks>,
    clock: Arc<dyn Clock>,
    owner: Owner,
    number: u64,
    beat: Option<Mono>,
    /// Set once no insert may begin.
    over: Arc<AtomicBool>,
    asked: Asked,
}

/// A question to the queue that is under way.
#[derive(Default)]
struct Asked(Option<BoxFuture<'static, Option<Floor>>>);

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", if self.0.is_some() { "asked" } else { "not asked" })
    }
}

impl Teller {
    pub(super) fn new(shared: &Shared, began: Began) -> Self {
        Self {
            marks: shared.parts.broker.marks(),
            clock: shared.parts.clock.clone(),
            owner: Owner { id: shared.parts.entropy.next_u64() | 1, began, doubt: !began.in_order },
            number: 0,
            beat: None,
            over: Arc::default(),
            asked: Asked::default(),
        }
    }

    pub(super) fn next_beat(&self) -> Option<Mono> {
        self.beat
    }

    pub(super) fn begin_nothing(&self, over: bool) {
        if over {
            self.over.store(true, Ordering::Relaxed);
        }
    }

    fn number(&mut self, mut mark: Progress, now: Mono) -> Progress {
        self.number += 1;
        mark.number = self.number;
        self.beat.get_or_insert(now + BEAT);
        mark
    }

    /// What is done before an insert: others know of it. Gives whether it may begin then.
    pub(super) fn before_insert(
        &mut self,
        marking: &mut Marking,
        rows: &TableRows,
        term: Option<Term>,
        now: Mono,
    ) -> BoxFuture<'static, bool> {
        let Some(mark) = marking.mark(rows, &self.owner, now, false) else { return ready(true).boxed() };
        let mark = self.number(mark, now);
        let (told, over, clock) = (announce(self.marks.clone(), vec![mark]), self.over.clone(), self.clock.clone());
        async move {
            told.await;
            !over.load(Ordering::Relaxed) && term.is_none_or(|term| term.is_live(clock.now()))
        }
        .boxed()
    }

    /// Whether the queue answered how far the unit is.
    pub(super) async fn floor(&mut self) -> Option<Floor> {
        let Some(asked) = &mut self.asked.0 else { return pending().await };
        let floor = asked.await;
        self.asked.0 = None;
        floor
    }

    /// Nothing comes any more that an owner before us had, once all of that is settled.
    pub(super) fn learn(&mut self, floor: Option<Floor>) {
        let began = self.owner.began.floor;
        if floor.is_some_and(|floor| floor.epoch == began.epoch && floor.settled >= began.delivered) {
            self.owner.doubt = false;
        }
    }

    fn ask(&mut self, rows: &TableRows) {
        if self.owner.doubt && self.asked.0.is_none() {
            let (marks, tenant, table) = (self.marks.clone(), rows.tenant.clone(), rows.table.clone());
            self.asked.0 = Some(async move { marks.floor(&tenant, &table).await.ok() }.boxed());
        }
    }
}

impl UnitLoop {
    /// Tells how far a table is, where that is something new.
    pub(super) fn tell(&mut self, key: Key) {
        let now = self.now();
        let Some(Slot { rows, marking, .. }) = self.tables.get_mut(key).and_then(Option::as_mut) else { return };
        let Some(mark) = marking.mark(rows, &self.teller.owner, now, false) else { return };
        let mark = self.teller.number(mark, now);
        self.acks.push(announce(self.teller.marks.clone(), vec![mark]));
    }

    /// Tells again how far the tables are that lag, in case nobody heard it.
    pub(super) fn beat(&mut self) {
        let now = self.now();
        self.teller.beat = None;
        let mut marks = Vec::new();
        for Slot { rows, marking, .. } in self.tables.iter_mut().flatten() {
            self.teller.ask(rows);
            if marking.repeats(rows)
                && let Some(mark) = marking.mark(rows, &self.teller.owner, now, true)
            {
                marks.push(self.teller.number(mark, now));
            }
        }
        if !marks.is_empty() {
            self.acks.push(announce(self.teller.marks.clone(), marks));
        } else if self.teller.owner.doubt && self.tables.iter().any(Option::is_some) {
            self.teller.beat = Some(now + BEAT);
        }
    }
}

fn announce(port: Arc<dyn Marks>, marks: Vec<Progress>) -> BoxFuture<'static, ()> {
    async move {
        if !matches!(tokio::time::timeout(WITHIN, port.announce(&marks)).await, Ok(Ok(()))) {
            metrics::unannounced(marks.len());
        }
    }
    .boxed()
}
