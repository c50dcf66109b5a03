//! The environment variables that tests honour. Nothing else of the test kit reads the environment.

/// A ClickHouse that the user runs, `http://[user[:password]@]host:port`.
pub(crate) const CLICKHOUSE_URL: &str = "WH_TEST_CLICKHOUSE_URL";
/// The engine's library, where it is not the one that setup brought.
pub(crate) const CLICKHOUSE_LIB: &str = "WH_TEST_CLICKHOUSE_LIB";
/// The folder of the servers, where it is not `target/servers`: several checkouts can share one.
pub(crate) const SERVERS_DIR: &str = "WH_SERVERS_DIR";
/// Print the log of every process when it ends, not only of those in a failing test.
pub(crate) const LOGS: &str = "WH_TEST_LOGS";

/// The variable's value; an empty one counts as not set.
#[expect(clippy::disallowed_methods, reason = "wh-config reads the product's environment; this is the tests' own")]
pub(crate) fn read(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
