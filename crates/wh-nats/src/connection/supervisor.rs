//! The loop that keeps one client connected: dial, hand over, watch, replace. It never gives up.

use super::{
    Core,
    slot::{self, Dialled, Slot},
};
use crate::{Error, Kind, Result};
use async_nats::ServerAddr;
use futures::StreamExt as _;
use std::{sync::Arc, time::Duration};
use tracing::{info, warn};
use wh_types::Backoff;

/// After a break: at once, but not all processes in the same moment. After that: slower, with as much chance.
const AGAIN: Backoff = Backoff::full_jitter(Duration::from_millis(50), Duration::from_millis(50));
const LATER: Backoff = Backoff::half_jitter(Duration::from_millis(100), Duration::from_secs(2));
/// How long a replaced client may take to end.
const ENDING: Duration = Duration::from_secs(1);
/// Attempts to take a better connection while one still works.
const BETTER: Backoff = Backoff::half_jitter(Duration::from_secs(1), Duration::from_secs(60));

/// A connection that breaks sooner than this did not serve.
const SHORT: Duration = Duration::from_secs(10);
/// What their cause mostly is. The vendor's client says nothing of it.
const BREAKS: &str = "the connection to NATS is made and breaks again at once, time after time: the server ends it, something \
                      between cuts it, or a stored message has headers that no client can parse (see `Who may publish` in \
                      docs/operations/nats.md)";
/// So many of them in a row have one cause.
const IN_A_ROW: u32 = 3;

pub(super) async fn run(core: Arc<Core>, addresses: Vec<ServerAddr>) {
    let mut pool = Pool { configured: addresses, discovered: Vec::new() };
    let (mut failures, mut short) = (0, 0_u32);
    let stopped = core.stop.clone();
    loop {
        let delay = match (failures, core.generation()) {
            (0, 0) => Duration::ZERO,
            (0, _) => AGAIN.delay(1, &*core.options.entropy),
            (failures, _) => LATER.delay(failures, &*core.options.entropy),
        };
        tokio::select! {
            biased;
            () = stopped.wait() => break,
            () = tokio::time::sleep(delay) => {}
        }
        let dialled = tokio::select! {
            biased;
            () = stopped.wait() => break,
            dialled = dial(&core, &mut pool, None) => dialled,
        };
        match dialled {
            Ok(dialled) => {
                failures = 0;
                let begun = core.options.clock.now();
                serve(&core, &mut pool, dialled).await;
                let lived = core.options.clock.now().saturating_duration_since(begun);
                short = if lived < SHORT && !stopped.given() { short + 1 } else { 0 };
                if short >= IN_A_ROW && short.is_power_of_two() || short == IN_A_ROW {
                    warn!(short, "{BREAKS}");
                }
            }
            Err(error) => {
                failures += 1;
                core.down(&error.text());
                if failures.is_power_of_two() {
                    warn!(error = error.text(), failures, "no NATS server could be connected to, trying on");
                }
            }
        }
    }
    core.closed();
}

/// Serves with one client, and with those that replace it while it works, until the last is lost or we stop.
async fn serve(core: &Arc<Core>, pool: &mut Pool, mut dialled: Dialled) {
    loop {
        let Dialled { slot, mut guard, server, version, others } = dialled;
        pool.discovered = others;
        let slot = Arc::new(slot);
        info!(server, %version, generation = slot.generation, "connected to NATS server {server}");
        if !core.up(&slot, server, version).await {
            end(core, &slot, guard, "the connection broke at once").await;
            return;
        }
        let better = tokio::select! {
            biased;
            () = core.stop.wait() => None,
            () = slot.lost.wait() => None,
            () = ended(&mut guard) => None,
            better = improve(core, pool, slot.generation) => Some(better),
        };
        let stopping = core.stop.given();
        let Some(better) = better else {
            if stopping {
                // what was handed to the client before is still written
                _ = tokio::time::timeout(ENDING, slot.client.flush()).await;
            } else {
                warn!(generation = slot.generation, "the connection to NATS broke, connecting again");
            }
            let why = if stopping { "closed" } else { "the connection broke" };
            end(core, &slot, guard, why).await;
            return;
        };
        _ = tokio::time::timeout(ENDING, slot.client.flush()).await;
        end(core, &slot, guard, "replaced by a newer connection").await;
        dialled = better;
    }
}

/// Takes a client out of use. Everything queued in it is dropped.
async fn end(core: &Core, slot: &Slot, mut guard: async_nats::Subscriber, why: &str) {
    let lost_before = slot.lost.given();
    slot.lost.give();
    core.down(why);
    if !lost_before {
        _ = slot.client.drain().await;
    }
    _ = tokio::time::timeout(ENDING, ended(&mut guard)).await;
}

/// Returns when the guard's client has ended.
async fn ended(guard: &mut async_nats::Subscriber) {
    while guard.next().await.is_some() {}
}

/// Waits until a better connection is wanted, and makes it beside the one that works.
async fn improve(core: &Arc<Core>, pool: &mut Pool, generation: u64) -> Dialled {
    let mut failures = 0;
    loop {
        let leaving = core.wait_leave(generation).await;
        let avoid = if leaving { core.server() } else { None };
        match dial(core, pool, avoid.as_deref()).await {
            Ok(dialled) => return dialled,
            Err(error) => {
                failures += 1;
                core.failed(error.text());
                warn!(error = error.text(), "no other connection could be made, keeping the one that works");
                tokio::time::sleep(BETTER.delay(failures, &*core.options.entropy)).await;
            }
        }
    }
}

struct Pool {
    configured: Vec<ServerAddr>,
    discovered: Vec<ServerAddr>,
}

/// Tries every server once, in another order every time, those that were configured first.
async fn dial(core: &Arc<Core>, pool: &mut Pool, avoid: Option<&str>) -> Result<Dialled> {
    shuffle(&mut pool.configured, core);
    shuffle(&mut pool.discovered, core);
    let known = &pool.configured;
    let others = pool.discovered.iter().filter(|other| !known.contains(other));
    let mut last = Error::config("urls: no server");
    for address in known.iter().chain(others) {
        // the greeting has its own time; this one is for names that are not resolved
        let dialled =
            tokio::time::timeout(3 * core.options.connect_timeout, slot::dial(core, address, core.generation() + 1));
        let dialled = dialled.await.unwrap_or_else(|_| Err(Error::new(address.as_url_str().to_owned(), Kind::Timeout)));
        match dialled {
            Ok(dialled) if avoid == Some(dialled.server.as_str()) => {
                last = Error::new(address.as_url_str().to_owned(), Kind::Disconnected);
                _ = dialled.slot.client.drain().await;
            }
            Ok(dialled) => return Ok(dialled),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn shuffle(addresses: &mut [ServerAddr], core: &Core) {
    for last in (1..addresses.len()).rev() {
        let chosen = core.options.entropy.next_u64() % (last as u64 + 1);
        addresses.swap(last, usize::try_from(chosen).unwrap_or(0));
    }
}
