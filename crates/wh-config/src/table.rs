//! Every key there is, in the order of the reference. The only place where names, bounds and defaults stand.

use crate::key::{
    Default::{From, Is},
    Key, Kind,
};
use std::time::Duration;

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const fn key(path: &'static str, kind: Kind, default: crate::key::Default, meaning: &'static str) -> Key {
    Key { path, kind, default, meaning }
}

/// Every key.
#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    key("data_dir", Kind::Text, Is("./data"),
        "The folder this process keeps its data in. Made when it is missing."),
    key("roles", Kind::Choices(&["api", "ingest"]), Is("api,ingest"),
        "What this process does. With the embedded queue it does both."),
    key("instance_id", Kind::Text, From("host name and 8 random hex digits"),
        "The name of this process in logs."),

    key("server.host", Kind::Text, Is("127.0.0.1"),
        "The address to listen on. Anything but a loopback address needs `auth.allow_open`."),
    key("server.port", Kind::Int(1, 65_535), Is("8080"),
        "The port to listen on."),
    key("server.max_connections", Kind::Int(1, 1_000_000), Is("10000"),
        "Most connections at a time; more wait until one is closed. Open streams may take three quarters of them."),
    key("server.header_timeout", Kind::Duration(SECOND, HOUR), Is("75s"),
        "How long a connection may take to send the headers of its next request, and so how long an unused one is kept. \
         Keep it above the idle timeout of a load balancer in front."),
    key("server.body_timeout", Kind::Duration(SECOND, HOUR), Is("30s"),
        "How long the body of a request may take to arrive."),
    key("server.request_timeout", Kind::Duration(SECOND, HOUR), Is("75s"),
        "How long a request may take from its headers to its answer, its body included. Streams are not bound. Keep it \
         above `tenant_defaults.clickhouse.query_timeout`, and 30 s above `server.body_timeout`: so long an outcome of \
         the queue is inquired after."),
    key("server.shutdown_timeout", Kind::Duration(Duration::ZERO, HOUR), Is("10s"),
        "How long a stop waits for requests in flight, and then for rows already taken from the queue to be inserted. \
         `0` waits for neither; what is left is delivered again at the next start."),

    key("mq.backend", Kind::Choice(&["embedded"]), Is("embedded"),
        "Where rows are queued. `embedded`: in `data_dir`."),
    key("mq.embedded.shards", Kind::Int(1, 256), Is("8"),
        "How many units of delivery there are. Tables of different units never wait for each other."),
    key("mq.embedded.ack_wait", Kind::Duration(SECOND, HOUR), Is("60s"),
        "How long a delivered block may stay without a sign of life before it is delivered again."),
    key("mq.embedded.history", Kind::Duration(Duration::ZERO, Duration::from_secs(720 * 3_600)), Is("15m"),
        "How long a block stays readable for streams after it was inserted. Its disk is held so long."),
    key("mq.embedded.cache_bytes", Kind::Size(MIB, 64 * GIB), Is("64MiB"),
        "Blocks kept in memory, so that their delivery reads nothing from the disk."),

    key("ingest.mode", Kind::Choice(&["strict", "lenient"]), Is("strict"),
        "`strict` also refuses records that leave out a required column (neither NULL nor a default); `lenient` lets \
         ClickHouse fill it. Values out of a type's range are ClickHouse's to judge in this version."),
    key("ingest.max_body_bytes", Kind::Size(KIB, GIB), Is("16MiB"),
        "The largest request body, decoded."),
    key("ingest.body_budget", Kind::Size(16 * MIB, 64 * GIB), Is("256MiB"),
        "The decoded bodies of all requests in flight together. Beyond it requests are refused with 503."),
    key("ingest.max_row_bytes", Kind::Size(KIB, 64 * MIB), Is("1MiB"),
        "The largest row, decoded. A larger one is refused alone."),
    key("ingest.encoding", Kind::Choice(&["zstd", "lz4"]), Is("zstd"),
        "How blocks are compressed in the queue and on the way to ClickHouse."),
    key("ingest.batch_rows", Kind::Int(1, 1_000_000), Is("10000"),
        "A table's rows are inserted once so many of them wait."),
    key("ingest.batch_bytes", Kind::Size(64 * KIB, GIB), Is("8MiB"),
        "A table's rows are inserted once they have so many bytes, decoded."),
    key("ingest.batch_wait", Kind::Duration(MILLI, MINUTE), Is("1s"),
        "A table's rows are inserted once the oldest has waited so long."),
    key("ingest.held_rows", Kind::Int(1_000, 100_000_000), From("the larger of 200000 and 20000 × shards"),
        "Most rows taken from the queue and not yet inserted, in this process."),
    key("ingest.held_bytes", Kind::Size(16 * MIB, TIB), Is("256MiB"),
        "Most bytes taken from the queue and not yet inserted, compressed, in this process."),
    key("ingest.insert_timeout", Kind::Duration(SECOND, HOUR), Is("30s"),
        "Most time for one insert. After it the insert's outcome is unknown and the same rows are sent again under the \
         same token."),
    key("ingest.missing_table_hold", Kind::Duration(Duration::ZERO, DAY), Is("10m"),
        "How long rows of a table that does not exist are held before they go to the dead letters."),

    key("auth.operator_key", Kind::Secret, Is(""),
        "The key that `/v1/ops` demands. Empty: `/v1/ops` refuses everyone."),
    key("auth.operator_key_file", Kind::Optional, Is(""),
        "A file that holds the key instead. Read again when it changes."),
    key("auth.allow_open", Kind::Bool, Is("false"),
        "Allows to listen on an address that others reach although nothing checks who may write and read."),

    key("prometheus.enabled", Kind::Bool, Is("true"),
        "Whether metrics are served."),
    key("prometheus.path", Kind::Text, Is("/metrics"),
        "Where."),

    key("log.level", Kind::Choice(&["off", "error", "warn", "info", "debug", "trace"]), Is("info"),
        "What is logged, to standard error."),
    key("log.format", Kind::Choice(&["text", "json"]), Is("text"),
        "One line of text or one JSON object for each event."),

    key("tenant_defaults.clickhouse.url", Kind::Optional, From("from the next three"),
        "Where ClickHouse's HTTP interface is, like `http://127.0.0.1:8123`. No credentials in it."),
    key("tenant_defaults.clickhouse.addr", Kind::Text, Is("localhost:9000"),
        "Host and native port, as in `config.json`. Only the host is used."),
    key("tenant_defaults.clickhouse.http_port", Kind::Int(1, 65_535), Is("8123"),
        "The port of the HTTP interface on that host."),
    key("tenant_defaults.clickhouse.http_scheme", Kind::Choice(&["http"]), Is("http"),
        "`https` is not in this version yet."),
    key("tenant_defaults.clickhouse.database", Kind::Text, Is("default"),
        "The database whose tables are served."),
    key("tenant_defaults.clickhouse.username", Kind::Text, Is("default"),
        "Who we are."),
    key("tenant_defaults.clickhouse.password", Kind::Secret, Is(""),
        "The user's password."),
    key("tenant_defaults.clickhouse.password_file", Kind::Optional, Is(""),
        "A file that holds the password instead. Read again when it changes."),
    key("tenant_defaults.clickhouse.query_timeout", Kind::Seconds(SECOND, HOUR), Is("30"),
        "Most time for one query."),
    key("tenant_defaults.clickhouse.max_open_conns", Kind::Int(1, 10_000), Is("100"),
        "Most queries in flight; more wait. As many inserts besides."),
    key("tenant_defaults.clickhouse.headers", Kind::Pairs, Is("{}"),
        "Further headers for every request to ClickHouse, for a proxy in between."),
    key("tenant_defaults.query.default_max_rows", Kind::Int(1, 100_000_000), Is("10000"),
        "Most rows a query gives when it names no limit."),
    key("tenant_defaults.schema.refresh_interval", Kind::Seconds(SECOND, DAY), Is("60"),
        "How often the tables' columns are read again."),
    key("tenant_defaults.stream.keepalive_interval", Kind::Seconds(SECOND, HOUR), Is("15"),
        "How often a stream without events gets a comment, so that nobody in between cuts it."),
    key("tenant_defaults.mq.max_bytes_gb", Kind::Int(1, 1_000_000), Is("50"),
        "What a tenant may keep in the queue, in GB of compressed rows, and one table of it four fifths of that. Beyond it \
         rows are refused with 503. Dead letters have a tenth of it besides."),
];

/// Keys of upstream's files that this version does not take, by the first part of their path, with what to say.
pub(crate) const ELSEWHERE: &[(&str, &str)] = &[
    ("cache", LATER),
    ("dedupe", LATER),
    ("coord", LATER),
    ("mq.nats", LATER),
    ("settings", LATER),
    ("otel", LATER),
    ("auth.jwt_secret", LATER),
    ("prometheus.port", LATER),
    ("clickhouse", "its keys are under tenant_defaults.clickhouse here"),
    ("ch", "its keys are under tenant_defaults.clickhouse here"),
    ("tenant_defaults.auth", LATER),
    ("tenant_defaults.clickhouse.max_idle_conns", "connections are kept as long as they are used: remove it"),
    ("tenant_defaults.clickhouse.tls", LATER),
    ("tenant_defaults.cors", LATER),
    ("tenant_defaults.dedupe", LATER),
    ("tenant_defaults.dlq", LATER),
    ("tenant_defaults.query.timestamp_bucket_seconds", LATER),
    ("tenant_defaults.stream.keepalive_buckets", "keep-alives are spread without it: remove it"),
    ("tenant_defaults.stream.gap_window_minutes", "its duration is mq.embedded.history here"),
];

const LATER: &str = "this version does not have it yet: remove it";

/// The key of a path.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Whether a path is a section: keys stand below it.
pub(crate) fn is_section(path: &str) -> bool {
    KEYS.iter().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// What to say about a path that upstream knows and we do not.
pub(crate) fn elsewhere(path: &str) -> Option<&'static str> {
    let below = |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    ELSEWHERE.iter().find(|(prefix, _)| below(prefix)).map(|(_, say)| *say)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{key::Default, value::parse};
    use figment::value::Value;
    use std::collections::BTreeSet;

    #[test]
    fn paths_and_variables_are_unique_and_no_key_is_a_section() {
        let paths: BTreeSet<_> = KEYS.iter().map(|key| key.path).collect();
        let variables: BTreeSet<_> = KEYS.iter().map(Key::variable).collect();
        assert_eq!((paths.len(), variables.len()), (KEYS.len(), KEYS.len()));
        assert!(KEYS.iter().all(|key| !is_section(key.path) && elsewhere(key.path).is_none()));
    }

    #[test]
    fn every_default_is_a_value_its_key_takes() {
        for key in KEYS {
            if let Default::Is(text) = key.default {
                parse(key.kind, &Value::from(text)).unwrap_or_else(|problem| panic!("{}: {problem}", key.path));
            }
        }
    }

    #[test]
    fn every_secret_may_come_from_a_file() {
        for key in KEYS.iter().filter(|key| matches!(key.kind, Kind::Secret)) {
            assert!(find(&format!("{}_file", key.path)).is_some(), "{}", key.path);
        }
    }
}
