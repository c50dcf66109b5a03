//! Where ClickHouse is and how it is spoken to. Not read from anywhere here: the configuration fills it in.

use std::time::Duration;
use wh_types::{Encoding, Secret};

/// How a [`Client`](crate::Client) reaches one ClickHouse as one user in one database.
#[derive(Clone, Debug)]
pub struct Options {
    /// `http://host[:port][/path]`; without a port 8123. `https` needs the feature `tls` (port 8443). Credentials and
    /// queries in it are refused: they have fields of their own.
    pub url: String,
    /// The database that unqualified names mean.
    pub database: String,
    /// Who we are. Empty sends no credentials, which is for ClickHouse the user `default` without a password.
    pub user: String,
    /// The user's password.
    pub password: Option<Secret>,
    /// Further headers of every request, for a proxy in between. Sent before ours, which win.
    pub headers: Vec<(String, Secret)>,
    /// Most time for one TCP (and TLS) set-up.
    pub connect_timeout: Duration,
    /// Most time for an insert or execute, and for a query that names none: from the first byte sent to the last
    /// byte read, waiting for a connection included.
    pub request_timeout: Duration,
    /// An unused connection is closed after this. Keep it below the server's `keep_alive_timeout` (3 s before 23.11,
    /// then 10, now 30 s): a request that meets a closing connection has an unknown outcome.
    pub idle_timeout: Duration,
    /// Most requests in flight; more wait in the order they came. Fairness between inserts and queries is the
    /// callers': give each its own client.
    pub max_connections: usize,
    /// Compress answers to queries: `None` on a fast network, where it costs both ends more than it saves.
    pub compress: Option<Encoding>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:8123".into(),
            database: "default".into(),
            user: String::new(),
            password: None,
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(2),
            max_connections: 100,
            compress: None,
        }
    }
}
