//! Where values are put: an engine, and our own way into it.

use std::{sync::Arc, time::Duration};
use wh_clickhouse::{Client, Insert, Options};
use wh_testkit::clickhouse::{Database, Newer as NewerServer, database};
use wh_types::{Encoding, Table, frame};

/// What every insert of ours pins, as a statement says it.
pub(crate) const PINNED: &str = "async_insert = 0, date_time_input_format = 'best_effort', input_format_allow_errors_num = 0, \
     input_format_allow_errors_ratio = 0, input_format_column_name_matching_mode = 'match_case', \
     input_format_defaults_for_omitted_fields = 1, input_format_import_nested_json = 0, input_format_null_as_default = 1, \
     input_format_parallel_parsing = 0, input_format_skip_unknown_fields = 0";

/// An engine.
pub(crate) trait Bench: Send + Sync {
    /// Its name for readers.
    fn name(&self) -> &'static str;

    /// Of the values of a type that are refused for one reason, how many are put to it.
    fn most_refused(&self) -> u32;

    /// Runs a statement, which may end in rows.
    async fn run(&self, statement: &str) -> Result<String, String>;

    /// Inserts rows as our worker does: with a list of columns where one of them is EPHEMERAL.
    async fn insert(&self, table: &str, columns: Option<&[String]>, rows: &[String]) -> Result<(), String>;

    /// Inserts raw records under the pinned settings.
    async fn raw(&self, table: &str, records: &[String]) -> Result<(), String> {
        let statement = format!("INSERT INTO {table} SETTINGS {PINNED} FORMAT JSONEachRow {}", records.join("\n"));
        self.run(&statement).await.map(drop)
    }
}

/// The engine that setup brings, behind its own HTTP interface.
pub(crate) struct Served {
    database: Database,
    client: Client,
}

impl Served {
    pub(crate) async fn new() -> Self {
        let database = database().await.unwrap();
        let endpoint = database.endpoint();
        let client = Client::new(Options {
            url: endpoint.url().into(),
            database: database.name().into(),
            user: endpoint.user_name().into(),
            password: Some(endpoint.password().into()),
            request_timeout: Duration::from_secs(60),
            ..Options::default()
        })
        .unwrap();
        client.learn(Arc::new(wh_clickhouse::ServerSettings::from_iter([(
            "input_format_column_name_matching_mode",
            "auto",
        )])));
        Self { database, client }
    }
}

impl Bench for Served {
    fn name(&self) -> &'static str {
        "26.7"
    }

    fn most_refused(&self) -> u32 {
        u32::MAX
    }

    async fn run(&self, statement: &str) -> Result<String, String> {
        self.database.query(statement).await.map_err(|error| format!("{error:#}"))
    }

    async fn insert(&self, table: &str, columns: Option<&[String]>, rows: &[String]) -> Result<(), String> {
        let body = frame::encode(Encoding::Zstd, format!("{}\n", rows.join("\n")).as_bytes()).unwrap();
        let insert = Insert {
            table: &Table::new(table).unwrap(),
            columns,
            encoding: Encoding::Zstd,
            frames: &[body],
            rows: rows.len() as u64,
            token: None,
            settings: &[],
        };
        self.client.insert(insert).await.map(drop).map_err(|error| error.to_string())
    }
}

/// The newer engine, a Python module without a listener: what our worker would send is put to it as a statement.
pub(crate) struct Newer(NewerServer);

impl Newer {
    pub(crate) async fn new() -> Self {
        Self(NewerServer::start().await.unwrap())
    }
}

impl Bench for Newer {
    fn name(&self) -> &'static str {
        "26.9"
    }

    fn most_refused(&self) -> u32 {
        // it answers one at a time
        8
    }

    async fn run(&self, statement: &str) -> Result<String, String> {
        self.0.query(statement).await.map_err(|error| format!("{error:#}"))
    }

    async fn insert(&self, table: &str, columns: Option<&[String]>, rows: &[String]) -> Result<(), String> {
        let list = columns.map(|columns| format!(" (`{}`)", columns.join("`, `"))).unwrap_or_default();
        self.raw(&format!("{table}{list}"), rows).await
    }
}
