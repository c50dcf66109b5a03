//! What stands behind tables, asked of the real engine.

use crate::Rig;
use std::sync::Arc;
use wh_clickhouse::{Discovery, DiscoveryOptions, Reads, Relations, SchemaHandle, TableRef};
use wh_types::{OsEntropy, Stop, SystemClock, Tasks};

struct Known {
    rig: Rig,
    schema: SchemaHandle,
    relations: Relations,
    stop: Stop,
}

impl Drop for Known {
    fn drop(&mut self) {
        self.stop.give();
    }
}

impl Known {
    async fn new(statements: &[&str]) -> Self {
        let rig = Rig::new().await;
        for statement in statements {
            rig.sql(statement).await;
        }
        let stop = Stop::new();
        let options =
            DiscoveryOptions { interval: std::time::Duration::from_secs(3_600), ..DiscoveryOptions::default() };
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
        let schema = Discovery::start(rig.client.clone(), options, clock, entropy, &Tasks::new(), stop.clone());
        schema.refresh().await.unwrap();
        let relations = Relations::new(rig.client.clone(), schema.clone());
        Self { rig, schema, relations, stop }
    }

    fn names<'a>(&self, tables: impl IntoIterator<Item = &'a TableRef>) -> String {
        let name = |table: &TableRef| {
            let own = table.database == self.rig.database.name();
            if own { table.name.clone() } else { table.to_string() }
        };
        tables.into_iter().map(name).collect::<Vec<_>>().join(" ")
    }

    async fn table(&self, name: &str) -> (String, bool, bool) {
        let schema = self.schema.get().unwrap();
        self.shown(&self.relations.reads_of_table(schema.table(name).unwrap()).await)
    }

    async fn statement(&self, sql: &str) -> (String, bool, bool) {
        self.shown(&self.relations.reads_of_statement(sql, &[]).await)
    }

    fn shown(&self, reads: &Reads) -> (String, bool, bool) {
        (self.names(&reads.tables), reads.tracked, reads.steady)
    }

    async fn changed(&self, table: &str) -> String {
        self.names(&*self.relations.changed_by(table).await.unwrap())
    }
}

fn told(tables: &str) -> (String, bool, bool) {
    (tables.to_owned(), true, true)
}

const BASE: [&str; 2] = [
    "CREATE TABLE s (id UInt64, k String) ENGINE = MergeTree ORDER BY id",
    "CREATE TABLE other (id UInt64) ENGINE = MergeTree ORDER BY id",
];

#[tokio::test]
async fn views_over_views_are_followed_to_their_tables() {
    let known = Known::new(
        &[
            &BASE[..],
            &[
                "CREATE VIEW v AS SELECT id FROM s WHERE id IN (SELECT id FROM other)",
                "CREATE VIEW w AS WITH x AS (SELECT max(id) AS m FROM v) SELECT m FROM x UNION ALL SELECT 1",
                "CREATE VIEW scalar AS SELECT id, (SELECT max(id) FROM other) AS m FROM s",
                "CREATE VIEW clocked AS SELECT id, now() AS at FROM s",
                "CREATE VIEW counted AS SELECT number AS id FROM numbers(10)",
                "CREATE VIEW outside AS SELECT name FROM system.tables",
            ],
        ]
        .concat(),
    )
    .await;
    assert_eq!(known.table("s").await, told("s"));
    assert_eq!(known.table("v").await, told("other s v"));
    assert_eq!(known.table("w").await, told("other s v w"));
    let scalar = known.table("scalar").await;
    assert!(
        scalar == told("other s scalar") || !scalar.1,
        "a subquery's table is named, or is known to be missing: {scalar:?}"
    );
    assert_eq!(known.table("clocked").await, ("clocked s".into(), true, false));
    assert_eq!(known.table("counted").await, told("counted"));
    let outside = known.table("outside").await;
    assert!(!outside.1, "nobody tells of changes of system tables: {outside:?}");
}

#[tokio::test]
async fn what_inserts_are_pushed_on_to_is_found_both_ways() {
    let known = Known::new(
        &[
            &BASE[..],
            &[
                "CREATE TABLE target (id UInt64) ENGINE = MergeTree ORDER BY id",
                "CREATE MATERIALIZED VIEW to_target TO target AS SELECT id FROM s",
                "CREATE MATERIALIZED VIEW own ENGINE = MergeTree ORDER BY id AS SELECT id FROM target",
            ],
        ]
        .concat(),
    )
    .await;
    let changed = known.changed("s").await;
    for table in ["s", "to_target", "target", "own"] {
        assert!(changed.split(' ').any(|name| name == table), "{table} is not in {changed}");
    }
    assert_eq!(known.changed("other").await, "other");
    assert_eq!(known.table("target").await, told("target"));
    assert_eq!(known.table("to_target").await, told("target to_target"));
    assert_eq!(known.table("own").await, told("own"));
}

#[tokio::test]
async fn merge_buffer_and_distributed_are_what_is_behind_them() {
    let known = Known::new(
        &[
            &BASE[..],
            &[
                "CREATE TABLE s2 (id UInt64, k String) ENGINE = MergeTree ORDER BY id",
                "CREATE TABLE merged AS s ENGINE = Merge(currentDatabase(), '^s[0-9]*$')",
                "CREATE TABLE spread AS s ENGINE = Distributed('here', currentDatabase(), s)",
                "CREATE TABLE held AS s ENGINE = Buffer(currentDatabase(), s2, 1, 10, 100, 10, 100, 1000, 10000)",
            ],
        ]
        .concat(),
    )
    .await;
    let merged = known.table("merged").await;
    assert_eq!((merged.0.as_str(), merged.1), ("merged s s2", false), "s2 gets rows from a buffer in its own time");
    assert_eq!(known.table("held").await, told("held s2"));
    assert_eq!(known.table("s2").await, ("s2".into(), false, true));
    assert_eq!(known.table("spread").await, told("s spread"));
    assert_eq!(known.changed("held").await, "held s2");
    assert_eq!(known.changed("spread").await, "s spread");
}

#[tokio::test]
async fn a_statement_is_known_by_what_clickhouse_says_of_it() {
    let known = Known::new(&BASE).await;
    assert_eq!(known.statement("SELECT count() FROM s JOIN other USING id").await, told("other s"));
    assert_eq!(known.statement("WITH t AS (SELECT * FROM s) SELECT * FROM t WHERE id IN other").await, told("other s"));
    assert_eq!(known.statement("SELECT rand() FROM s").await, ("s".into(), true, false));
    for sql in ["SELECT * FROM url('http://127.0.0.1:9/', 'CSV', 'a String')", "SELECT FROM", "SELECT * FROM nowhere"] {
        let reads = known.statement(sql).await;
        assert!(!reads.1, "{sql}: {reads:?}");
    }
    let params = [("p".to_owned(), "7".to_owned()), ("t".to_owned(), "other".to_owned())];
    let reads = known.relations.reads_of_statement("SELECT * FROM {t:Identifier} WHERE id = {p:UInt64}", &params).await;
    assert_eq!(known.shown(&reads), told("other"));
}

#[tokio::test]
async fn a_definition_that_changed_is_known_with_the_next_view_of_the_schema() {
    let known = Known::new(&[&BASE[..], &["CREATE VIEW v AS SELECT id FROM s"]].concat()).await;
    assert_eq!(known.table("v").await, told("s v"));
    known.rig.sql("CREATE OR REPLACE VIEW v AS SELECT id FROM other").await;
    known.rig.sql("CREATE MATERIALIZED VIEW m ENGINE = MergeTree ORDER BY id AS SELECT id FROM s").await;
    known.schema.refresh().await.unwrap();
    assert_eq!(known.table("v").await, told("other v"));
    assert!(known.changed("s").await.split(' ').any(|name| name == "m"));
}
