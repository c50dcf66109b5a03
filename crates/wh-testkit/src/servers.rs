//! Where `cargo xtask setup` puts each real server, and what to do when one is missing.

use crate::{env, workspace};
use anyhow::{Result, ensure};
use std::path::PathBuf;

/// The NATS versions that are tested: the oldest we support first.
pub const NATS_VERSIONS: [&str; 2] = ["2.14.6", "2.15.1"];

/// The folder of all servers: `target/servers`, or `WH_SERVERS_DIR`.
///
/// # Errors
/// The workspace was not found.
pub fn dir() -> Result<PathBuf> {
    match env::read(env::SERVERS_DIR) {
        Some(dir) => Ok(PathBuf::from(dir)),
        None => Ok(workspace::root()?.join("target/servers")),
    }
}

/// What `WH_TEST_CLICKHOUSE_LIB` names, when it is set.
#[must_use]
pub fn clickhouse_lib_given() -> Option<PathBuf> {
    env::read(env::CLICKHOUSE_LIB).map(PathBuf::from)
}

/// The ClickHouse engine's library, or what `WH_TEST_CLICKHOUSE_LIB` names.
///
/// # Errors
/// It is missing.
pub fn clickhouse_lib() -> Result<PathBuf> {
    match clickhouse_lib_given() {
        Some(path) => present(path, "the file that WH_TEST_CLICKHOUSE_LIB names"),
        None => present(dir()?.join("clickhouse/libchdb.so"), "the ClickHouse engine"),
    }
}

/// The version of the newer engine, a Python module, that only answers what it would store.
pub const CLICKHOUSE_NEWER: &str = "26.9.0";

/// The folder with the newer engine's Python module.
///
/// # Errors
/// It is missing.
pub fn clickhouse_newer() -> Result<PathBuf> {
    let place = dir()?.join(format!("clickhouse-{CLICKHOUSE_NEWER}"));
    present(place.join("chdb/__init__.py"), "the newer ClickHouse engine")?;
    Ok(place)
}

/// The nats-server binary of one of [`NATS_VERSIONS`].
///
/// # Errors
/// It is missing.
pub fn nats_server(version: &str) -> Result<PathBuf> {
    present(dir()?.join(format!("nats-{version}/nats-server")), "nats-server")
}

/// The redis-server binary.
///
/// # Errors
/// It is missing.
pub fn redis_server() -> Result<PathBuf> {
    present(dir()?.join("redis/redis-server"), "redis-server")
}

/// The DynamoDB emulator's script, which node runs.
///
/// # Errors
/// It is missing.
pub fn dynalite() -> Result<PathBuf> {
    present(dir()?.join("dynalite/node_modules/dynalite/cli.js"), "the DynamoDB emulator")
}

/// The folder with the Python modules of the other DynamoDB emulator, moto.
///
/// # Errors
/// It is missing.
pub fn moto() -> Result<PathBuf> {
    let place = dir()?.join("moto/site");
    present(place.join("moto/server.py"), "the DynamoDB emulator moto")?;
    Ok(place)
}

fn present(path: PathBuf, what: &str) -> Result<PathBuf> {
    ensure!(path.is_file(), "{what} is missing at {}: run `cargo xtask setup`", path.display());
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_server_says_how_to_get_it() {
        let error = nats_server("0.0.0").unwrap_err().to_string();
        assert!(error.contains("nats-0.0.0") && error.contains("cargo xtask setup"), "{error}");
    }
}
