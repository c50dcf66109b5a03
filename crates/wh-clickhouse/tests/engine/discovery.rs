//! Discovery: what it sees, what it keeps when reading fails, and when it reads.

use crate::{Rig, insert};
use std::{sync::Arc, time::Duration};
use wh_clickhouse::{
    Client, Column, ColumnKind, Discovery, DiscoveryOptions, Kind, Options, SchemaHandle, types::Type,
};
use wh_testkit::{
    fault::{Action, Proxy, Rule},
    free_port, until, until_equal,
};
use wh_types::{Class, OsEntropy, Stop, SystemClock, Tasks};

const WITHIN: Duration = Duration::from_secs(90);

/// A discovery that reads only when it is asked, once it has begun.
struct Running {
    schema: SchemaHandle,
    tasks: Tasks,
    stop: Stop,
}

impl Running {
    fn start(client: Client, options: DiscoveryOptions) -> Self {
        let (tasks, stop) = (Tasks::new(), Stop::new());
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
        Self { schema: Discovery::start(client, options, clock, entropy, &tasks, stop.clone()), tasks, stop }
    }

    fn quiet(client: Client) -> Self {
        Self::start(
            client,
            DiscoveryOptions { interval: Duration::from_secs(86_400 * 365), ..DiscoveryOptions::default() },
        )
    }

    async fn end(self) {
        self.stop.give();
        self.tasks.wait().await;
    }
}

#[tokio::test]
async fn every_kind_of_column_is_seen_as_it_is() {
    let rig = Rig::new().await;
    rig.sql(
        "CREATE TABLE t (id UInt64, a Nullable(Int32) DEFAULT 7, b Int32 DEFAULT 9, raw String EPHEMERAL, n UInt64 DEFAULT \
         length(raw), m UInt64 MATERIALIZED id * 2, x UInt64 ALIAS id + 1, `o'd``d é` Array(LowCardinality(String)), \
         e Enum8('it\\'s' = 1, 'b' = 2), ne Nested(k String, v Int8)) ENGINE = MergeTree ORDER BY id",
    )
    .await;
    rig.sql("CREATE VIEW v AS SELECT id FROM t").await;
    let running = Running::quiet(rig.client.clone());
    let schema = running.schema.refresh().await.unwrap();
    assert_eq!(schema.tables.keys().collect::<Vec<_>>(), ["t", "v"]);
    let table = schema.table("t").unwrap();
    assert_eq!((&*table.engine, &*schema.table("v").unwrap().engine), ("MergeTree", "View"));
    let names: Vec<&str> = table.columns().iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["id", "a", "b", "raw", "n", "m", "x", "o'd`d é", "e", "ne.k", "ne.v"]);
    let seen = |name: &str| {
        let Column { kind, default_expression, .. } = table.column(name).unwrap();
        let column = table.column(name).unwrap();
        (*kind, default_expression.as_str(), column.writable(), column.required(), column.nullable())
    };
    assert_eq!(seen("id"), (ColumnKind::Ordinary, "", true, true, false));
    assert_eq!(seen("a"), (ColumnKind::Default, "7", true, false, true));
    assert_eq!(seen("b"), (ColumnKind::Default, "9", true, false, false));
    let (kind, _, writable, required, _) = seen("raw");
    assert_eq!((kind, writable, required), (ColumnKind::Ephemeral, true, false));
    assert_eq!(seen("n"), (ColumnKind::Default, "length(raw)", true, false, false));
    assert_eq!(seen("m"), (ColumnKind::Materialized, "id * 2", false, false, false));
    assert_eq!(seen("x"), (ColumnKind::Alias, "id + 1", false, false, false));
    assert!(matches!(&table.column("e").unwrap().ty, Type::Enum { values, .. } if values[0] == ("it's".into(), 1)));
    assert_eq!(table.column("ne.v").unwrap().type_text, "Array(Int8)");
    assert_eq!(table.column("m").unwrap().position, 6);
    assert!(schema.version.starts_with(char::is_numeric) && !schema.timezone.is_empty());
    assert!(schema.settings.knows("async_insert") && !schema.settings.knows("no_such_setting"));
    assert!(rig.client.known().is_some(), "the client has learnt them");
    running.end().await;
}

#[tokio::test]
async fn a_definition_is_seen_by_the_refresh_after_it() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE a (id UInt64) ENGINE = Memory").await;
    rig.sql("CREATE TABLE b (id UInt64) ENGINE = Memory").await;
    let running = Running::quiet(rig.client.clone());
    let before = running.schema.refresh().await.unwrap();
    let mut changes = running.schema.watch();
    changes.mark_unchanged();
    let same = running.schema.refresh().await.unwrap();
    assert!(Arc::ptr_eq(before.table("a").unwrap(), same.table("a").unwrap()), "what did not change is not copied");
    assert!(!changes.has_changed().unwrap() && same.taken_at > before.taken_at, "nobody is woken for nothing");

    rig.sql("ALTER TABLE a ADD COLUMN x Int8").await;
    rig.sql("DROP TABLE b").await;
    let after = running.schema.refresh().await.unwrap();
    assert!(changes.has_changed().unwrap());
    assert!(after.table("a").unwrap().column("x").is_some() && after.table("b").is_none());
    assert!(before.table("b").is_some(), "views are immutable");
    assert_eq!(running.schema.get().unwrap().tables.len(), 1);
    running.end().await;
}

#[tokio::test]
async fn a_read_that_breaks_keeps_the_view_and_is_counted() {
    let rig = Rig::new().await;
    for n in 0..50 {
        rig.sql(&format!("CREATE TABLE t{n} (id UInt64, a String, b String) ENGINE = Memory")).await;
    }
    let proxy = Proxy::start(rig.database.url()).await.unwrap();
    let running = Running::quiet(rig.through(proxy.url(), Duration::from_secs(20)));
    let before = running.schema.refresh().await.unwrap();
    let already = running.schema.stats();
    assert_eq!((before.tables.len(), already.failures), (50, 0));
    let mut failures = 0;
    for action in [
        Action::Truncate { bytes: 0 },
        Action::Truncate { bytes: 5_000 },
        Action::Truncate { bytes: 100_000 },
        Action::MidException { code: 241, name: "MEMORY_LIMIT_EXCEEDED".into(), bytes: 5_000 },
        Action::error(241, "MEMORY_LIMIT_EXCEEDED"),
        Action::Status { status: 200, body: "<html>".into() },
        Action::Status { status: 200, body: String::new() },
        Action::DropReply,
    ] {
        let rule = proxy.add(Rule::select(action.clone()));
        let error = running.schema.refresh().await.unwrap_err();
        failures += 1;
        let stats = running.schema.stats();
        assert_eq!((stats.failures, stats.reads), (failures, already.reads), "{action:?}");
        assert!(stats.last_error.is_some() && error.op() == "discover", "{error:?}");
        assert!(Arc::ptr_eq(&before, &running.schema.get().unwrap()), "{action:?}");
        proxy.remove(rule);
    }
    let after = running.schema.refresh().await.unwrap();
    assert_eq!((after.tables.len(), running.schema.stats().last_error), (50, None));
    running.end().await;
}

#[tokio::test]
async fn it_starts_without_a_server_and_finds_it_later() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE t (id UInt64) ENGINE = Memory").await;
    let proxy = Proxy::start(rig.database.url()).await.unwrap();
    proxy.down().await;
    let options = DiscoveryOptions {
        retry_first: Duration::from_millis(5),
        retry_longest: Duration::from_millis(50),
        ..DiscoveryOptions::default()
    };
    let running = Running::start(rig.through(proxy.url(), Duration::from_secs(20)), options);
    until(WITHIN, "three failures", || async {
        let stats = running.schema.stats();
        if stats.failures >= 3 { Ok(()) } else { Err(stats) }
    })
    .await
    .unwrap();
    assert!(running.schema.get().is_none());
    assert_eq!(running.schema.refresh().await.unwrap_err().class(), Class::Unavailable);
    proxy.up().await.unwrap();
    let mut changes = running.schema.watch();
    tokio::time::timeout(WITHIN, changes.wait_for(Option::is_some)).await.unwrap().unwrap();
    assert!(running.schema.get().unwrap().table("t").is_some());
    running.end().await;
}

#[tokio::test]
async fn a_missing_database_is_a_failure_and_not_an_empty_view() {
    let rig = Rig::new().await;
    let client = Client::new(Options { database: "not_there".into(), ..Rig::options(&rig.database) }).unwrap();
    let running = Running::quiet(client);
    let error = running.schema.refresh().await.unwrap_err();
    assert_eq!((error.code(), error.class()), (Some(81), Class::NotFound));
    assert!(running.schema.get().is_none());
    running.end().await;
}

#[tokio::test]
async fn it_reads_again_by_itself() {
    let rig = Rig::new().await;
    let options = DiscoveryOptions { interval: Duration::from_millis(50), ..DiscoveryOptions::default() };
    let running = Running::start(rig.client.clone(), options);
    let mut changes = running.schema.watch();
    tokio::time::timeout(WITHIN, changes.wait_for(Option::is_some)).await.unwrap().unwrap();
    rig.sql("CREATE TABLE later (id UInt64) ENGINE = Memory").await;
    let found = changes.wait_for(|schema| schema.as_ref().is_some_and(|schema| schema.table("later").is_some()));
    tokio::time::timeout(WITHIN, found).await.unwrap().unwrap();
    running.end().await;
}

#[tokio::test]
async fn many_who_ask_at_once_share_few_reads() {
    let rig = Rig::new().await;
    let proxy = Proxy::start(rig.database.url()).await.unwrap();
    let running = Running::quiet(rig.through(proxy.url(), Duration::from_secs(20)));
    running.schema.refresh().await.unwrap();
    let before = running.schema.stats().reads;
    let answers = futures::future::join_all((0..200).map(|_| running.schema.refresh())).await;
    assert!(answers.iter().all(Result::is_ok));
    let reads = running.schema.stats().reads - before;
    assert!((1..=2).contains(&reads), "{reads} reads for 200 calls");
    running.end().await;
}

#[tokio::test]
async fn it_stops_in_the_middle_of_a_read_and_says_so() {
    let rig = Rig::new().await;
    let proxy = Proxy::start(rig.database.url()).await.unwrap();
    proxy.add(Rule::select(Action::Hang));
    let running = Running::quiet(rig.through(proxy.url(), Duration::from_secs(600)));
    until_equal(WITHIN, "hanging reads", 1, || async { proxy.stats().fired("hang") }).await.unwrap();
    let (schema, waiting) = (running.schema.clone(), running.schema.clone());
    let asked = running.tasks.spawn("asks", async move { waiting.refresh().await });
    tokio::time::timeout(WITHIN, running.end()).await.unwrap();
    assert_eq!(asked.await.unwrap().unwrap_err().kind(), Kind::Stopping);
    assert_eq!(schema.refresh().await.unwrap_err().class(), Class::Stopping);
}

#[tokio::test]
async fn settings_that_vary_by_version_are_sent_once_the_server_is_known() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE t (id UInt64) ENGINE = Memory").await;
    insert(&rig.client, "t", &[r#"{"ID":1}"#]).await.ok();
    Running::quiet(rig.client.clone()).schema.refresh().await.unwrap();
    let error = insert(&rig.client, "t", &[r#"{"ID":1}"#]).await.unwrap_err();
    assert_eq!(error.code(), Some(117), "names match exactly: {error}");
}

#[tokio::test]
async fn a_port_nobody_has_is_retried_with_growing_delays() {
    let url = format!("http://127.0.0.1:{}", free_port().unwrap());
    let client = Client::new(Options { url, ..Options::default() }).unwrap();
    let running = Running::start(
        client,
        DiscoveryOptions {
            retry_first: Duration::from_secs(3600),
            retry_longest: Duration::from_secs(7200),
            ..DiscoveryOptions::default()
        },
    );
    until_equal(WITHIN, "failures", 1, || async { running.schema.stats().failures }).await.unwrap();
    assert!(running.schema.stats().last_error.unwrap().contains("refused"));
    running.end().await;
}

#[tokio::test]
async fn what_a_table_remembers_of_tokens_is_seen_and_follows_its_setting() {
    let rig = Rig::new().await;
    for sql in [
        "CREATE TABLE plain (id UInt64) ENGINE = MergeTree ORDER BY id",
        "CREATE TABLE kept (id UInt64) ENGINE = ReplacingMergeTree ORDER BY id \
         SETTINGS index_granularity = 8192, non_replicated_deduplication_window = 100",
        "CREATE TABLE other (id UInt64) ENGINE = Memory",
        "CREATE VIEW seen AS SELECT id FROM plain",
    ] {
        rig.sql(sql).await;
    }
    let running = Running::quiet(rig.client.clone());
    let schema = running.schema.refresh().await.unwrap();
    let window = |schema: &wh_clickhouse::Schema, table: &str| schema.table(table).unwrap().deduplication_window;
    let all = ["plain", "kept", "other", "seen"].map(|table| window(&schema, table));
    assert_eq!(all, [Some(0), Some(100), None, None]);
    rig.sql("ALTER TABLE plain MODIFY SETTING non_replicated_deduplication_window = 1000").await;
    let schema = running.schema.refresh().await.unwrap();
    assert_eq!(window(&schema, "plain"), Some(1_000));
    running.end().await;
}
