//! Reading a table's history for one stream: what the ring does not have. So many at a time; who is slow makes room for
//! who waits, and goes on later.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{
        Semaphore,
        mpsc::{self, error::TryRecvError},
    },
    time::timeout,
};
use wh_mq::{Broker, From, Happening};
use wh_types::{Clock, Cursor, Stop, Table, Tasks, Tenant};

/// Blocks that are read before the stream takes them.
const AHEAD: usize = 8;
/// How long a history that its stream does not take from is kept for it while others wait.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long one stream has its turn while others wait.
const TURN: Duration = Duration::from_secs(10);

/// How many histories are read at once.
#[derive(Clone, Debug)]
pub(super) struct Replays {
    broker: Arc<dyn Broker>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
    stop: Stop,
    turns: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

/// What a history gives.
#[derive(Debug)]
pub(super) enum Fed {
    /// It is open, and becomes live there.
    Open(Option<Cursor>),
    Happening(Happening),
    /// It cannot be opened or read further.
    Failed(wh_mq::Error),
    /// The queue closed.
    Closed,
}

/// A history that is read for a stream.
#[derive(Debug)]
pub(super) struct Feed {
    fed: mpsc::Receiver<Fed>,
    next: Option<Fed>,
}

/// What a feed has right now.
#[derive(Debug)]
pub(super) enum Took {
    Fed(Fed),
    /// Nothing yet.
    Nothing,
    /// Its turn is over: the stream asks for another.
    Over,
}

impl Feed {
    pub(super) fn take(&mut self) -> Took {
        if let Some(next) = self.next.take() {
            return Took::Fed(next);
        }
        match self.fed.try_recv() {
            Ok(fed) => Took::Fed(fed),
            Err(TryRecvError::Empty) => Took::Nothing,
            Err(TryRecvError::Disconnected) => Took::Over,
        }
    }

    /// Returns once there is something to take.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn wait(&mut self) {
        if self.next.is_none() {
            self.next = self.fed.recv().await;
        }
    }
}

impl Replays {
    pub(super) fn new(broker: Arc<dyn Broker>, clock: Arc<dyn Clock>, tasks: Tasks, stop: Stop, most: usize) -> Self {
        let turns = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Self { broker, clock, tasks, stop, turns, waiting: Arc::default() }
    }

    /// Reads a table from there on, once it is its turn.
    pub(super) fn feed(&self, tenant: &Tenant, table: &Table, from: From) -> Feed {
        let (tx, fed) = mpsc::channel(AHEAD);
        let read = self.clone().read(tenant.clone(), table.clone(), from, tx);
        drop(self.tasks.spawn("replay", read));
        Feed { fed, next: None }
    }

    async fn read(self, tenant: Tenant, table: Table, from: From, tx: mpsc::Sender<Fed>) {
        tokio::select! {
            biased;
            () = self.stop.wait() => {}
            () = tx.closed() => {}
            () = self.turn(&tenant, &table, from, &tx) => {}
        }
    }

    /// Returns when the turn is over.
    async fn turn(&self, tenant: &Tenant, table: &Table, from: From, tx: &mpsc::Sender<Fed>) {
        let waits = Waits::new(&self.waiting);
        // the semaphore is never closed, and who comes first is first
        let Ok(_turn) = self.turns.acquire().await else { return };
        drop(waits);
        let began = self.clock.now();
        let mut history = match self.broker.history(tenant, table, from).await {
            Ok(history) => history,
            Err(error) => return drop(tx.send(Fed::Failed(error)).await),
        };
        let mut fed = Fed::Open(history.seam());
        loop {
            let over = matches!(fed, Fed::Failed(_) | Fed::Closed);
            let place = loop {
                match timeout(PATIENCE, tx.reserve()).await {
                    Ok(Ok(place)) => break place,
                    Ok(Err(_)) => return,
                    Err(_) if self.others_wait() => return,
                    Err(_) => {}
                }
            };
            place.send(fed);
            if over || (self.clock.now().duration_since(began) > TURN && self.others_wait()) {
                return;
            }
            fed = loop {
                match timeout(PATIENCE, history.next()).await {
                    Ok(Ok(Some(happening))) => break Fed::Happening(happening),
                    Ok(Ok(None)) => break Fed::Closed,
                    Ok(Err(error)) => break Fed::Failed(error),
                    Err(_) if self.others_wait() => return,
                    Err(_) => {}
                }
            };
        }
    }

    fn others_wait(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// Counts who waits for a turn.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
