//! A proxy in front of any TCP server that loses, delays and breaks as it is told.
//!
//! It runs in the test's own process and knows no protocol. What it holds back it never reorders and never loses while
//! the connection lives: a black hole that is healed delivers what it swallowed, as a network that comes back does.

mod pump;
#[cfg(test)]
mod tests;

use crate::free_port;
use anyhow::{Context, Result};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use wh_types::{Stop, Tasks};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From clients to the server.
    ToServer,
    /// From the server to clients.
    ToClient,
    /// Each way.
    Both,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Who connected.
    Client,
    /// Who was connected to.
    Server,
}

/// How slow one way is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// How long each byte is on the way.
    pub delay: Duration,
    /// How many bytes go through in a second, on each connection; `None` for any number.
    pub bytes_per_second: Option<u64>,
}

/// What has come through so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Connections taken, ever.
    pub accepted: u64,
    /// Connections open now, half-open ones included.
    pub open: u64,
    /// Bytes that reached the server.
    pub to_server: u64,
    /// Bytes that reached clients.
    pub to_client: u64,
}

/// What one way does.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    hole: bool,
    pace: Pace,
}

/// What connections do. The counters say how often all that were open then were broken.
#[derive(Clone, Copy, Debug, Default)]
struct Mode {
    to_server: Lane,
    to_client: Lane,
    cuts: u64,
    halves: u64,
    /// The end that keeps its connection at a half.
    left: Option<End>,
}

#[derive(Debug, Default)]
struct Tally {
    accepted: AtomicU64,
    open: AtomicU64,
    to_server: AtomicU64,
    to_client: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    upstream: u16,
    mode: watch::Sender<Mode>,
    tally: Tally,
}

/// A running proxy. Dropping it ends its connections and frees its port.
#[derive(Debug)]
pub struct Tcp {
    port: u16,
    shared: Arc<Shared>,
    serving: tokio::sync::Mutex<Option<Serving>>,
}

/// The time between one `up` and the next `down`.
#[derive(Debug)]
struct Serving {
    stop: Stop,
    tasks: Tasks,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.give();
    }
}

impl Tcp {
    /// In front of a port on 127.0.0.1, on a free port, invisible as yet.
    ///
    /// # Errors
    /// No port is free.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start(upstream: u16) -> Result<Self> {
        let shared = Arc::new(Shared { upstream, mode: watch::Sender::default(), tally: Tally::default() });
        let proxy = Self { port: free_port()?, shared, serving: tokio::sync::Mutex::default() };
        proxy.up().await?;
        Ok(proxy)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `scheme://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Closes every connection at both ends. New ones are taken.
    pub fn cut(&self) {
        self.shared.mode.send_modify(|mode| mode.cuts += 1);
    }

    /// Swallows what goes this way: connections stay, and new ones are taken, but nothing arrives until [`Tcp::heal`].
    pub fn black_hole(&self, way: Way) {
        self.lanes(way, |lane| lane.hole = true);
    }

    /// Slows what goes this way, on present and new connections.
    pub fn slow(&self, way: Way, pace: Pace) {
        self.lanes(way, |lane| lane.pace = pace);
    }

    /// Ends every black hole and all slowness. What was swallowed arrives.
    pub fn heal(&self) {
        self.lanes(Way::Both, |lane| *lane = Lane::default());
    }

    /// Makes every present connection half-open: this end keeps it, hears nothing any more and has what it says
    /// dropped; the other end's is closed. New connections work.
    pub fn half_open(&self, left: End) {
        self.shared.mode.send_modify(|mode| {
            mode.halves += 1;
            mode.left = Some(left);
        });
    }

    /// What has come through so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tally = &self.shared.tally;
        Counts {
            accepted: read(&tally.accepted),
            open: read(&tally.open),
            to_server: read(&tally.to_server),
            to_client: read(&tally.to_client),
        }
    }

    /// Cuts every connection; the port refuses until [`Tcp::up`]. No-op when it is down.
    ///
    /// # Cancel safety
    /// Detached: it goes down.
    pub async fn down(&self) {
        let taken = self.serving.lock().await.take();
        if let Some(serving) = taken {
            serving.stop.give();
            serving.tasks.wait().await;
        }
    }

    /// Listens again, on the same port. No-op when it is up.
    ///
    /// # Errors
    /// Something else took the port.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn up(&self) -> Result<()> {
        let mut serving = self.serving.lock().await;
        if serving.is_none() {
            let listener = TcpListener::bind(("127.0.0.1", self.port)).await.context("the proxy's port is taken")?;
            let (stop, tasks) = (Stop::new(), Tasks::new());
            let accepting = accept(listener, self.shared.clone(), stop.clone(), tasks.clone());
            drop(tasks.spawn("chaos proxy", accepting));
            *serving = Some(Serving { stop, tasks });
        }
        Ok(())
    }

    fn lanes(&self, way: Way, change: impl Fn(&mut Lane)) {
        self.shared.mode.send_modify(|mode| {
            if way != Way::ToClient {
                change(&mut mode.to_server);
            }
            if way != Way::ToServer {
                change(&mut mode.to_client);
            }
        });
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: Stop, tasks: Tasks) {
    loop {
        let client = tokio::select! {
            () = stop.wait() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((client, _)) = client else { continue };
        shared.tally.accepted.fetch_add(1, Ordering::Relaxed);
        // subscribed before the server is asked: what is told from here on is for this connection
        let (shared, stop, mode) = (shared.clone(), stop.clone(), shared.mode.subscribe());
        let connection = async move {
            let open = Open::new(&shared);
            tokio::select! {
                () = stop.wait() => {}
                () = connect(client, &shared, mode) => {}
            }
            drop(open);
        };
        drop(tasks.spawn("chaos connection", connection));
    }
}

async fn connect(client: TcpStream, shared: &Shared, mode: watch::Receiver<Mode>) {
    // a server that is down looks like a connection that ends at once
    if let Ok(server) = TcpStream::connect(("127.0.0.1", shared.upstream)).await {
        pump::run(client, server, shared, mode).await;
    }
}

/// Counts a connection while it is open.
struct Open<'a>(&'a AtomicU64);

impl<'a> Open<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.tally.open.fetch_add(1, Ordering::Relaxed);
        Self(&shared.tally.open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
