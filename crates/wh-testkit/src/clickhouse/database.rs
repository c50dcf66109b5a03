//! A database of a test's own on a ClickHouse that tests share.

use super::{Endpoint, Server};
use crate::{env, say::say};
use anyhow::{Context, Result, ensure};
use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::sync::Mutex;
use wh_types::{Entropy, OsEntropy};

/// A fresh database. On a server that the user named it is dropped with this value.
#[derive(Debug)]
pub struct Database {
    name: String,
    endpoint: Endpoint,
    /// The server lives as long as a database on it; none is the user's.
    server: Option<Arc<Server>>,
}

/// A fresh database on the server named by `WH_TEST_CLICKHOUSE_URL`, else on one that this process's tests share.
///
/// # Errors
/// The named server does not answer, or none can be started.
///
/// # Cancel safety
/// Safe.
pub async fn database() -> Result<Database> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (endpoint, server) = match env::read(env::CLICKHOUSE_URL) {
        Some(url) => (named(&url).await?, None),
        None => {
            let server = shared().await?;
            (server.endpoint(), Some(server))
        }
    };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // other processes and earlier runs may have used a user's server
    let name = format!("wh_test_{:08x}_{number}", OsEntropy.next_u64() >> 32);
    endpoint.query(&format!("CREATE DATABASE {name}")).await?;
    Ok(Database { endpoint: endpoint.database(&name), name, server })
}

async fn named(url: &str) -> Result<Endpoint> {
    let endpoint = Endpoint::parse(url).context(env::CLICKHOUSE_URL)?;
    ensure!(
        endpoint.answers().await,
        "no ClickHouse answers at {}, which {} names: start it, or unset the variable to use the engine that \
         `cargo xtask setup` brings",
        endpoint.url(),
        env::CLICKHOUSE_URL
    );
    Ok(endpoint)
}

/// The process's own server: started by the first test that needs it, stopped when none does any more.
async fn shared() -> Result<Arc<Server>> {
    static SHARED: Mutex<Weak<Server>> = Mutex::const_new(Weak::new());
    let mut shared = SHARED.lock().await;
    if let Some(server) = shared.upgrade() {
        return Ok(server);
    }
    let server = Arc::new(Server::start().await?);
    *shared = Arc::downgrade(&server);
    Ok(server)
}

impl Database {
    /// Its name: safe to use in SQL without quotes.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server's address, with this database as the default.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// `http://host:port` of its server.
    #[must_use]
    pub fn url(&self) -> &str {
        self.endpoint.url()
    }

    /// Runs a statement in it.
    ///
    /// # Errors
    /// As [`Endpoint::query`].
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn query(&self, sql: &str) -> Result<String> {
        self.endpoint.query(sql).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.server.is_some() {
            return;
        }
        // a drop cannot wait in the test's own runtime
        let (endpoint, drop_it) = (self.endpoint.clone(), format!("DROP DATABASE {}", self.name));
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async { tokio::time::timeout(Duration::from_secs(10), endpoint.query(&drop_it)).await? })
        });
        if !matches!(dropping.join(), Ok(Ok(_))) {
            say(&format!("the test's database {} stays on {}", self.name, self.endpoint.url()));
        }
    }
}
