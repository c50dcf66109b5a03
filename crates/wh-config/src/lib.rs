//! Boot configuration: defaults < `config.yaml` < `WH_*` variables, and every finding at once.
//!
//! [`load`] gives a [`Config`] or all that is wrong. Nothing here starts, listens or connects, and nothing else in
//! the workspace reads environment variables. The keys stand in one table, from which [`reference()`] is written.

mod amount;
mod boot;
mod cache;
mod config;
mod dedupe;
mod elsewhere;
mod environment;
mod file;
mod finding;
mod key;
mod layers;
mod loaded;
mod nats;
mod nearest;
mod overrides;
mod program;
mod reference;
mod resolve;
mod secret_source;
mod server;
mod table;
mod value;

#[cfg(test)]
mod tests;

pub use cache::{CacheBackend, MemoryCache, RedisCache, RedisLogin, RedisMode};
pub use config::{
    Auth, ClickHouse, Config, Coord, CoordBackend, EmbeddedQueue, Ingest, Log, LogFormat, LogLevel, Mode, Mq,
    NatsCredentials, NatsQueue, NatsTls, Prometheus, QueueBackend, Roles, Server, TenantDefaults,
};
pub use dedupe::{Dedupe, DedupeBackend, DedupeRule, DedupeRules, DynamoDb, OnOutage};
pub use environment::Environment;
pub use finding::{Finding, Findings, Level};
pub use layers::Origin;
pub use loaded::{DEFAULT_FILE, Effective, Loaded, load, load_for};
pub use program::Program;
pub use reference::reference;
pub use secret_source::SecretSource;
