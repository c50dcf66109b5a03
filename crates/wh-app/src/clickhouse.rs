//! The clients to ClickHouse: one for inserts and one for queries, so that neither waits for the other's connections.

use crate::StartError;
use std::time::Duration;
use tracing::warn;
use wh_clickhouse::{Client, DiscoveryOptions, Options};
use wh_config::{Config, TenantDefaults};
use wh_types::Secret;

/// Both clients.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    pub(crate) inserts: Client,
    pub(crate) queries: Client,
}

impl Clients {
    /// Connects to nothing.
    pub(crate) fn new(config: &Config, password: Option<&Secret>) -> Result<Self, StartError> {
        let TenantDefaults { clickhouse, .. } = &config.tenant_defaults;
        let options = |request_timeout: Duration| Options {
            url: clickhouse.url.clone(),
            database: clickhouse.database.clone(),
            user: clickhouse.username.clone(),
            password: password.cloned(),
            headers: clickhouse.headers.iter().map(|(name, text)| (name.clone(), text.clone())).collect(),
            request_timeout,
            max_connections: clickhouse.max_open_conns,
            ..Options::default()
        };
        let client = |request_timeout| Client::new(options(request_timeout)).map_err(StartError::ClickHouse);
        Ok(Self { inserts: client(config.ingest.insert_timeout)?, queries: client(clickhouse.query_timeout)? })
    }
}

impl Clients {
    /// Uses another password from the next request on.
    pub(crate) fn set_password(&self, password: Option<&Secret>) {
        for client in [&self.inserts, &self.queries] {
            if let Err(error) = client.set_password(password.cloned()) {
                warn!(%error, "the new password of ClickHouse cannot be used, the one there was is kept");
            }
        }
    }
}

/// How often the schema is read.
pub(crate) fn discovery(config: &Config) -> DiscoveryOptions {
    let TenantDefaults { clickhouse, schema_refresh_interval, .. } = &config.tenant_defaults;
    DiscoveryOptions { interval: *schema_refresh_interval, timeout: clickhouse.query_timeout, ..Default::default() }
}
