//! What a cache does by itself: it makes connections, proves a store that failed, and delivers what is owed.

use super::{BATCH, Shared, Store, names, value};
use crate::{Error, Kind, Result, metrics, name::Name};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::{sleep, sleep_until, timeout};
use wh_types::Backoff;

const AGAIN: Backoff = Backoff::half_jitter(Duration::from_millis(100), Duration::from_secs(10));
/// How long a stop may take to deliver what is owed.
const LAST: Duration = Duration::from_secs(1);

/// Makes connections when the store failed, and new ones now and then.
pub(super) async fn connect<S: Store>(shared: Arc<Shared<S>>) {
    let mut renewed = shared.now();
    loop {
        let probe = shared.state.lock().breaker.probe();
        tokio::select! {
            biased;
            () = shared.stop.wait() => return,
            () = sleep_until(probe.unwrap_or(renewed + shared.options.recycle)) => {}
            () = shared.opened.notified(), if probe.is_none() => continue,
        }
        let renew = async {
            // a process that asks for nothing hears of a store that is gone here
            let failed = probe.is_some() || !shared.sound().await;
            shared.renew(failed).await;
        };
        tokio::select! {
            biased;
            () = shared.stop.wait() => return,
            () = renew => renewed = shared.now(),
        }
    }
}

/// Delivers what is owed, until nothing is.
pub(super) async fn deliver<S: Store>(shared: Arc<Shared<S>>) {
    loop {
        tokio::select! {
            biased;
            () = shared.stop.wait() => return,
            () = shared.deliver.notified() => {}
        }
        let mut failures = 1;
        while shared.owes() && !shared.state.lock().breaker.is_open() {
            tokio::select! {
                biased;
                () = shared.stop.wait() => return,
                () = sleep(AGAIN.delay(failures, &*shared.options.entropy)), if failures > 0 => {}
                () = std::future::ready(()), if failures == 0 => {}
            }
            failures = if shared.pay().await.is_ok() { 0 } else { failures + 1 };
        }
    }
}

impl<S: Store> Shared<S> {
    fn owes(&self) -> bool {
        self.state.lock().owed.len() > 0
    }

    /// Writes some of what is owed.
    async fn pay(&self) -> Result<()> {
        let (names, turn) = self.state.lock().owed.some(BATCH);
        self.bump(&names, turn, 10 * self.options.timeout).await
    }

    /// Whether the connections still lead to the store.
    async fn sound(&self) -> bool {
        let name = [names::probe(&self.options.prefix)];
        self.attempt("probe", self.options.timeout, self.store.peek(&name)).await.is_ok()
    }

    /// Makes new connections. After a failure the store is used again only when it proved itself over them.
    async fn renew(&self, failed: bool) {
        let late = |op| move |_| Err(Error::new(op, Kind::TimedOut));
        // a dial, with TLS, and a write; never the bound of one operation
        let within = self.options.connect_timeout + self.options.timeout;
        let mut outcome = timeout(within, self.store.renew()).await.unwrap_or_else(late("connect"));
        if failed && outcome.is_ok() {
            outcome = timeout(within, self.verify()).await.unwrap_or_else(late("verify"));
        }
        let backend = S::BACKEND;
        match outcome {
            Ok(()) if failed => {
                let closed = self.state.lock().breaker.close(self.now());
                metrics::breaker(backend, false);
                self.deliver.notify_one();
                let away_ms = closed.unwrap_or_default().as_millis();
                tracing::info!(backend, away_ms, "the cache is in use");
            }
            Ok(()) => tracing::debug!(backend, "the cache's connections are new"),
            Err(error) if failed => {
                self.failed(&error);
                self.state.lock().breaker.still(&error, self.now());
            }
            Err(error) => tracing::debug!(backend, code = error.code(), "connections were not renewed: {error}"),
        }
    }

    /// Owes again what the store does not know any more: it may have come back as it was before, or be a replica that
    /// had not heard of the last writes.
    async fn verify(&self) -> Result<()> {
        let written: Vec<(Name, u64)> =
            self.state.lock().written.iter().map(|(name, version)| (name.clone(), *version)).collect();
        for some in written.chunks(BATCH) {
            let asked: Vec<_> = some.iter().map(|(name, _)| names::version(&self.options.prefix, name)).collect();
            let there = self.store.peek(&asked).await?;
            let mut state = self.state.lock();
            for ((name, version), bytes) in some.iter().zip(&there) {
                let now = bytes.as_ref().and_then(|bytes| value::version(bytes));
                if now == Some(*version) {
                    continue;
                }
                // one that is not there ends everything by itself, until a store that is older still brings one back
                if bytes.is_some() {
                    state.written.remove(name);
                    state.owed.owe([name.clone()]);
                }
            }
        }
        Ok(())
    }

    pub(super) async fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let last = async {
            while self.owes() && !self.state.lock().breaker.is_open() {
                if self.pay().await.is_err() {
                    sleep(Duration::from_millis(50)).await;
                }
            }
        };
        // what it could not deliver is counted below
        _ = timeout(LAST, last).await;
        let lost = self.state.lock().owed.len();
        if lost > 0 {
            tracing::warn!(
                backend = S::BACKEND,
                lost,
                "stopped with invalidations undelivered: others may serve old answers"
            );
        }
        self.stop.give();
        self.store.end().await;
    }
}
