//! The crate against the real engine, directly and through the fault proxy.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail loudly")]

mod captured;
mod discovery;
mod faults;
mod insert;
mod provoke;
mod query;
mod relations;
mod types;
mod upload;
mod users;

use bytes::Bytes;
use std::time::Duration;
use wh_clickhouse::{Client, Error, Insert, Inserted, Options};
use wh_testkit::clickhouse::{Database, database};
use wh_types::{Encoding, Table, frame};

/// A database of the test's own and a client in it.
struct Rig {
    database: Database,
    client: Client,
}

impl Rig {
    async fn new() -> Self {
        let database = database().await.unwrap();
        let client = Client::new(Self::options(&database)).unwrap();
        Self { database, client }
    }

    fn options(database: &Database) -> Options {
        let endpoint = database.endpoint();
        Options {
            url: endpoint.url().into(),
            database: database.name().into(),
            user: endpoint.user_name().into(),
            password: Some(endpoint.password().into()),
            request_timeout: Duration::from_secs(60),
            ..Options::default()
        }
    }

    /// A client that goes through `url` and waits at most `patience`.
    fn through(&self, url: String, patience: Duration) -> Client {
        Client::new(Options { url, request_timeout: patience, ..Self::options(&self.database) }).unwrap()
    }

    async fn sql(&self, sql: &str) -> String {
        self.database.query(sql).await.unwrap()
    }

    async fn insert(&self, into: &str, rows: &[&str]) -> Result<Inserted, Error> {
        insert(&self.client, into, rows).await
    }
}

fn table(name: &str) -> Table {
    Table::new(name).unwrap()
}

/// Rows, each in a frame of its own.
fn frames(encoding: Encoding, rows: &[impl AsRef<str>]) -> Vec<Bytes> {
    rows.iter().map(|row| frame::encode(encoding, format!("{}\n", row.as_ref()).as_bytes()).unwrap()).collect()
}

async fn insert(client: &Client, into: &str, rows: &[&str]) -> Result<Inserted, Error> {
    let frames = frames(Encoding::Zstd, rows);
    client.insert(of(&table(into), &frames)).await
}

fn of<'a>(table: &'a Table, frames: &'a [Bytes]) -> Insert<'a> {
    Insert {
        table,
        columns: None,
        encoding: Encoding::Zstd,
        frames,
        rows: frames.len() as u64,
        token: None,
        settings: &[],
    }
}
