//! From single values to a [`Config`]: every type, and the rules that bind several keys. Pure.

use crate::{
    Auth, ClickHouse, Config, Coord, CoordBackend, EmbeddedQueue, Ingest, Log, LogFormat, LogLevel, Mode, Mq,
    Prometheus, QueueBackend, Roles, SecretSource, TenantDefaults, boot, cache, dedupe,
    finding::Finding,
    layers::{Origin, Values},
    nats, server,
    table::find,
    value::Parsed,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};
use wh_types::{Encoding, Secret};

/// Bytes of one GB, as `mq.max_bytes_gb` counts.
const GB: u64 = 1_000_000_000;

/// The largest `ingest.held_rows`, given or worked out.
const MAX_HELD_ROWS: usize = 100_000_000;

/// Takes values by their path. A path of the wrong kind, or one the table does not have, is a fault of ours and becomes
/// a finding, which the tests of this crate would show.
pub(crate) struct Take<'a> {
    values: &'a Values,
    /// Which paths were asked for.
    pub asked: BTreeSet<&'static str>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl<'a> Take<'a> {
    pub(crate) fn new(values: &'a Values) -> Self {
        Self { values, asked: BTreeSet::new(), findings: Vec::new() }
    }

    pub(crate) fn problem(&mut self, path: &str, problem: impl Into<String>) {
        self.findings.push(Finding::error(path, problem));
    }

    pub(crate) fn get(&mut self, path: &'static str) -> Option<&'a Parsed> {
        self.asked.insert(path);
        self.values.get(path).map(|(value, _)| value)
    }

    /// Whether somebody gave it, were it the default once more.
    pub(crate) fn given(&self, path: &str) -> bool {
        self.values.get(path).is_some_and(|(_, origin)| *origin != Origin::Default)
    }

    /// Whether a key that always has a value has none: what was given failed its own check, and has its finding.
    pub(crate) fn failed(&self, path: &str) -> bool {
        let fixed = find(path).is_some_and(|key| key.default.text().is_some());
        fixed && !self.values.contains_key(path)
    }

    /// Every path that somebody gave.
    fn given_paths(&self) -> BTreeSet<&'static str> {
        self.values.keys().copied().filter(|path| self.given(path)).collect()
    }

    /// A value that failed its own check has its finding already; here it stands for nothing.
    pub(crate) fn flag(&mut self, path: &'static str) -> bool {
        matches!(self.get(path), Some(Parsed::Bool(true)))
    }

    pub(crate) fn number(&mut self, path: &'static str) -> Option<u64> {
        match self.get(path) {
            Some(Parsed::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn u64(&mut self, path: &'static str) -> u64 {
        self.number(path).unwrap_or(1)
    }

    pub(crate) fn u32(&mut self, path: &'static str) -> u32 {
        u32::try_from(self.u64(path)).unwrap_or(u32::MAX)
    }

    pub(crate) fn usize(&mut self, path: &'static str) -> usize {
        usize::try_from(self.u64(path)).unwrap_or(usize::MAX)
    }

    pub(crate) fn span(&mut self, path: &'static str) -> Duration {
        match self.get(path) {
            Some(Parsed::Span(span)) => *span,
            _ => Duration::ZERO,
        }
    }

    pub(crate) fn text(&mut self, path: &'static str) -> &'a str {
        match self.get(path) {
            Some(Parsed::Text(text)) => text,
            _ => "",
        }
    }

    pub(crate) fn words(&mut self, path: &'static str) -> &'a [String] {
        match self.get(path) {
            Some(Parsed::Words(words)) => words,
            _ => &[],
        }
    }

    /// A text that may be empty, which means none.
    pub(crate) fn optional(&mut self, path: &'static str) -> Option<&'a str> {
        Some(self.text(path)).filter(|text| !text.is_empty())
    }

    fn secret(&mut self, path: &'static str, file: &'static str) -> SecretSource {
        match (self.text(path), self.text(file)) {
            ("", "") => SecretSource::Absent,
            ("", file) => SecretSource::File(file.into()),
            (secret, "") => SecretSource::Given(Secret::from(secret)),
            _ => {
                self.problem(path, format!("is given, and {file} too: give one of them"));
                SecretSource::Absent
            }
        }
    }
}

/// Everything of a configuration. Only to be used when no finding is an error.
pub(crate) fn config(take: &mut Take<'_>) -> Config {
    let shards = take.u32("mq.embedded.shards");
    let auth = Auth {
        operator_key: take.secret("auth.operator_key", "auth.operator_key_file"),
        allow_open: take.flag("auth.allow_open"),
    };
    let (backend, nats) = (backend(take), nats::queue(take));
    let units = match backend {
        QueueBackend::Embedded => shards,
        QueueBackend::Nats => nats.topology.choices().partitions.saturating_mul(nats.topology.choices().shards),
    };
    let (roles, store) = (roles(take), dedupe::store(take, backend, &nats.topology));
    let server = server::server(take, roles, auth.allow_open);
    let max_streams = server.max_streams;
    let config = Config {
        data_dir: take.text("data_dir").into(),
        roles,
        instance_id: Some(take.text("instance_id")).filter(|id| !id.is_empty()).map(str::to_owned),
        server,
        mq: Mq {
            backend,
            embedded: EmbeddedQueue {
                shards,
                ack_wait: take.span("mq.embedded.ack_wait"),
                history: take.span("mq.embedded.history"),
                cache_bytes: take.usize("mq.embedded.cache_bytes"),
            },
            nats,
        },
        coord: coord(take),
        cache: cache::backend(take),
        dedupe: store,
        ingest: ingest(take, units),
        auth,
        prometheus: prometheus(take),
        log: Log { level: level(take.text("log.level")), format: format(take.text("log.format")) },
        tenant_defaults: TenantDefaults {
            clickhouse: clickhouse(take),
            dedupe: dedupe::rules(take),
            default_role: take.optional("tenant_defaults.default_role").map(str::to_owned),
            pipes_file: take.optional("tenant_defaults.pipes.file").map(PathBuf::from),
            default_max_rows: take.u64("tenant_defaults.query.default_max_rows"),
            cache_ttl: take.span("tenant_defaults.query.cache_ttl"),
            timestamp_bucket: take.span("tenant_defaults.query.timestamp_bucket_seconds"),
            schema_refresh_interval: take.span("tenant_defaults.schema.refresh_interval"),
            stream_keepalive_interval: take.span("tenant_defaults.stream.keepalive_interval"),
            stream_max_connections: match take.number("tenant_defaults.stream.max_connections") {
                Some(streams) => usize::try_from(streams).unwrap_or(usize::MAX),
                None => max_streams,
            },
            queue_max_bytes: take.u64("tenant_defaults.mq.max_bytes_gb").saturating_mul(GB),
        },
    };
    let shape = boot::Shape {
        roles: config.roles,
        mq: config.mq.backend,
        coord: config.coord.backend,
        given: take.given_paths(),
    };
    take.findings.extend(boot::judge(&shape));
    let rules = &config.tenant_defaults.dedupe;
    take.findings.extend(dedupe::judge(roles, config.mq.backend, &config.dedupe, rules, &shape.given));
    take.findings.extend(cache::judge(roles, config.mq.backend, &config.cache, &shape.given));
    config
}

fn backend(take: &mut Take<'_>) -> QueueBackend {
    if take.text("mq.backend") == "nats" { QueueBackend::Nats } else { QueueBackend::Embedded }
}

fn coord(take: &mut Take<'_>) -> Coord {
    let nats = take.text("coord.backend") == "nats";
    Coord { backend: if nats { CoordBackend::Nats } else { CoordBackend::Local }, lease: take.span("coord.lease") }
}

fn roles(take: &mut Take<'_>) -> Roles {
    let words = take.words("roles");
    let has = |role: &str| words.is_empty() || words.iter().any(|word| word == role);
    Roles { api: has("api"), ingest: has("ingest"), sweeper: has("sweeper") }
}

fn ingest(take: &mut Take<'_>, units: u32) -> Ingest {
    let body_budget = take.usize("ingest.body_budget");
    let ingest = Ingest {
        mode: if take.text("ingest.mode") == "lenient" { Mode::Lenient } else { Mode::Strict },
        max_body_bytes: take.usize("ingest.max_body_bytes"),
        body_budget,
        tenant_body_budget: match take.number("ingest.tenant_body_budget") {
            Some(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
            None => body_budget / 4 * 3,
        },
        max_row_bytes: take.usize("ingest.max_row_bytes"),
        encoding: if take.text("ingest.encoding") == "lz4" { Encoding::Lz4 } else { Encoding::Zstd },
        batch_rows: take.u64("ingest.batch_rows"),
        batch_bytes: take.u64("ingest.batch_bytes"),
        batch_wait: take.span("ingest.batch_wait"),
        batch_max_rows: take
            .number("ingest.batch_max_rows")
            .unwrap_or_else(|| take.u64("ingest.batch_rows").max(100_000)),
        batch_max_bytes: take
            .number("ingest.batch_max_bytes")
            .unwrap_or_else(|| take.u64("ingest.batch_bytes").max(64 << 20)),
        table_inserts: take.usize("ingest.table_inserts"),
        held_rows: match take.number("ingest.held_rows") {
            Some(rows) => usize::try_from(rows).unwrap_or(usize::MAX),
            // decision D1: never under two full batches for each unit
            None => (20_000 * units as usize).clamp(200_000, MAX_HELD_ROWS),
        },
        held_bytes: take.usize("ingest.held_bytes"),
        idempotency_window: take.span("ingest.idempotency_window"),
        dead_letters: take.flag("ingest.dead_letters"),
        insert_timeout: take.span("ingest.insert_timeout"),
        missing_table_hold: take.span("ingest.missing_table_hold"),
    };
    if ingest.max_row_bytes > ingest.max_body_bytes {
        take.problem("ingest.max_row_bytes", "must not be above ingest.max_body_bytes");
    }
    if ingest.max_body_bytes > ingest.body_budget {
        take.problem("ingest.max_body_bytes", "must not be above ingest.body_budget");
    }
    if ingest.tenant_body_budget > ingest.body_budget {
        take.problem("ingest.tenant_body_budget", "must not be above ingest.body_budget");
    }
    if ingest.batch_max_rows < ingest.batch_rows {
        take.problem("ingest.batch_max_rows", "must not be below ingest.batch_rows");
    }
    if ingest.batch_max_bytes < ingest.batch_bytes {
        take.problem("ingest.batch_max_bytes", "must not be below ingest.batch_bytes");
    }
    if (ingest.held_rows as u64) < ingest.batch_rows.saturating_mul(2) {
        take.problem("ingest.held_rows", "must be at least two batches: twice ingest.batch_rows");
    }
    ingest
}

fn prometheus(take: &mut Take<'_>) -> Prometheus {
    let path = take.text("prometheus.path");
    let ours = ["/livez", "/healthz", "/health", "/readyz", "/ready", "/version", "/v1"]
        .iter()
        .any(|taken| path.strip_prefix(taken).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    let plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte));
    if !path.is_empty() && (!path.starts_with('/') || path.len() < 2 || !plain) {
        take.problem("prometheus.path", "must be a path like \"/metrics\"");
    } else if ours {
        take.problem("prometheus.path", "is a path of another route");
    }
    Prometheus { enabled: take.flag("prometheus.enabled"), path: path.to_owned() }
}

fn level(text: &str) -> LogLevel {
    match text {
        "off" => LogLevel::Off,
        "error" => LogLevel::Error,
        "warn" => LogLevel::Warn,
        "debug" => LogLevel::Debug,
        "trace" => LogLevel::Trace,
        _ => LogLevel::Info,
    }
}

fn format(text: &str) -> LogFormat {
    if text == "json" { LogFormat::Json } else { LogFormat::Text }
}

const CH: [&str; 4] = [
    "tenant_defaults.clickhouse.url",
    "tenant_defaults.clickhouse.addr",
    "tenant_defaults.clickhouse.http_port",
    "tenant_defaults.clickhouse.http_scheme",
];

fn clickhouse(take: &mut Take<'_>) -> ClickHouse {
    ClickHouse {
        url: url(take),
        database: take.text("tenant_defaults.clickhouse.database").to_owned(),
        username: take.text("tenant_defaults.clickhouse.username").to_owned(),
        password: take.secret("tenant_defaults.clickhouse.password", "tenant_defaults.clickhouse.password_file"),
        query_timeout: take.span("tenant_defaults.clickhouse.query_timeout"),
        max_open_conns: take.usize("tenant_defaults.clickhouse.max_open_conns"),
        headers: headers(take),
    }
}

fn url(take: &mut Take<'_>) -> String {
    let [url, addr, port, scheme] = CH;
    let text = take.text(url).trim_end_matches('/');
    let (address, port_number, scheme_name) = (take.text(addr), take.u64(port), take.text(scheme));
    if text.is_empty() {
        let host = address.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map(|(host, _)| host);
        match host {
            Some(host) if !host.is_empty() && !host.contains(['/', '@']) => {
                return format!("{scheme_name}://{host}:{port_number}");
            }
            _ if address.is_empty() => {}
            _ => take.problem(addr, "must be host:port"),
        }
        return String::new();
    }
    for other in [addr, port, scheme] {
        if take.given(other) {
            take.problem(other, format!("is given, and {url} too: give one of them"));
        }
    }
    match text.parse::<http::Uri>() {
        Ok(uri) if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) => {
            take.problem(url, "must not hold credentials: they are username and password");
        }
        Ok(uri) if !matches!(uri.scheme_str(), Some("http" | "https")) => {
            take.problem(url, "must begin with http:// or https://");
        }
        Ok(uri) if uri.query().is_some() => take.problem(url, "must not hold a query"),
        Ok(_) => {}
        Err(error) => take.problem(url, format!("is no URL: {error}")),
    }
    text.to_owned()
}

fn headers(take: &mut Take<'_>) -> BTreeMap<String, Secret> {
    const PATH: &str = "tenant_defaults.clickhouse.headers";
    const OURS: [&str; 3] = ["authorization", "x-clickhouse-user", "x-clickhouse-key"];
    let Some(Parsed::Pairs(pairs)) = take.get(PATH) else { return BTreeMap::new() };
    let mut seen = BTreeSet::new();
    for (name, text) in pairs {
        let lower = name.to_ascii_lowercase();
        if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
            take.problem(PATH, format!("{name:?} is no header name"));
        } else if OURS.contains(&lower.as_str()) {
            take.problem(PATH, format!("{name} is set from username and password"));
        } else if !seen.insert(lower) {
            take.problem(PATH, format!("{name} is given twice, in other letters"));
        } else if http::HeaderValue::from_str(text).is_err() {
            take.problem(PATH, format!("the text of {name} cannot stand in a header"));
        }
    }
    pairs.iter().map(|(name, text)| (name.clone(), Secret::from(text.as_str()))).collect()
}
