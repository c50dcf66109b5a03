//! Every key there is, in the order of the reference. The only place where names, bounds and defaults stand.

use crate::key::{
    Default::{From, Is, Number, Span},
    Key, Kind,
};
use std::time::Duration;
use wh_topology::defaults as nats;

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const TWO_MINUTES: Duration = Duration::from_secs(120);
const MONTH: Duration = Duration::from_secs(30 * 86_400);
const DECADE: Duration = Duration::from_secs(3_650 * 86_400);
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const fn key(path: &'static str, kind: Kind, default: crate::key::Default, meaning: &'static str) -> Key {
    Key { path, kind, default, meaning }
}

const fn bounds((least, most): (Duration, Duration)) -> Kind {
    Kind::Duration(least, most)
}

/// Every key.
#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    key("data_dir", Kind::Text, Is("./data"),
        "The folder this process keeps its data in. Made when it is missing."),
    key("roles", Kind::Choices(&["api", "ingest", "sweeper"]), Is("api,ingest,sweeper"),
        "What this process does: `api` serves `/v1`, `ingest` writes to ClickHouse, `sweeper` clears what a queue leaves \
         to be cleared (neither queue of this version does). With the embedded queue one process is both `api` and \
         `ingest`. `wavehouse-api` and `wavehouse-ingest` have their one role whatever stands here, and refuse another."),
    key("instance_id", Kind::Text, From("host name and 8 random hex digits"),
        "The name of this process in logs and leases."),

    key("server.host", Kind::Text, Is("127.0.0.1"),
        "The address to listen on. For the role `api` anything but a loopback address needs `auth.allow_open`."),
    key("server.port", Kind::Int(1, 65_535), Is("8080"),
        "The port to listen on."),
    key("server.max_connections", Kind::Int(1, 1_000_000), Is("10000"),
        "Most connections at a time; more wait until one is closed."),
    key("server.max_streams", Kind::Int(1, 1_000_000), From("three quarters of `server.max_connections`"),
        "Most open streams, of all tenants together; one more is answered 503 `stream.too_many`. Below \
         `server.max_connections`, as each keeps its connection."),
    key("server.max_replays", Kind::Int(1, 10_000), Is("32"),
        "Most streams that read the history at once, some megabytes each; more wait for their turn."),
    key("server.header_timeout", Kind::Duration(SECOND, HOUR), Is("75s"),
        "How long a connection may take to send the headers of its next request, and so how long an unused one is kept. \
         Keep it above the idle timeout of a load balancer in front."),
    key("server.body_timeout", Kind::Duration(SECOND, HOUR), Is("30s"),
        "How long the body of a request may take to arrive."),
    key("server.body_idle_timeout", Kind::Duration(MILLI, HOUR), Is("10s"),
        "How long the body of an ingest request may stand still before the request ends with 408."),
    key("server.request_timeout", Kind::Duration(SECOND, HOUR), Is("75s"),
        "How long a request may take from its headers to its answer, its body included. Streams are not bound. Keep it \
         above `tenant_defaults.clickhouse.query_timeout`, and 30 s above `server.body_timeout`: so long an outcome of \
         the queue is inquired after."),
    key("server.shutdown_timeout", Kind::Duration(Duration::ZERO, HOUR), Is("10s"),
        "How long a stop waits for requests in flight. Rows already taken from the queue are waited for as long, and at \
         least `ingest.insert_timeout` and 5 s: an insert that is cut short may be stored all the same, and then \
         doubles. `0` waits for neither; what is left is delivered again."),

    key("mq.backend", Kind::Choice(&["embedded", "nats"]), Is("embedded"),
        "Where rows are queued. `embedded`: in `data_dir`. `nats`: on a JetStream cluster that any number of processes \
         share; `ingest` then needs `coord.backend: nats`."),
    key("mq.embedded.shards", Kind::Int(1, 256), Is("8"),
        "How many units of delivery there are. Tables of different units never wait for each other."),
    key("mq.embedded.ack_wait", Kind::Duration(SECOND, HOUR), Is("60s"),
        "How long a delivered block may stay without a sign of life before it is delivered again."),
    key("mq.embedded.history", Kind::Duration(Duration::ZERO, Duration::from_secs(720 * 3_600)), Is("15m"),
        "How long a block stays readable for streams after it was inserted. Its disk is held so long."),
    key("mq.embedded.cache_bytes", Kind::Size(MIB, 64 * GIB), Is("64MiB"),
        "Blocks kept in memory, so that their delivery reads nothing from the disk."),

    key("mq.nats.urls", Kind::Texts, Is(""),
        "The servers, like `nats://127.0.0.1:4222` or `tls://nats.example:4222`; one is enough, the others of its cluster \
         are learnt. Needed with `mq.backend: nats`. No credentials in them."),
    key("mq.nats.name", Kind::Optional, From("`wavehouse-` and the host name"),
        "The name of this process's connections on the server."),
    key("mq.nats.creds_file", Kind::Optional, Is(""),
        "Credentials: a `.creds` file. At most one of this, `nkey_seed_file`, `user` with `password_file`, and \
         `token_file`. Each file is read again when it changes."),
    key("mq.nats.nkey_seed_file", Kind::Optional, Is(""),
        "Credentials: a file that holds an NKey seed."),
    key("mq.nats.user", Kind::Optional, Is(""),
        "Credentials: the user, with `password_file`."),
    key("mq.nats.password_file", Kind::Optional, Is(""),
        "A file that holds the user's password."),
    key("mq.nats.token_file", Kind::Optional, Is(""),
        "Credentials: a file that holds a token."),
    key("mq.nats.tls.ca_file", Kind::Optional, Is(""),
        "Certificates (PEM) that the servers' are checked against, besides the system's. Makes TLS required."),
    key("mq.nats.tls.cert_file", Kind::Optional, Is(""),
        "Our own certificate (PEM), where servers ask for one; with `key_file`. Makes TLS required."),
    key("mq.nats.tls.key_file", Kind::Optional, Is(""),
        "The key of our own certificate (PEM)."),
    key("mq.nats.tls.server_name", Kind::Optional, From("the host in the URL"),
        "The name that servers' certificates are checked for. Makes TLS required."),
    key("mq.nats.tls.handshake_first", Kind::Bool, Is("false"),
        "Begin with TLS, before the server says anything; for servers that are set up so. Makes TLS required."),
    key("mq.nats.js_domain", Kind::Optional, Is(""),
        "The JetStream domain, where clients address one."),
    key("mq.nats.inbox_prefix", Kind::Optional, From("`_INBOX_` and the subject prefix"),
        "What the subjects of answers begin with. The printed permissions allow the default; print them with \
         `--inbox-prefix` for another."),
    key("mq.nats.subject_prefix", Kind::Text, Is(nats::PREFIX),
        "The first token of every subject: 1 to 64 of a-z, 0-9, _ and -. This key and the following say what the operator \
         created; they stand in `wavehouse mq manifests` as flags of nearly the same names."),
    key("mq.nats.partitions", Kind::Int(1, nats::MAX_PARTITIONS as u64), Number(nats::PARTITIONS as u64),
        "Ingest streams. The same in every process."),
    key("mq.nats.shards", Kind::Int(1, nats::MAX_SHARDS as u64), Number(nats::SHARDS as u64),
        "Durables on each ingest stream. The same in every process."),
    key("mq.nats.replicas", Kind::Int(1, nats::MAX_REPLICAS as u64), Number(nats::REPLICAS as u64),
        "Copies of each stream, for the commands that findings offer. Nothing is made or changed by it."),
    key("mq.nats.ingest_consumer", Kind::Text, Is(nats::INGEST_CONSUMER),
        "What the durables' names begin with."),
    key("mq.nats.history_stream", Kind::Optional, From("`<PREFIX>_HISTORY`"),
        "The history's stream."),
    key("mq.nats.dlq_stream", Kind::Optional, From("`<PREFIX>_DLQ`"),
        "The dead letters' stream."),
    key("mq.nats.dlq_delete", Kind::Bool, Is("true"),
        "Whether dead letters are deleted one by one, which replaying and purging them needs. `false` where permissions \
         were printed with `--no-dlq-delete`."),
    key("mq.nats.connect_timeout", bounds(nats::CONNECT_TIMEOUT_BOUNDS), Span(nats::CONNECT_TIMEOUT),
        "How long connecting to one server may take."),
    key("mq.nats.publish_timeout", bounds(nats::PUBLISH_TIMEOUT_BOUNDS), Span(nats::PUBLISH_TIMEOUT),
        "How long one attempt of a publish may take. There are three, and half a second. Print manifests with the same."),
    key("mq.nats.topology_wait", bounds(nats::TOPOLOGY_WAIT_BOUNDS), Span(nats::TOPOLOGY_WAIT),
        "How long a start waits for servers and for a topology that is right."),
    key("mq.nats.topology_recheck", bounds(nats::TOPOLOGY_RECHECK_BOUNDS), Span(nats::TOPOLOGY_RECHECK),
        "How often a running process checks the topology again, give or take a fifth."),

    key("coord.backend", Kind::Choice(&["local", "nats"]), Is("local"),
        "Where processes agree who does what. `local`: there is one process. `nats`: in a bucket on the servers of \
         `mq.nats`."),
    key("coord.lease", bounds(nats::COORD_LEASE_BOUNDS), Span(nats::COORD_LEASE),
        "How long a process that fell silent keeps what it owns. It gives it up by itself after two thirds of that."),
    key("coord.nats.bucket", Kind::Optional, From("`<prefix>_coord`"),
        "The bucket of leases."),

    key("cache.backend", Kind::Choice(&["none", "memory", "redis"]), Is("memory"),
        "Where answers of queries are kept. `memory`: in this process. `redis`: on Redis or Valkey, which processes \
         share. `none`: nowhere, and no two requests share a query. With `mq.backend: nats` answers in memory live for \
         10 s at most."),
    key("cache.memory.bytes", Kind::Size(MIB, TIB), Is("64MiB"),
        "What all answers may take in memory. At least eight of the largest size."),
    key("cache.memory.max_value_bytes", Kind::Size(KIB, GIB), Is("1MiB"),
        "The largest answer that is kept. A larger one is asked for each time."),
    key("cache.redis.addrs", Kind::Texts, Is(""),
        "`host:port` of the server, of nodes of the cluster, or of sentinels. Needed with `cache.backend: redis`."),
    key("cache.redis.mode", Kind::Choice(&["standalone", "cluster", "sentinel"]), Is("standalone"),
        "How they stand together."),
    key("cache.redis.sentinel_primary", Kind::Optional, Is(""),
        "What sentinels call the primary."),
    key("cache.redis.sentinel_username", Kind::Optional, Is(""),
        "Who we are to sentinels."),
    key("cache.redis.sentinel_password_file", Kind::Optional, Is(""),
        "A file that holds the password for sentinels."),
    key("cache.redis.username", Kind::Optional, Is(""),
        "Who we are."),
    key("cache.redis.password_file", Kind::Optional, Is(""),
        "A file that holds the password. Read again for each new connection."),
    key("cache.redis.db", Kind::Int(0, 255), Is("0"),
        "The database."),
    key("cache.redis.connections", Kind::Int(1, 64), Is("2"),
        "Connections side by side, to each node of a cluster."),
    key("cache.redis.key_prefix", Kind::Text, Is("wh"),
        "What every name in the store begins with. Processes with the same one share answers."),
    key("cache.redis.timeout", Kind::Duration(MILLI, Duration::from_secs(10)), Is("100ms"),
        "How long one operation may take. What takes longer is a miss, an answer not kept, an invalidation owed."),
    key("cache.redis.dial_timeout", Kind::Duration(Duration::from_millis(10), MINUTE), Is("5s"),
        "How long new connections may take to be made and proven."),
    key("cache.redis.max_value_bytes", Kind::Size(KIB, 64 * MIB), Is("1MiB"),
        "The largest answer that is kept, before it is packed."),
    key("cache.redis.compress_min_bytes", Kind::Size(0, GIB), Is("1KiB"),
        "From which size answers are packed. `0`: never."),
    key("cache.redis.version_ttl", Kind::Duration(HOUR, MONTH), Is("168h"),
        "How long a table's version is remembered."),
    key("cache.redis.tls.enabled", Kind::Bool, Is("false"),
        "Whether connections are encrypted. Certificates are checked."),
    key("cache.redis.tls.ca_file", Kind::Optional, Is(""),
        "Certificates (PEM) that the servers' are checked against, instead of the system's."),
    key("dedupe.backend", Kind::Choice(&["none", "log", "sled", "dynamodb"]), From("`log` with the embedded queue, else `none`"),
        "Where ids of events and keys of requests are kept, to store each once. `log`: in `data_dir`, for one process. \
         `sled`: the same in sled's files, far slower. `dynamodb`: in a table that processes share. `none`: nowhere. \
         Which tables' events are told apart says `tenant_defaults.dedupe`."),
    key("dedupe.lease", Kind::Duration(SECOND, HOUR), Span(nats::DEDUPE_LEASE),
        "How long an id stays claimed by a request whose outcome is not known. At least three publish timeouts and \
         10.5 s; with the embedded queue 25.5 s to 59 s."),
    key("dedupe.on_outage", Kind::Choice(&["refuse", "accept"]), Is("refuse"),
        "What becomes of events with ids while the store is away. `refuse`: 503. `accept`: they are stored without being \
         looked up, marked in the answer, and may double."),
    key("dedupe.reserve_concurrency", Kind::Int(1, 1_024), Is("64"),
        "Ids of one block that are sent to DynamoDB at one time."),
    key("dedupe.dynamodb.table", Kind::Optional, Is(""),
        "The table. Needed with `dedupe.backend: dynamodb`."),
    key("dedupe.dynamodb.region", Kind::Optional, From("what the SDK finds"),
        "Its region."),
    key("dedupe.dynamodb.endpoint", Kind::Optional, Is(""),
        "Where it is, where it is not AWS: an emulator's `http://host:port`."),
    key("dedupe.dynamodb.timeout", Kind::Duration(Duration::from_millis(50), Duration::from_secs(5)), Is("1s"),
        "How long a call for one block may take, attempts and waits included; one attempt two fifths of it."),
    key("dedupe.dynamodb.create_table", Kind::Bool, Is("false"),
        "Makes the table where it is missing. Only with `dedupe.dynamodb.endpoint`."),

    key("ingest.mode", Kind::Choice(&["strict", "lenient"]), Is("strict"),
        "`strict` also refuses records that leave out a required column (neither NULL nor a default), and values that \
         ClickHouse would store as something else, above all those out of a type's range; `lenient` lets ClickHouse decide."),
    key("ingest.max_body_bytes", Kind::Size(KIB, GIB), Is("16MiB"),
        "The largest request body, decoded."),
    key("ingest.body_budget", Kind::Size(16 * MIB, 64 * GIB), Is("256MiB"),
        "What the bodies of all requests in flight hold in memory together, decoded, and the rows made of them besides. \
         Beyond it requests wait for 5 s and are then refused with 503. Never less than three times the largest body and \
         4 MiB: one request of the largest size goes on whatever others hold."),
    key("ingest.tenant_body_budget", Kind::Size(16 * MIB, 64 * GIB), From("three quarters of `ingest.body_budget`"),
        "The same for the ingest requests of one tenant, so that one tenant cannot take it all. The same least holds."),
    key("ingest.max_row_bytes", Kind::Size(KIB, 64 * MIB), Is("1MiB"),
        "The largest row, decoded. A larger one is refused alone."),
    key("ingest.idempotency_window", Kind::Duration(TWO_MINUTES, MONTH), Is("24h"),
        "How long a request with an `Idempotency-Key` is known, record by record."),
    key("ingest.encoding", Kind::Choice(&["zstd", "lz4"]), Is("zstd"),
        "How blocks are compressed in the queue and on the way to ClickHouse."),
    key("ingest.batch_rows", Kind::Int(1, 1_000_000), Is("10000"),
        "A table's rows are inserted once so many of them wait."),
    key("ingest.batch_bytes", Kind::Size(64 * KIB, GIB), Is("8MiB"),
        "A table's rows are inserted once they have so many bytes, decoded."),
    key("ingest.batch_wait", Kind::Duration(MILLI, MINUTE), Is("1s"),
        "A table's rows are inserted once the oldest has waited so long; up to eight times longer while its merges do \
         not keep up."),
    key("ingest.batch_max_rows", Kind::Int(1, 10_000_000), From("the larger of 100000 and `ingest.batch_rows`"),
        "Most rows of one insert: a table that lags has all that waits inserted at once, up to so many."),
    key("ingest.batch_max_bytes", Kind::Size(64 * KIB, 4 * GIB), From("the larger of 64MiB and `ingest.batch_bytes`"),
        "Most bytes of one insert, decoded."),
    key("ingest.table_inserts", Kind::Int(1, 64), Is("1"),
        "Inserts into one table at a time, in each process. With more than 1 a table's rows are not stored in the order \
         they came in."),
    key("ingest.held_rows", Kind::Int(1_000, 100_000_000), From("the larger of 200000 and 20000 × units of delivery"),
        "Most rows taken from the queue and not yet inserted, in this process."),
    key("ingest.held_bytes", Kind::Size(16 * MIB, TIB), Is("256MiB"),
        "Most bytes taken from the queue and not yet inserted, compressed, in this process."),
    key("ingest.dead_letters", Kind::Bool, Is("true"),
        "Whether rows that ClickHouse refuses are kept as dead letters. `false`: they are dropped, logged and counted."),
    key("ingest.insert_timeout", Kind::Duration(SECOND, HOUR), Is("30s"),
        "Most time for one insert. After it the insert's outcome is unknown and the same rows are sent again under the \
         same token."),
    key("ingest.missing_table_hold", Kind::Duration(Duration::ZERO, DAY), Is("10m"),
        "How long rows of a table that does not exist are held before they go to the dead letters, and how long rows \
         that name a column which was dropped wait there to be stored by themselves when it is back."),

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
        "Where ClickHouse's HTTP interface is, like `http://127.0.0.1:8123` or `https://db:8443`. No credentials in it."),
    key("tenant_defaults.clickhouse.addr", Kind::Text, Is("localhost:9000"),
        "Host and native port, as in `config.json`. Only the host is used."),
    key("tenant_defaults.clickhouse.http_port", Kind::Int(1, 65_535), Is("8123"),
        "The port of the HTTP interface on that host."),
    key("tenant_defaults.clickhouse.http_scheme", Kind::Choice(&["http", "https"]), Is("http"),
        "With `https` the server's certificate is checked against the system's root certificates."),
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
    key("tenant_defaults.dedupe.enabled", Kind::Bool, Is("false"),
        "Whether events are told apart by an id, so that each is stored once."),
    key("tenant_defaults.dedupe.id_field", Kind::Text, Is("event_id"),
        "The column that holds an event's id."),
    key("tenant_defaults.dedupe.require_id", Kind::Bool, Is("false"),
        "Whether an event whose id is left out, null or empty is refused. Else it is stored, and counted."),
    key("tenant_defaults.dedupe.retention", Kind::Duration(Duration::ZERO, DECADE), Is("0"),
        "How long an id is known. `0`: for good. Else at least 2m."),
    key("tenant_defaults.dedupe.tables", Kind::Tables, Is("{}"),
        "What differs for single tables, by name: `enabled`, `id_field`, `require_id`, `retention`."),
    key("tenant_defaults.default_role", Kind::Optional, Is(""),
        "The role of who presents no credential: pipes whose `allowed_roles` name it may be run by everybody. Empty: who \
         presents nothing runs no pipe. `admin` runs every pipe."),
    key("tenant_defaults.pipes.file", Kind::Optional, Is(""),
        "The file of pipes, a `pipes.json`. Read at the start, where what is wrong with it refuses the start; read again \
         when it changes, where a file that is refused changes nothing."),
    key("tenant_defaults.query.default_max_rows", Kind::Int(1, 100_000_000), Is("10000"),
        "Most rows a query gives, whatever `limit` it names; more are read in pages."),
    key("tenant_defaults.query.cache_ttl", Kind::Seconds(Duration::ZERO, DAY), Is("1h"),
        "The longest life of a kept answer. An answer lives a thousand times as long as its query took, 10 s at least, \
         and never longer than this. `0`: none is kept."),
    key("tenant_defaults.query.timestamp_bucket_seconds", Kind::Seconds(Duration::ZERO, DAY), Is("60"),
        "Ages in a query's `time_range` are counted from steps of this length, so that queries that come shortly after \
         each other are the same: the range is widened to whole steps. `0`: they are exact."),
    key("tenant_defaults.schema.refresh_interval", Kind::Seconds(SECOND, DAY), Is("60"),
        "How often the tables' columns are read again."),
    key("tenant_defaults.stream.keepalive_interval", Kind::Seconds(SECOND, HOUR), Is("15"),
        "How often a stream without events gets a comment, so that nobody in between cuts it."),
    key("tenant_defaults.stream.max_connections", Kind::Int(1, 1_000_000), From("`server.max_streams`"),
        "Most open streams of a tenant in one process; one more is answered 429 `stream.tenant_too_many`."),
    key("tenant_defaults.mq.max_bytes_gb", Kind::Int(1, 1_000_000), Is("50"),
        "What a tenant may keep in the queue, in GB of compressed rows, and one table of it four fifths of that. Beyond it \
         rows are refused with 503. Dead letters have a tenth of it besides."),
];

/// The key of a path.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// Whether a path is a section: keys stand below it.
pub(crate) fn is_section(path: &str) -> bool {
    KEYS.iter().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{elsewhere::elsewhere, value::parse};
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
            if let Some(text) = key.default.text() {
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
