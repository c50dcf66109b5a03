//! Writers that post numbered events and remember which ones were accepted.

use anyhow::{Context, Result};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinSet;
use wh_testkit::http;

/// What became of the events that were posted.
#[derive(Debug, Default)]
pub struct Sent {
    /// Answered as accepted: these must be in ClickHouse once faults end.
    pub accepted: BTreeSet<u64>,
    /// Requests that were not answered, or told to wait.
    pub unanswered: u64,
}

/// Writers at work.
#[derive(Debug)]
pub struct Writers {
    tasks: JoinSet<Sent>,
    stop: Arc<AtomicBool>,
    accepted: Arc<AtomicU64>,
}

impl Writers {
    /// Starts `count` of them against a table `events`, each posting `rows` numbered events a request. A request that
    /// fails is not repeated: its events get no second chance, so what is accepted is accepted once.
    #[must_use]
    pub fn start(url: &str, count: u64, rows: u64) -> Self {
        let (stop, accepted, next) = (Arc::new(AtomicBool::new(false)), Arc::default(), Arc::new(AtomicU64::new(1)));
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let (url, stop, next) = (format!("{url}?table=events"), stop.clone(), next.clone());
            let total: Arc<AtomicU64> = Arc::clone(&accepted);
            tasks.spawn(async move {
                let mut sent = Sent::default();
                while !stop.load(Ordering::Relaxed) {
                    let first = next.fetch_add(rows, Ordering::Relaxed);
                    match post(&url, first, rows).await {
                        Ok(true) => {
                            sent.accepted.extend(first..first + rows);
                            total.fetch_add(rows, Ordering::Relaxed);
                        }
                        Ok(false) | Err(_) => {
                            sent.unanswered += 1;
                            // not a wait for anything: only keeps a dead server from being asked in a tight loop
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    }
                }
                sent
            });
        }
        Self { tasks, stop, accepted }
    }

    /// How many events were accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Waits until `more` further events were accepted.
    ///
    /// # Errors
    /// They were not in time.
    pub async fn until_more(&self, more: u64, within: Duration) -> Result<()> {
        let goal = self.accepted() + more;
        wh_testkit::until(within, "more events to be accepted", || async {
            let now = self.accepted();
            if now >= goal { Ok(()) } else { anyhow::bail!("{now} of {goal}") }
        })
        .await?;
        Ok(())
    }

    /// Stops them after their requests in flight.
    ///
    /// # Errors
    /// A writer panicked.
    pub async fn stop(mut self) -> Result<Sent> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Sent::default();
        while let Some(sent) = self.tasks.join_next().await {
            let sent = sent.context("a writer panicked")?;
            all.accepted.extend(sent.accepted);
            all.unanswered += sent.unanswered;
        }
        Ok(all)
    }
}

/// Whether all rows of one request were accepted.
async fn post(url: &str, first: u64, rows: u64) -> Result<bool> {
    let body = (first..first + rows)
        .map(|id| format!("{{\"id\":{id},\"at\":\"2026-01-01 00:00:00.000\",\"note\":\"event {id}\"}}\n"))
        .collect::<String>();
    let reply = http::post(url, body)
        .header("content-type", "application/x-ndjson")
        .timeout(Duration::from_secs(10))
        .send()
        .await?;
    Ok(reply.status.as_u16() == 200 && reply.json()?["accepted"] == rows)
}
