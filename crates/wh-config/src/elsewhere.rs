//! Keys that other versions' files have and this one does not: what to say about each.

/// Keys of upstream's files that this version does not take, by the first part of their path, with what to say.
pub(crate) const ELSEWHERE: &[(&str, &str)] = &[
    ("cache.l1_max_cost", "its size is cache.memory.bytes here"),
    ("cache.redis.password", "it stands in a file: name that in cache.redis.password_file"),
    ("cache.redis.tls.cert_file", LATER),
    ("cache.redis.tls.key_file", LATER),
    ("cache.redis.tls.server_name", "certificates are checked for the address: remove it"),
    ("cache.redis.tls.insecure_skip_verify", "certificates are always checked: remove it"),
    ("dedupe.dynamodb.max_attempts", "attempts follow from dedupe.dynamodb.timeout: remove it"),
    ("dedupe.dynamodb.retry_mode", "attempts are counted here: remove it"),
    ("mq.nats.password", "it stands in a file: name that in mq.nats.password_file"),
    ("mq.nats.token", "it stands in a file: name that in mq.nats.token_file"),
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
    ("tenant_defaults.dlq", LATER),
    ("tenant_defaults.stream.keepalive_buckets", "keep-alives are spread without it: remove it"),
    ("tenant_defaults.stream.gap_window_minutes", "its duration is mq.embedded.history here"),
];

const LATER: &str = "this version does not have it yet: remove it";

/// What to say about a path that upstream knows and we do not.
pub(crate) fn elsewhere(path: &str) -> Option<&'static str> {
    let below = |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    ELSEWHERE.iter().find(|(prefix, _)| below(prefix)).map(|(_, say)| *say)
}
