//! The loop: asks which rows are held, watches their tables' columns, publishes and removes.

use super::watch::{Columns, Key, Watch};
use crate::{metrics, rows, worker::Shared};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tracing::{info, warn};
use wh_mq::{DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterQuery, Error};
use wh_types::{Block, Class, Encoding, Mono, Stop, Table, Tenant};

/// Rows published at once.
const WINDOW: usize = 256;
/// Most pages of held rows that one scan reads of a tenant: it only needs to know their tables.
const PAGES: usize = 20;

/// Works until `stop` is given, and then does nothing more.
pub(crate) async fn run(shared: Arc<Shared>, stop: Stop) {
    let mut replay =
        Replay { watch: Watch::new(shared.parts.clock.now()), shared, told: BTreeSet::new(), forbidden: false };
    loop {
        let now = replay.now();
        let wait = replay.watch.wake(now).saturating_duration_since(now);
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = replay.shared.owned.news() => {
                replay.watch.news(now);
                continue;
            }
            () = tokio::time::sleep(wait) => {}
        }
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = replay.step() => {}
        }
    }
}

struct Replay {
    shared: Arc<Shared>,
    watch: Watch,
    /// Tables whose gauge was set.
    told: BTreeSet<Key>,
    /// Letters cannot be removed here: nothing is published by itself.
    forbidden: bool,
}

/// What a window of rows came to.
enum Window {
    /// Through; so many were published.
    Done(usize),
    /// To be tried later.
    Failed,
}

impl Replay {
    fn now(&self) -> Mono {
        self.shared.parts.clock.now()
    }

    fn owns(&self, (tenant, table): &Key) -> bool {
        let unit = self.shared.parts.broker.unit_of(tenant, table);
        self.shared.owned.has(unit, self.now())
    }

    async fn step(&mut self) {
        if self.watch.scan_is_due(self.now()) {
            let held = self.scan().await;
            let now = self.now();
            match held {
                Ok(held) => self.watch.scanned(&held, now),
                Err(error) => {
                    if error.class() != Class::Stopping {
                        warn!(%error, "the queue does not say which rows are held");
                    }
                    self.watch.scan_failed(now);
                }
            }
        }
        if self.forbidden {
            return;
        }
        for key in self.watch.due(self.now()) {
            if !self.owns(&key) {
                continue;
            }
            let Some(sink) = self.shared.parts.sinks.sink(&key.0) else { continue };
            let Some(columns) = sink.columns(&key.1).await else { continue };
            if self.watch.wants(&key, &columns) {
                self.replay(&key, columns).await;
            }
        }
    }

    /// The tables of our units that have held rows now. Brings the gauges of dead letters up to date.
    async fn scan(&mut self) -> Result<BTreeSet<Key>, Error> {
        let mut held = BTreeSet::new();
        if self.shared.owned.is_empty() {
            self.tell(Vec::new());
            return Ok(held);
        }
        let broker = self.shared.parts.broker.clone();
        let status = broker.status().await?;
        let mut depths = Vec::new();
        for (tenant, kept) in &status.tenants {
            let of = |table: &Table| (tenant.clone(), table.clone());
            let ours = kept.dead_letters.iter().map(|(table, count)| (of(table), *count));
            let ours: Vec<_> = ours.filter(|(key, count)| *count > 0 && self.owns(key)).collect();
            if ours.is_empty() {
                continue;
            }
            depths.extend(ours);
            let mut query = DeadLetterQuery { filter: self.filter(None), limit: 1_000, ..DeadLetterQuery::default() };
            for _ in 0..PAGES {
                let page = broker.dead_letters(tenant, &query).await?;
                held.extend(page.letters.iter().map(|letter| of(&letter.table)).filter(|key| self.owns(key)));
                query.cursor = page.next;
                if query.cursor.is_none() {
                    break;
                }
            }
        }
        self.tell(depths);
        Ok(held)
    }

    /// The letters that are held now. None is older than the time for which they are.
    fn filter(&self, table: Option<Table>) -> DeadLetterFilter {
        let now = self.shared.parts.clock.wall();
        let from = now.saturating_sub(self.shared.options.missing_table_hold * 2 + Duration::from_secs(60));
        DeadLetterFilter { table, from: Some(from), held_at: Some(now), ..DeadLetterFilter::default() }
    }

    fn tell(&mut self, depths: Vec<(Key, u64)>) {
        let mut told = BTreeSet::new();
        for (key, depth) in depths {
            metrics::dead_letters(&key.0, &key.1, depth);
            self.told.remove(&key);
            told.insert(key);
        }
        for (tenant, table) in std::mem::replace(&mut self.told, told) {
            metrics::dead_letters(&tenant, &table, 0);
        }
    }

    /// Tries every held row of a table with the columns it has now.
    async fn replay(&mut self, key: &Key, columns: Columns) {
        let left = self.watch.left(key);
        if !self.remove(key, left).await {
            return;
        }
        let filter = self.filter(Some(key.1.clone()));
        let mut query = DeadLetterQuery { filter, limit: WINDOW, ..DeadLetterQuery::default() };
        let mut count = 0;
        loop {
            let page = match self.shared.parts.broker.dead_letters(&key.0, &query).await {
                Ok(page) => page,
                Err(error) => {
                    warn!(tenant = %key.0, table = %key.1, %error, "held rows of {} cannot be read", key.1);
                    let now = self.now();
                    return self.watch.failed(key, now);
                }
            };
            // a row that still names a column that is not there waits on
            let whole = |letter: &DeadLetter| rows::unknown_key(&letter.body, &columns).is_none();
            let letters: Vec<_> = page.letters.into_iter().filter(whole).collect();
            match self.window(key, &letters).await {
                Window::Done(rows) => count += rows,
                Window::Failed => return,
            }
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        if count > 0 {
            info!(tenant = %key.0, table = %key.1, rows = count, "{count} held rows of {} are in the queue again", key.1);
        }
        self.watch.tried(key, columns);
    }

    async fn window(&mut self, key: &Key, letters: &[DeadLetter]) -> Window {
        if letters.is_empty() {
            return Window::Done(0);
        }
        if !self.owns(key) {
            return Window::Failed;
        }
        let broker = self.shared.parts.broker.clone();
        if let Err(error) = broker.purge_dead_letters(&key.0, &[]).await {
            self.not_removed(key, &error);
            return Window::Failed;
        }
        let received = self.shared.parts.clock.wall();
        let block = |letter: &DeadLetter| letter.block(&letter.body, received, Encoding::Zstd);
        let Ok(blocks) = letters.iter().map(block).collect::<Result<Vec<Block>, _>>() else {
            let now = self.now();
            self.watch.failed(key, now);
            return Window::Failed;
        };
        let (mut stored, mut failure) = (Vec::with_capacity(letters.len()), None);
        for (letter, outcome) in letters.iter().zip(broker.publish(&blocks).await) {
            match outcome {
                Ok(_) => {
                    metrics::replayed(&letter.table, &letter.code);
                    stored.push(letter.id);
                }
                Err(error) => failure = Some(error),
            }
        }
        let rows = stored.len();
        let removed = self.remove(key, stored).await;
        if let Some(error) = failure {
            warn!(tenant = %key.0, table = %key.1, %error, "held rows of {} could not be published", key.1);
            let now = self.now();
            self.watch.failed(key, now);
            return Window::Failed;
        }
        if removed { Window::Done(rows) } else { Window::Failed }
    }

    /// Removes letters whose rows are in the queue; gives whether nothing is left of them.
    async fn remove(&mut self, key: &Key, ids: Vec<DeadLetterId>) -> bool {
        if ids.is_empty() {
            return true;
        }
        let outcome = self.shared.parts.broker.purge_dead_letters(&key.0, &ids).await;
        match outcome {
            Ok(_) => {
                self.watch.set_left(key, Vec::new());
                true
            }
            Err(error) => {
                self.watch.set_left(key, ids);
                self.not_removed(key, &error);
                false
            }
        }
    }

    fn not_removed(&mut self, (tenant, table): &Key, error: &Error) {
        if error.class() == Class::Unsupported {
            // published without being removed they would be published again after the duplicate window
            self.forbidden = true;
            warn!(%tenant, %table, %error, "held rows are not replayed by themselves: dead letters cannot be removed here");
        } else {
            warn!(%tenant, %table, %error, "dead letters of {table} could not be removed, retrying");
        }
        let now = self.now();
        self.watch.failed(&(Tenant::clone(tenant), table.clone()), now);
    }
}
