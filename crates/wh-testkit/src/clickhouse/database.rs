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

/// A fresh database. On a server that is not ours to stop it is dropped with this value.
#[derive(Debug)]
pub struct Database {
    name: String,
    endpoint: Endpoint,
    /// Ours, which lives as long as a database on it.
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
    match env::read(env::CLICKHOUSE_URL) {
        Some(url) => Database::on(named(&url).await?).await,
        None => {
            let server = shared().await?;
            let mut database = Database::on(server.endpoint()).await?;
            database.server = Some(server);
            Ok(database)
        }
    }
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
    /// A fresh database on a given server; it is dropped with this value.
    ///
    /// # Errors
    /// The server does not answer or refuses.
    ///
    /// # Cancel safety
    /// Detached: the database may stay.
    pub async fn on(endpoint: Endpoint) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // other processes and earlier runs may have used the same server
        let name = format!("wh_test_{:08x}_{number}", OsEntropy.next_u64() >> 32);
        endpoint.query(&format!("CREATE DATABASE {name}")).await?;
        Ok(Self { endpoint: endpoint.database(&name), name, server: None })
    }

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
            runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), endpoint.query(&drop_it)).await? })
        });
        if !matches!(dropping.join(), Ok(Ok(_))) {
            say(&format!("the test's database {} stays on {}", self.name, self.endpoint.url()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_named_server_that_does_not_answer_is_an_error_that_says_what_to_do() {
        let port = crate::free_port().unwrap();
        let error = named(&format!("http://127.0.0.1:{port}")).await.unwrap_err().to_string();
        assert!(error.contains("WH_TEST_CLICKHOUSE_URL names: start it, or unset"), "{error}");
        assert!(
            format!("{:#}", named("host:1").await.unwrap_err()).contains("WH_TEST_CLICKHOUSE_URL: a ClickHouse URL")
        );
    }
}
