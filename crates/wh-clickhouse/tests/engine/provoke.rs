//! Requests that make the engine fail, one for each code that it can be made to give. Shared by the tests and by the
//! example `capture`, which writes the answers into `tests/captured`.

use std::time::Duration;
use wh_testkit::{clickhouse::Server, http::Reply};

/// One way to fail.
pub(crate) struct Provocation {
    /// The code it gives, and a word that tells it from others of that code.
    pub(crate) code: i32,
    pub(crate) name: &'static str,
    user: &'static str,
    password: &'static str,
    /// Settings, as they stand in a URL.
    settings: &'static str,
    sql: &'static str,
    row: &'static str,
}

const fn insert(code: i32, name: &'static str, sql: &'static str, row: &'static str) -> Provocation {
    let settings = "input_format_skip_unknown_fields=0&date_time_input_format=best_effort&async_insert=0";
    Provocation { code, name, user: "default", password: "", settings, sql, row }
}

const fn query(code: i32, name: &'static str, settings: &'static str, sql: &'static str) -> Provocation {
    Provocation { code, name, user: "default", password: "", settings, sql, row: "" }
}

const fn with(settings: &'static str, provocation: Provocation) -> Provocation {
    Provocation { settings, ..provocation }
}

const fn as_user(user: &'static str, password: &'static str, provocation: Provocation) -> Provocation {
    Provocation { user, password, ..provocation }
}

const ROWS: &str = "INSERT INTO t FORMAT JSONEachRow";

pub(crate) const ALL: &[Provocation] = &[
    insert(16, "column-list", "INSERT INTO t (nope) FORMAT JSONEachRow", r#"{"nope":1}"#),
    insert(25, "escape", ROWS, r#"{"s":"\ud83dx"}"#),
    insert(26, "open-string", ROWS, r#"{"id":1,"s":"a"#),
    insert(27, "number", ROWS, r#"{"id":1.5}"#),
    insert(33, "short", "INSERT INTO t (id) FORMAT RowBinary", "abc"),
    query(42, "arguments", "", "SELECT toDateTime(1, 2, 3, 4)"),
    insert(38, "date", ROWS, r#"{"d":"x"}"#),
    insert(41, "datetime", ROWS, r#"{"dt":"x"}"#),
    insert(44, "materialized", "INSERT INTO t (m) FORMAT JSONEachRow", r#"{"m":1}"#),
    query(47, "identifier", "", "SELECT nope FROM t"),
    query(53, "types", "", "SELECT toUInt8(1) IN ('a', [1])"),
    insert(60, "table", "INSERT INTO nope FORMAT JSONEachRow", r#"{"id":1}"#),
    query(62, "syntax", "", "SELEC 1"),
    insert(69, "decimal", ROWS, r#"{"dec":100000000}"#),
    insert(72, "minus", ROWS, r#"{"id":-1}"#),
    insert(81, "database", "INSERT INTO nodb.t FORMAT JSONEachRow", r#"{"id":1}"#),
    query(115, "setting", "nope=1", "SELECT 1"),
    insert(117, "unknown-field", ROWS, r#"{"nope":1}"#),
    insert(130, "array", ROWS, r#"{"a":1}"#),
    insert(131, "fixed-string", ROWS, r#"{"f":"abc"}"#),
    query(158, "rows-to-read", "max_rows_to_read=10", "SELECT sum(number) FROM numbers(1000000)"),
    query(
        159,
        "time",
        "max_execution_time=0.2",
        "SELECT sum(sleepEachRow(0.01)) FROM numbers(1000) SETTINGS max_block_size = 10",
    ),
    as_user("ro", "ro", with("", insert(164, "readonly", ROWS, r#"{"id":1}"#))),
    insert(190, "nested", ROWS, r#"{"n.x":[1],"n.y":[1,2]}"#),
    as_user("default", "wrong", query(194, "password", "", "SELECT 1")),
    as_user("tiny", "tiny", query(201, "quota", "", "SELECT count() FROM t")),
    query(202, "at-once", "max_concurrent_queries_for_user=1", "SELECT 1"),
    query(241, "memory", "max_memory_usage=50000000", "SELECT groupArray(number) FROM numbers(100000000)"),
    with("min_free_disk_bytes_to_perform_insert=100000000000000000", insert(243, "disk", ROWS, r#"{"id":1}"#)),
    with(
        "max_partitions_per_insert_block=2",
        insert(252, "partitions", "INSERT INTO p FORMAT JSONEachRow", "{\"id\":1}\n{\"id\":2}\n{\"id\":3}"),
    ),
    insert(252, "parts", "INSERT INTO parts FORMAT JSONEachRow", r#"{"id":1}"#),
    query(307, "bytes-to-read", "max_bytes_to_read=10", "SELECT sum(number) FROM numbers(1000000)"),
    insert(376, "uuid", ROWS, r#"{"u":"x"}"#),
    insert(395, "view", "INSERT INTO watched FORMAT JSONEachRow", r#"{"id":1}"#),
    query(396, "result-rows", "max_result_rows=10", "SELECT number FROM numbers(1000000)"),
    insert(407, "overflow", ROWS, r#"{"dt9":"2300-01-01 00:00:00"}"#),
    insert(467, "bool", ROWS, r#"{"b":"true"}"#),
    insert(469, "constraint", "INSERT INTO c FORMAT JSONEachRow", r#"{"id":100}"#),
    as_user("ingest", "ingest", with("", insert(497, "grant", ROWS, r#"{"id":1}"#))),
    as_user("nobody", "wrong", query(516, "user", "", "SELECT 1")),
    insert(675, "ipv4", ROWS, r#"{"ip":"x"}"#),
    insert(676, "ipv6", ROWS, r#"{"ip6":"x"}"#),
    insert(691, "enum", ROWS, r#"{"e":"z"}"#),
    query(395, "throw", "http_write_exception_in_output_format=0", "SELECT throwIf(number = 3) FROM numbers(5)"),
    query(
        395,
        "throw-in-json",
        "http_write_exception_in_output_format=1",
        "SELECT throwIf(number = 3) FROM numbers(5) FORMAT JSON",
    ),
];

/// Every code that the engine has a name for.
pub(crate) const CODES: &str =
    "SELECT number, errorCodeToName(number) AS name FROM numbers(1100) WHERE name != '' FORMAT TSV";

/// The tables that fail.
const TABLES: &[&str] = &[
    "CREATE TABLE t (id UInt64, s String, d Date, u UUID, dec Decimal(9, 2), e Enum8('a' = 1), dt DateTime, ip IPv4, \
     ip6 IPv6, f FixedString(2), m UInt64 MATERIALIZED id, a Array(Int8), `n.x` Array(Int8), `n.y` Array(Int8), b Bool, \
     dt9 DateTime64(9)) ENGINE = MergeTree ORDER BY id",
    "CREATE TABLE c (id UInt64, CONSTRAINT small CHECK id < 10) ENGINE = MergeTree ORDER BY id",
    "CREATE TABLE p (id UInt64) ENGINE = MergeTree PARTITION BY id ORDER BY id",
    "CREATE TABLE parts (id UInt64) ENGINE = MergeTree ORDER BY id SETTINGS parts_to_throw_insert = 1, \
     parts_to_delay_insert = 1, max_avg_part_size_for_too_many_parts = 0",
    "SYSTEM STOP MERGES parts",
    "INSERT INTO parts VALUES (1)",
    "CREATE TABLE watched (id UInt64) ENGINE = MergeTree ORDER BY id",
    "CREATE MATERIALIZED VIEW watching ENGINE = MergeTree ORDER BY x AS SELECT throwIf(id = 1) AS x FROM watched",
];

/// A server with the tables.
pub(crate) async fn server() -> Server {
    let server = Server::start().await.unwrap();
    for sql in TABLES {
        server.query(sql).await.unwrap();
    }
    server
}

impl Provocation {
    /// `252-parts`.
    pub(crate) fn title(&self) -> String {
        format!("{}-{}", self.code, self.name)
    }

    /// What the engine answers.
    pub(crate) async fn answer(&self, server: &Server) -> Reply {
        match self.code {
            // others are running
            202 => {
                let busy = query(0, "", "", "SELECT sleepEachRow(1) FROM numbers(3) SETTINGS max_block_size = 1");
                let (_, reply) = tokio::join!(busy.send(server), async {
                    let running = "SELECT count() FROM system.processes WHERE query LIKE '%sleepEachRow(1)%' AND NOT query LIKE '%processes%'";
                    wh_testkit::until_equal(Duration::from_secs(20), "running queries", "1".to_owned(), || async {
                        server.query(running).await.unwrap_or_default()
                    })
                    .await
                    .unwrap();
                    self.send(server).await
                });
                reply
            }
            201 => {
                let mut reply = self.send(server).await;
                for _ in 0..9 {
                    reply = if reply.status.is_success() { self.send(server).await } else { reply };
                }
                reply
            }
            _ => self.send(server).await,
        }
    }

    async fn send(&self, server: &Server) -> Reply {
        let url = format!("{}/?{}", server.url(), self.settings);
        let encoded: String = self
            .sql
            .bytes()
            .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
            .collect();
        let (url, body) =
            if self.row.is_empty() { (url, self.sql) } else { (format!("{url}&query={encoded}"), self.row) };
        let request = wh_testkit::http::post(url, body)
            .header("X-ClickHouse-User", self.user)
            .header("X-ClickHouse-Key", self.password);
        request.timeout(Duration::from_secs(60)).send().await.unwrap()
    }
}

/// An answer as a file has it: the status, the headers that say something, an empty line, the body.
pub(crate) fn written(reply: &Reply) -> Vec<u8> {
    let mut out = format!("HTTP {}\n", reply.status.as_u16());
    for name in ["content-type", "x-clickhouse-exception-code", "x-clickhouse-exception-tag", "x-clickhouse-format"] {
        if let Some(value) = reply.header(name) {
            out += &format!("{name}: {value}\n");
        }
    }
    out.push('\n');
    let mut out = out.into_bytes();
    out.extend_from_slice(&reply.body);
    out
}
