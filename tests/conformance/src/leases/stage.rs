//! What lease cases need: a store, members, waits for conditions.

use super::{Arm, Member, Stand};
use anyhow::{Context as _, bail};
use std::time::Duration;
use wh_coord::{Claim, Error, Key, Lease, Leases, Seen};
use wh_types::{Class, Clock as _, Mono, SystemClock};

/// A lease that lasts through any case.
pub(super) const LONG: Duration = Duration::from_secs(30);
/// A lease whose end is waited for. Its deadline leaves a busy machine time to renew it.
pub(super) const SHORT: Duration = Duration::from_secs(3);
/// How long anything may take that must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub(super) struct Stage(pub(super) Box<dyn Stand>);

impl Stage {
    pub(super) async fn open(arm: &dyn Arm) -> anyhow::Result<Self> {
        Ok(Self(arm.open().await.with_context(|| format!("opening {}", arm.name()))?))
    }

    pub(super) async fn join(&self, holder: &str) -> anyhow::Result<Member> {
        self.0.join(holder, LONG).await
    }
}

pub(super) fn key(text: &str) -> anyhow::Result<Key> {
    Ok(Key::new(text)?)
}

pub(super) fn now() -> Mono {
    SystemClock.now()
}

/// A claim that is answered: on a busy machine one may not be in its time, and is made again then, as the port has it.
async fn claim(member: &Member, key: &Key) -> anyhow::Result<Claim> {
    let mut answer = None;
    until("the claim is answered", async || match member.leases.claim(key, "").await {
        Ok(claim) => {
            answer = Some(claim);
            Ok(true)
        }
        Err(error) if matches!(error.class(), Class::Unknown | Class::Unavailable) => Ok(false),
        Err(error) => Err(error.into()),
    })
    .await?;
    answer.context("it was answered")
}

/// A claim that must be won.
pub(super) async fn win(member: &Member, key: &Key) -> anyhow::Result<Lease> {
    Ok(win_over(member, key).await?.0)
}

pub(super) async fn win_over(member: &Member, key: &Key) -> anyhow::Result<(Lease, Option<Seen>)> {
    match claim(member, key).await? {
        Claim::Won { lease, over } => Ok((lease, over)),
        Claim::Held(seen) => bail!("{key} is held by {} ({seen:?})", seen.holder),
    }
}

/// A claim that must not be won.
pub(super) async fn held(member: &Member, key: &Key) -> anyhow::Result<Seen> {
    match claim(member, key).await? {
        Claim::Held(seen) => Ok(seen),
        Claim::Won { .. } => bail!("{key} was won, and should be held"),
    }
}

/// Claims until it is won; gives the lease and whom it followed.
pub(super) async fn win_soon(member: &Member, key: &Key) -> anyhow::Result<(Lease, Option<Seen>)> {
    let mut won = None;
    until("the key is won", async || {
        if let Claim::Won { lease, over } = claim(member, key).await? {
            won = Some((lease, over));
        }
        Ok(won.is_some())
    })
    .await?;
    won.context("it was won")
}

/// Waits until it is so.
pub(super) async fn until(what: &str, mut so: impl AsyncFnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let patience = now() + PATIENCE;
    while !so().await? {
        anyhow::ensure!(now() < patience, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
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

/// What everybody below a prefix looks like to a member, by key.
pub(super) async fn seen(leases: &dyn Leases, prefix: &str) -> anyhow::Result<Vec<(String, Seen)>> {
    let all = leases.observe(&key(prefix)?).await?;
    Ok(all.into_iter().map(|(key, seen)| (key.to_string(), seen)).collect())
}
