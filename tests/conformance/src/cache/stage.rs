//! What cache cases need: a store, members, views, waits for conditions.

use super::{Arm, Member, Stand};
use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use std::time::Duration;
use wh_cache::{Change, Error, Filled, Hit, Key, Landing, Read, Scope, Snapshot, View};
use wh_types::{Class, Clock as _, Mono, SystemClock, Table, Tenant};

/// A time to live that lasts through any case.
pub(super) const LONG: Duration = Duration::from_secs(600);
/// How long anything may take that must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub(super) struct Stage(pub(super) Box<dyn Stand>);

impl Stage {
    pub(super) async fn open(arm: &dyn Arm) -> anyhow::Result<Self> {
        Ok(Self(arm.open().await.with_context(|| format!("opening {}", arm.name()))?))
    }

    pub(super) async fn two(arm: &dyn Arm) -> anyhow::Result<(Self, Member, Member)> {
        let stage = Self::open(arm).await?;
        let (a, b) = (stage.0.join().await?, stage.0.join().await?);
        Ok((stage, a, b))
    }
}

impl Member {
    /// What a lookup of a key finds.
    pub(super) async fn find(&self, view: &View, name: &str) -> Option<Hit> {
        self.cache.lookup(view, &key(name)).await.outcome.hit()
    }

    /// Puts an answer that must be kept, under a snapshot of now. One that a busy machine keeps from being kept is put
    /// again.
    pub(super) async fn keep(&self, view: &View, name: &str, value: &str) -> anyhow::Result<Snapshot> {
        let mut kept = None;
        until(&format!("{name} is kept"), async || {
            let at = self.cache.snapshot(view).await;
            let filled = self.cache.put(&at, &key(name), Bytes::copy_from_slice(value.as_bytes()), LONG).await;
            kept = matches!(filled, Ok(Filled::Kept)).then_some(at);
            Ok(kept.is_some())
        })
        .await?;
        kept.context("it was kept")
    }

    /// An answer that must be served.
    pub(super) async fn served(&self, view: &View, name: &str, value: &str) -> anyhow::Result<()> {
        let mut seen = None;
        until(&format!("{value:?} is served for {name}"), async || {
            seen = self.find(view, name).await;
            Ok(seen.is_some())
        })
        .await?;
        let seen = seen.context("it was served")?.value;
        ensure!(seen == value, "{seen:?} was served, not {value:?}");
        Ok(())
    }

    /// An answer that must not be served, now or soon.
    pub(super) async fn not_served(&self, view: &View, name: &str) -> anyhow::Result<()> {
        for _ in 0..3 {
            if let Some(hit) = self.find(view, name).await {
                bail!("{hit:?} was served for {name}");
            }
        }
        Ok(())
    }

    /// An invalidation that must land.
    pub(super) async fn end(&self, change: Change) -> anyhow::Result<()> {
        let landing = self.change(change).await?;
        // a busy machine may answer too late; then it lands soon
        if landing == Landing::Owed {
            until("what is owed lands", async || Ok(self.cache.status().owed == 0)).await?;
        }
        Ok(())
    }

    pub(super) async fn change(&self, change: Change) -> anyhow::Result<Landing> {
        let mut landings = self.cache.invalidate(&[change]).await;
        ensure!(landings.len() == 1, "{} outcomes for one change", landings.len());
        Ok(landings.pop().context("one outcome")??)
    }

    /// Waits until the store is in use and nothing is owed.
    pub(super) async fn well(&self) -> anyhow::Result<()> {
        until("the cache is well", async || {
            let status = self.cache.status();
            Ok(status.away.is_none() && status.owed == 0)
        })
        .await
    }
}

pub(super) fn key(name: &str) -> Key {
    Key::of([name.as_bytes()])
}

pub(super) fn tenant(name: &str) -> anyhow::Result<Tenant> {
    Ok(Tenant::new(name)?)
}

pub(super) fn table(name: &str) -> anyhow::Result<Table> {
    Ok(Table::new(name)?)
}

/// A view of tenant `t`: tables, each with its scope after a slash where it has one.
pub(super) fn view(reads: &[&str]) -> anyhow::Result<View> {
    view_of("t", reads)
}

pub(super) fn view_of(whose: &str, reads: &[&str]) -> anyhow::Result<View> {
    let read = |text: &&str| -> anyhow::Result<Read> {
        let (name, scope) = text.split_once('/').unwrap_or((text, ""));
        Ok(Read { table: table(name)?, scope: Scope::new(scope)? })
    };
    Ok(View::new(tenant(whose)?, reads.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?)?)
}

/// A change of a table of tenant `t`.
pub(super) fn changed(name: &str) -> anyhow::Result<Change> {
    Ok(Change::table(tenant("t")?, table(name)?))
}

pub(super) fn now() -> Mono {
    SystemClock.now()
}

/// Waits until it is so.
pub(super) async fn until(what: &str, mut so: impl AsyncFnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let patience = now() + PATIENCE;
    while !so().await? {
        ensure!(now() < patience, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

pub(super) fn failed<T>(outcome: Result<T, Error>, class: Class) -> anyhow::Result<()> {
    match outcome {
        Ok(_) => bail!("it worked, and should fail with {class:?}"),
        Err(error) if error.class() == class => Ok(()),
        Err(error) => bail!("{error} is {:?}, not {class:?}", error.class()),
    }
}
