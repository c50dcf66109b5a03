//! One simulated process: a worker with claims, its wires, and the means to freeze and kill it.

use crate::{
    script::Trouble,
    sink::{Shore, Weather},
    truth::Truth,
    wire::{Line, Wire},
};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::sync::watch;
use wh_coord::{Claim, Key, Lease, Leases, Seen, Session, Term, sim as leases};
use wh_ingest::{ClaimOptions, Options, Parts, Worker};
use wh_mq::sim;
use wh_types::{Clock, Freezer, Mono, SeededEntropy, Stop, Tasks};

/// How long the lease of a member lasts.
pub(crate) const LEASE: Duration = Duration::from_secs(15);

/// What all processes share.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) queue: sim::Broker,
    pub(crate) store: leases::Cluster,
    pub(crate) weather: Arc<Weather>,
    pub(crate) truth: Truth,
    pub(crate) tasks: Tasks,
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) number: u64,
    pub(crate) line: Line,
    pub(crate) link: leases::Link,
    tasks: Tasks,
    freezer: Freezer,
    stop: Stop,
    /// When it was told to stop, and whether it is frozen.
    pub(crate) stopping: Option<Mono>,
    pub(crate) frozen: bool,
}

/// Leases that keep the last term that was won, for whoever checks.
#[derive(Debug)]
struct Watched {
    inner: leases::Leases,
    term: Arc<Mutex<Option<Term>>>,
    truth: Truth,
    number: u64,
}

#[async_trait]
impl Leases for Watched {
    async fn claim(&self, key: &Key, note: &str) -> wh_coord::Result<Claim> {
        let claim = self.inner.claim(key, note).await?;
        if let Claim::Won { lease, .. } = &claim {
            self.truth.note(format!("process {} wins {key}", self.number));
            *self.term.lock() = Some(lease.term());
        }
        Ok(claim)
    }

    async fn renew(&self, lease: &Lease, note: &str) -> wh_coord::Result<()> {
        self.truth.note(format!("process {} says {note:?}", self.number));
        self.inner.renew(lease, note).await
    }

    async fn resign(&self, lease: Lease) -> wh_coord::Result<()> {
        self.truth.note(format!("process {} resigns {}", self.number, lease.key()));
        self.inner.resign(lease).await
    }

    async fn clear(&self, key: &Key) -> wh_coord::Result<bool> {
        self.inner.clear(key).await
    }

    async fn observe(&self, prefix: &Key) -> wh_coord::Result<BTreeMap<Key, Seen>> {
        self.inner.observe(prefix).await
    }

    fn session(&self) -> Session {
        self.inner.session()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// A worker's options here: small batches, and the times of the defaults.
pub(crate) fn options() -> Options {
    Options { batch_rows: 40, batch_wait: Duration::from_millis(300), held_rows: 400, ..Options::default() }
}

impl Process {
    pub(crate) fn start(number: u64, seed: u64, around: &Surroundings) -> Self {
        let ((tasks, freezer), stop, line) = (Tasks::freezable(), Stop::new(), Line::new());
        let entropy = Arc::new(SeededEntropy::new(seed.wrapping_mul(1_000).wrapping_add(number)));
        let (clock, truth) = (around.truth.clock.clone(), around.truth.clone());
        let leases = around.store.join(wh_coord::Options {
            holder: format!("process-{number}"),
            duration: LEASE,
            clock: clock.clone(),
            entropy: entropy.clone(),
            tasks: tasks.clone(),
        });
        let (link, term) = (leases.link(), Arc::new(Mutex::new(None)));
        let leases = Watched { inner: leases, term: term.clone(), truth: truth.clone(), number };
        let shore = Shore { process: number, truth: truth.clone(), weather: around.weather.clone(), term };
        let wire = Wire {
            process: number,
            queue: around.queue.clone(),
            line: line.clone(),
            truth: truth.clone(),
            tasks: around.tasks.clone(),
        };
        let parts = Parts { broker: Arc::new(wire), sinks: Arc::new(Arc::new(shore)), clock, entropy };
        let worker = Worker::new(parts, options())
            .with_claims(Arc::new(leases), ClaimOptions { lease: LEASE, ..ClaimOptions::default() })
            .with_tasks(tasks.clone());
        let (own, said) = (stop.clone(), truth.clone());
        let run = async move {
            let outcome = worker.run(own).await;
            said.note(format!("process {number} ended"));
            if let Err(error) = outcome {
                said.wrong(format!("process {number} failed: {error}"));
            }
        };
        truth.note(format!("process {number} starts"));
        drop(tasks.spawn("process", run));
        Self { number, line, link, tasks, freezer, stop, stopping: None, frozen: false }
    }

    pub(crate) fn stop(&mut self, truth: &Truth) {
        truth.note(format!("process {} is told to stop", self.number));
        self.stopping = Some(truth.clock.now());
        self.stop.give();
    }

    /// Gets into trouble, or out of it.
    pub(crate) fn suffer(&mut self, trouble: Trouble, on: bool, truth: &Truth) {
        truth.note(format!("process {} is {}{trouble:?}", self.number, if on { "" } else { "no more " }));
        match trouble {
            Trouble::Frozen => {
                self.frozen = on;
                self.line.silent(on, truth.clock.now());
                if on { self.freezer.freeze() } else { self.freezer.thaw() }
            }
            Trouble::Cut => {
                self.link.cut(on);
                self.line.cut(on, truth.clock.now());
            }
            Trouble::Deaf => self.link.lose_randomly(if on { 1.0 } else { 0.0 }),
        }
    }

    pub(crate) fn kill(&self, truth: &Truth) {
        truth.note(format!("process {} is killed", self.number));
        self.line.silent(true, truth.clock.now());
        self.freezer.kill();
    }

    /// Whether its worker ended. Its renewals end with it.
    pub(crate) fn ended(&self) -> bool {
        self.tasks.is_empty()
    }
}
