//! What dedupe cases need: a store, members, keys, waits for conditions.

use super::{Arm, Member, Stand};
use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use std::time::Duration;
use wh_dedupe::{Error, Key, Origin, Retention, Row, Scope, Ticket, Under, Verdict};
use wh_types::{BlockId, Class, Clock as _, Epoch, Mono, SystemClock, Table, Tenant, Timestamp};

/// A lease that lasts through any case.
pub(super) const LONG: Duration = Duration::from_secs(60);
/// A lease whose end is waited for.
pub(super) const SHORT: Duration = Duration::from_millis(600);
/// How long anything may take that must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);
/// A day.
pub(super) const DAY: Retention = Retention::For(Duration::from_secs(86_400));

#[derive(Debug)]
pub(super) struct Stage(pub(super) Box<dyn Stand>);

impl Stage {
    pub(super) async fn open(arm: &dyn Arm) -> anyhow::Result<Self> {
        Ok(Self(arm.open(false).await.with_context(|| format!("opening {}", arm.name()))?))
    }

    /// For cases in which something goes wrong.
    pub(super) async fn failing(arm: &dyn Arm) -> anyhow::Result<(Self, Member, Member)> {
        let stage = Self(arm.open(true).await.with_context(|| format!("opening {}", arm.name()))?);
        let (a, b) = (stage.0.join().await?, stage.0.join().await?);
        Ok((stage, a, b))
    }

    pub(super) async fn two(arm: &dyn Arm) -> anyhow::Result<(Self, Member, Member)> {
        let stage = Self::open(arm).await?;
        let (a, b) = (stage.0.join().await?, stage.0.join().await?);
        Ok((stage, a, b))
    }
}

pub(super) fn key(id: &str) -> anyhow::Result<Key> {
    key_of("0", "clicks", id)
}

pub(super) fn key_of(tenant: &str, table: &str, id: &str) -> anyhow::Result<Key> {
    Ok(Scope::new(&Tenant::new(tenant)?, &Table::new(table)?).event(id)?)
}

pub(super) fn row(id: &str) -> anyhow::Result<Row> {
    Ok(Row::new(key(id)?))
}

pub(super) fn rows<'a>(ids: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Vec<Row>> {
    ids.into_iter().map(row).collect()
}

/// So many rows with ids of their own.
pub(super) fn many(name: &str, count: usize) -> anyhow::Result<Vec<Row>> {
    (0..count).map(|n| row(&format!("{name}-{n}"))).collect()
}

/// The claim of the `n`th block.
pub(super) fn under(n: u8, lease: Duration) -> Under {
    Under { stream: u32::from(n) + 7, epoch: Epoch(0xfeed_0000 + u32::from(n)), block: BlockId([n; 16]), lease }
}

pub(super) fn wall() -> Timestamp {
    SystemClock.wall()
}

pub(super) fn now() -> Mono {
    SystemClock.now()
}

impl Member {
    /// Reserves one key.
    pub(super) async fn ask(&self, id: &str, under: &Under) -> anyhow::Result<Verdict> {
        let mut verdicts = self.store.reserve(&[row(id)?], under).await?;
        ensure!(verdicts.len() == 1, "{} verdicts for one row", verdicts.len());
        verdicts.pop().context("one verdict")
    }

    /// Reserves keys that must be new.
    pub(super) async fn take(&self, rows: &[Row], under: &Under) -> anyhow::Result<Vec<Ticket>> {
        let verdicts = self.store.reserve(rows, under).await?;
        ensure!(verdicts.len() == rows.len(), "{} verdicts for {} rows", verdicts.len(), rows.len());
        rows.iter().zip(verdicts).map(|(row, verdict)| new(row.key.as_str(), verdict)).collect()
    }

    /// Reserves a key that must be new.
    pub(super) async fn win(&self, id: &str, under: &Under) -> anyhow::Result<Ticket> {
        new(id, self.ask(id, under).await?)
    }

    /// Whether a key is known as stored; if it is not it must be busy.
    pub(super) async fn seen(&self, id: &str) -> anyhow::Result<bool> {
        match self.ask(id, &under(99, LONG)).await? {
            Verdict::Seen { .. } => Ok(true),
            Verdict::Busy { .. } => Ok(false),
            other @ (Verdict::New(_) | Verdict::Lapsed { .. } | Verdict::Same(_)) => {
                bail!("{id} is {other:?}, neither seen nor busy")
            }
        }
    }

    pub(super) async fn commit(&self, held: &[Ticket], retention: Retention) -> anyhow::Result<()> {
        all_ok(held, self.store.commit(held, retention).await)
    }

    pub(super) async fn release(&self, held: &[Ticket]) -> anyhow::Result<()> {
        all_ok(held, self.store.release(held).await)
    }

    /// Asks until the claim has lapsed; gives what it was, and what holds it now.
    pub(super) async fn lapsed(&self, id: &str, under: &Under) -> anyhow::Result<(Origin, Bytes, Ticket)> {
        let mut found = None;
        until("the claim lapses", async || match self.ask(id, under).await? {
            Verdict::Busy { .. } => Ok(false),
            Verdict::Lapsed { origin, payload, ticket } => {
                found = Some((origin, payload, ticket));
                Ok(true)
            }
            other @ (Verdict::New(_) | Verdict::Seen { .. } | Verdict::Same(_)) => {
                bail!("{id} is {other:?}, and should be busy and then lapsed")
            }
        })
        .await?;
        found.context("it lapsed")
    }
}

fn new(id: &str, verdict: Verdict) -> anyhow::Result<Ticket> {
    match verdict {
        Verdict::New(ticket) => {
            ensure!(ticket.key().as_str().ends_with(id), "a ticket of {} for {id}", ticket.key());
            Ok(ticket)
        }
        other @ (Verdict::Busy { .. } | Verdict::Seen { .. } | Verdict::Lapsed { .. } | Verdict::Same(_)) => {
            bail!("{id} is {other:?}, and should be new")
        }
    }
}

fn all_ok(held: &[Ticket], outcomes: Vec<Result<(), Error>>) -> anyhow::Result<()> {
    ensure!(outcomes.len() == held.len(), "{} outcomes for {} tickets", outcomes.len(), held.len());
    outcomes.into_iter().collect::<Result<Vec<()>, Error>>()?;
    Ok(())
}

/// Waits until it is so.
pub(super) async fn until(what: &str, mut so: impl AsyncFnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let patience = now() + PATIENCE;
    while !so().await? {
        ensure!(now() < patience, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

pub(super) fn failed<T>(outcome: Result<T, Error>, classes: &[fn(Class) -> bool]) -> anyhow::Result<()> {
    match outcome {
        Ok(_) => bail!("it worked, and should fail"),
        Err(error) if classes.iter().any(|is| is(error.class())) => Ok(()),
        Err(error) => bail!("{error} is {:?}", error.class()),
    }
}

pub(super) fn fenced(class: Class) -> bool {
    class == Class::Fenced
}
pub(super) fn invalid(class: Class) -> bool {
    class == Class::Invalid
}
pub(super) fn stopping(class: Class) -> bool {
    class == Class::Stopping
}
pub(super) fn unknown(class: Class) -> bool {
    class == Class::Unknown
}
pub(super) fn nothing_changed(class: Class) -> bool {
    matches!(class, Class::Unavailable | Class::Exhausted { .. })
}
