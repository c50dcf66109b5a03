//! A rig whose tenant is a database of the test's own on the real engine.

use crate::rig::{Reply, Rig, Setup, keyed, post};
use std::{sync::Arc, time::Duration};
use wh_api::AnswerCache;
use wh_clickhouse::{Client, Discovery, DiscoveryOptions, Options, SchemaHandle};
use wh_testkit::clickhouse::{Database, database};
use wh_types::{OsEntropy, Stop, SystemClock, Tasks};

pub(crate) struct Engine {
    pub(crate) rig: Rig,
    pub(crate) database: Database,
    schema: SchemaHandle,
    cache: Option<AnswerCache>,
    stop: Stop,
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.give();
    }
}

impl Engine {
    /// With these statements run before the schema is read.
    pub(crate) async fn new(statements: &[&str]) -> Self {
        Self::with(statements, Setup::default()).await
    }

    pub(crate) async fn with(statements: &[&str], setup: Setup) -> Self {
        let database = database().await.unwrap();
        for statement in statements {
            database.query(statement).await.unwrap();
        }
        let endpoint = database.endpoint();
        let clickhouse = Client::new(Options {
            url: endpoint.url().into(),
            database: database.name().into(),
            user: endpoint.user_name().into(),
            password: Some(endpoint.password().into()),
            request_timeout: Duration::from_secs(60),
            ..Options::default()
        })
        .unwrap();
        let stop = Stop::new();
        let schema = Discovery::start(
            clickhouse.clone(),
            DiscoveryOptions { interval: Duration::from_secs(3_600), ..DiscoveryOptions::default() },
            Arc::new(SystemClock),
            Arc::new(OsEntropy),
            &Tasks::new(),
            stop.clone(),
        );
        schema.refresh().await.unwrap();
        let cache = setup.cache.clone();
        let rig = Rig::with(Setup { clickhouse, schema: schema.clone(), ..setup });
        Self { rig, database, schema, cache, stop }
    }

    pub(crate) fn schema(&self) -> &SchemaHandle {
        &self.schema
    }

    /// Where its answers are kept.
    pub(crate) fn cache(&self) -> &AnswerCache {
        self.cache.as_ref().unwrap()
    }

    /// The operator's SQL.
    pub(crate) async fn sql(&self, sql: &str) -> Reply {
        let body = serde_json::json!({ "sql": sql }).to_string();
        self.rig.send(keyed(post("/v1/ops/query", "application/json", body))).await
    }

    /// A structured query of table `t`.
    pub(crate) async fn query(&self, query: serde_json::Value) -> Reply {
        self.rig.send(post("/v1/query?table=t", "application/json", query.to_string())).await
    }
}
