//! What `wavehouse doctor` says of ClickHouse: whether it answers, and whether our user may do what it must. Reads only.

use crate::{clickhouse::Clients, counted::Counted, id_columns, parts::dedupe_rules, secrets::Secrets};
use std::{fmt, sync::Arc, time::Duration};
use wh_api::DedupeRules;
use wh_clickhouse::{Discovery, DiscoveryOptions, Schema};
use wh_config::{Config, DedupeBackend};
use wh_types::{Class, OsEntropy, Stop, SystemClock, Tasks};

/// Most time for the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    place: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It answers, and may do its work; with the version, the number of tables, and what is to be said of some.
    Good(String, usize, Vec<String>),
    /// It answers, and our user may not do its work.
    User(&'static str),
    /// It does not answer now. A server waits for such a one and takes events meanwhile; who asks for a check wants to know.
    Away(String),
    /// What is configured cannot be meant.
    Wrong(String),
}

impl Found {
    /// Whether nothing could be inserted now.
    pub(crate) fn is_fault(&self) -> bool {
        !matches!(self.state, State::Good(..))
    }
}

/// Asks once.
pub(crate) async fn look(config: &Config) -> anyhow::Result<Found> {
    let clients = Clients::new(config, Secrets::read(config)?.password())?;
    let clickhouse = &config.tenant_defaults.clickhouse;
    let place = format!("{}, database {}, user {}", clickhouse.url, clickhouse.database, clickhouse.username);
    let (tasks, stop) = (Tasks::new(), Stop::new());
    let options = DiscoveryOptions { timeout: PATIENCE, ..DiscoveryOptions::default() };
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
    let schema = Discovery::start(clients.queries, options, clock, entropy, &tasks, stop.clone());
    let read = tokio::time::timeout(PATIENCE, schema.refresh()).await;
    stop.give();
    let state = match read {
        Ok(Ok(schema)) => judged(&schema, config),
        Ok(Err(error)) if error.class() == Class::Unavailable => State::Away(error.message().to_owned()),
        Ok(Err(error)) => State::Wrong(error.message().to_owned()),
        Err(_) => State::Away(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    Ok(Found { place, state })
}

fn judged(schema: &Schema, config: &Config) -> State {
    if let Some(fault) = schema.user_fault() {
        return State::User(fault);
    }
    let told_apart = config.roles.api && config.dedupe.backend != DedupeBackend::None;
    let rules = if told_apart { dedupe_rules(&config.tenant_defaults.dedupe) } else { DedupeRules::default() };
    State::Good(schema.version.clone(), schema.tables.len(), id_columns::texts(&rules, schema, |_| true))
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ClickHouse {}", self.place)?;
        match &self.state {
            State::Good(version, tables, notes) => {
                write!(f, "it answers: version {version}, {}", Counted(*tables as u64, "table"))?;
                notes.iter().try_for_each(|note| write!(f, "\n{note}"))
            }
            State::User(fault) => write!(f, "it answers, and nothing can work: {fault}"),
            State::Away(why) => {
                write!(
                    f,
                    "it does not answer now: {why}; a server that read the tables before queues events until it does, \
                     one that starts now refuses them with schema.not_loaded"
                )
            }
            State::Wrong(why) => write!(f, "it cannot be used: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_config::{Environment, load};

    async fn found(url: &str, user: &str) -> Found {
        found_with(url, user, &[]).await
    }

    async fn found_with(url: &str, user: &str, more: &[(&str, &str)]) -> Found {
        let own = [
            ("WH_TENANT_DEFAULTS_CLICKHOUSE_URL", url),
            ("WH_TENANT_DEFAULTS_CLICKHOUSE_USERNAME", user),
            ("WH_TENANT_DEFAULTS_CLICKHOUSE_PASSWORD", if user == "default" { "" } else { user }),
        ];
        let variables = own.iter().chain(more).copied();
        look(&load(None, &Environment::new(variables)).unwrap().config).await.unwrap()
    }

    #[tokio::test]
    async fn each_state_of_a_real_server_is_told() {
        let server = wh_testkit::clickhouse::Server::start().await.unwrap();
        let good = found(&server.url(), "default").await;
        assert!(!good.is_fault() && good.to_string().contains("it answers: version 2"), "{good}");
        assert!(!good.to_string().contains("dedupe"), "{good}");
        server.query("CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id").await.unwrap();
        let rules = [("WH_TENANT_DEFAULTS_DEDUPE_ENABLED", "true"), ("WH_TENANT_DEFAULTS_DEDUPE_ID_FIELD", "uid")];
        let bare = found_with(&server.url(), "default", &rules).await;
        let said = "1 table has no column \"uid\" that events can give";
        assert!(!bare.is_fault() && bare.to_string().contains(said), "{bare}");
        let reader = found(&server.url(), "ro").await;
        assert!(reader.is_fault() && reader.to_string().contains("set its setting readonly to 0"), "{reader}");
        let stranger = found(&server.url(), "nobody").await;
        assert!(stranger.is_fault() && stranger.to_string().contains("it cannot be used: "), "{stranger}");
        let away = found("http://127.0.0.1:1", "default").await;
        assert!(away.is_fault() && away.to_string().contains("it does not answer now"), "{away}");
    }
}
