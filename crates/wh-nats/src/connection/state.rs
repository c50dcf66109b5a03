//! What is known of the connection at a moment.

use crate::Version;
use std::collections::BTreeMap;
use wh_types::Mono;

/// Servers remembered; the oldest name goes first. Enough for any cluster.
const MAX_SERVERS: usize = 64;

/// The connection at a moment.
#[derive(Clone, Debug)]
pub struct State {
    /// Whether a server is connected.
    pub connected: bool,
    /// Grows with every connection made. Subscriptions were sent over a new connection before its number is seen here;
    /// after a [round trip](super::Connection::round_trip) the server has them.
    pub generation: u64,
    /// Since when it is connected, or not.
    pub since: Mono,
    /// The name, or the address where it has no name, of the server that is or was last connected.
    pub server: Option<String>,
    /// Every server seen so far, with its version when it was last seen.
    pub servers: BTreeMap<String, Version>,
    /// Why the last attempt failed, or the connection broke. Without secrets.
    pub last_error: Option<String>,
    /// How often a slow reader made the client drop messages. A lower bound: take any growth as a loss.
    pub slow_consumers: u64,
    /// How often changed files of credentials or certificates were taken.
    pub files_taken: u64,
    /// Why the changed files are not in use; none where those in use are the files as they are. Without secrets.
    pub files_error: Option<String>,
    /// Whether [`Connection::close`](super::Connection::close) was called.
    pub closed: bool,
}

impl State {
    pub(super) fn new(now: Mono) -> Self {
        Self {
            connected: false,
            generation: 0,
            since: now,
            server: None,
            servers: BTreeMap::new(),
            last_error: None,
            slow_consumers: 0,
            files_taken: 0,
            files_error: None,
            closed: false,
        }
    }

    pub(super) fn up(&mut self, now: Mono, generation: u64, server: String, version: Version) {
        if !self.servers.contains_key(&server) && self.servers.len() >= MAX_SERVERS {
            self.servers.pop_first();
        }
        self.servers.insert(server.clone(), version);
        self.server = Some(server);
        (self.connected, self.generation, self.since) = (true, generation, now);
    }

    pub(super) fn down(&mut self, now: Mono, why: String) {
        if self.connected {
            (self.connected, self.since) = (false, now);
        }
        self.last_error = Some(why);
    }
}
