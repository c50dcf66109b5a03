//! The settings of kept answers: where they are kept, and in what bounds. Nothing opens here.

use crate::{Finding, QueueBackend, Roles, nats::openable, resolve::Take};
use std::{collections::BTreeSet, path::PathBuf, time::Duration};
use wh_types::Secret;

const BACKEND: &str = "cache.backend";
const BYTES: &str = "cache.memory.bytes";
const ADDRS: &str = "cache.redis.addrs";
const MODE: &str = "cache.redis.mode";
const PRIMARY: &str = "cache.redis.sentinel_primary";
const SENTINEL_PASSWORD: &str = "cache.redis.sentinel_password_file";
const PASSWORD: &str = "cache.redis.password_file";
const DB: &str = "cache.redis.db";
const TLS: &str = "cache.redis.tls.enabled";
const CA: &str = "cache.redis.tls.ca_file";
const PREFIX: &str = "cache.redis.key_prefix";

/// Answers of the largest size that there is room for in memory, and what each takes beside its bytes.
const ROOM: u64 = 8;
const BESIDE: u64 = 2 << 10;

/// Where answers of queries are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheBackend {
    /// Nowhere.
    None,
    /// In this process.
    Memory(MemoryCache),
    /// On Redis or Valkey, which processes share.
    Redis(Box<RedisCache>),
}

impl CacheBackend {
    /// As it is written.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Memory(_) => "memory",
            Self::Redis(_) => "redis",
        }
    }
}

/// Answers kept in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryCache {
    /// What all of them may take, in bytes.
    pub bytes: u64,
    /// The largest one that is kept, in bytes.
    pub max_value_bytes: usize,
}

/// Answers kept on Redis or Valkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisCache {
    /// `host:port` of servers, nodes or sentinels; at least one.
    pub addrs: Vec<String>,
    /// How they stand together.
    pub mode: RedisMode,
    /// Who we are there.
    pub login: RedisLogin,
    /// Who we are to sentinels.
    pub sentinel_login: RedisLogin,
    /// Which database.
    pub database: u8,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// Certificates that the servers' are checked against; the system's where none are given.
    pub ca_file: Option<PathBuf>,
    /// Connections side by side.
    pub connections: usize,
    /// What every name begins with.
    pub key_prefix: String,
    /// How long an operation may take.
    pub timeout: Duration,
    /// How long connecting may take.
    pub dial_timeout: Duration,
    /// The largest answer that is kept, in bytes, before it is packed.
    pub max_value_bytes: usize,
    /// From which size answers are packed; `None`: never.
    pub compress_min_bytes: Option<usize>,
    /// How long a version is remembered.
    pub version_ttl: Duration,
}

/// How servers stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisMode {
    /// One server.
    Standalone,
    /// A cluster, of which some nodes are named.
    Cluster,
    /// A primary of this name that the named sentinels choose.
    Sentinel(String),
}

/// Who we are. The file is read again for each new connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisLogin {
    /// The user; the default one where there is none.
    pub username: Option<String>,
    /// The file that holds the password.
    pub password_file: Option<PathBuf>,
}

/// The backend.
pub(crate) fn backend(take: &mut Take<'_>) -> CacheBackend {
    let memory = MemoryCache { bytes: take.u64(BYTES), max_value_bytes: take.usize("cache.memory.max_value_bytes") };
    let word = take.text(BACKEND);
    let redis = redis(take, word == "redis");
    match word {
        "none" => CacheBackend::None,
        "redis" => CacheBackend::Redis(Box::new(redis)),
        _ => {
            if !take.failed(BYTES) && memory.bytes / ROOM < memory.max_value_bytes as u64 + BESIDE {
                let problem = "must be at least eight times cache.memory.max_value_bytes, and 16 KiB";
                take.problem(BYTES, problem);
            }
            CacheBackend::Memory(memory)
        }
    }
}

fn redis(take: &mut Take<'_>, used: bool) -> RedisCache {
    let addrs = take.words(ADDRS).to_vec();
    let primary = take.optional(PRIMARY);
    let mode = match take.text(MODE) {
        "cluster" => RedisMode::Cluster,
        "sentinel" => RedisMode::Sentinel(primary.unwrap_or_default().to_owned()),
        _ => RedisMode::Standalone,
    };
    let mut login = |user: &'static str, file: &'static str| RedisLogin {
        username: take.optional(user).map(str::to_owned),
        password_file: take.optional(file).map(PathBuf::from),
    };
    let sentinel_login = login("cache.redis.sentinel_username", SENTINEL_PASSWORD);
    let login = login("cache.redis.username", PASSWORD);
    let redis = RedisCache {
        mode,
        login,
        sentinel_login,
        database: u8::try_from(take.u64(DB)).unwrap_or(u8::MAX),
        tls: take.flag(TLS),
        ca_file: take.optional(CA).map(PathBuf::from),
        connections: take.usize("cache.redis.connections"),
        key_prefix: take.text(PREFIX).to_owned(),
        timeout: take.span("cache.redis.timeout"),
        dial_timeout: take.span("cache.redis.dial_timeout"),
        max_value_bytes: take.usize("cache.redis.max_value_bytes"),
        compress_min_bytes: Some(take.usize("cache.redis.compress_min_bytes")).filter(|least| *least > 0),
        version_ttl: take.span("cache.redis.version_ttl"),
        addrs,
    };
    if used {
        check(take, &redis);
    }
    redis
}

fn check(take: &mut Take<'_>, redis: &RedisCache) {
    if redis.addrs.is_empty() && !take.failed(ADDRS) {
        take.problem(ADDRS, "is needed with cache.backend: redis: name at least one host:port");
    }
    for (index, addr) in redis.addrs.iter().enumerate() {
        // a bad entry is not repeated: it may hold a password
        if !is_address(addr) {
            take.problem(ADDRS, format!("entry {} must be like host:6379, without a scheme or credentials", index + 1));
        }
    }
    match &redis.mode {
        RedisMode::Standalone if redis.addrs.len() > 1 => {
            take.problem(ADDRS, "names more than one server, and cache.redis.mode is standalone");
        }
        RedisMode::Cluster if redis.database != 0 => take.problem(DB, "must be 0: a cluster has no other"),
        RedisMode::Sentinel(primary) if primary.is_empty() => {
            take.problem(PRIMARY, "is needed with cache.redis.mode: sentinel: what sentinels call the primary");
        }
        RedisMode::Standalone | RedisMode::Cluster | RedisMode::Sentinel(_) => {}
    }
    if redis.ca_file.is_some() && !redis.tls {
        take.problem(CA, "needs cache.redis.tls.enabled");
    }
    let name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    if !take.failed(PREFIX) && (redis.key_prefix.len() > 64 || !redis.key_prefix.bytes().all(name)) {
        take.problem(PREFIX, "must be 1 to 64 of A-Z a-z 0-9 _ - . :");
    }
}

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let usable = !bare.is_empty() && !bare.contains(['/', '@', ' ']);
    usable && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// The combinations that hardly work as meant, and the keys without effect.
pub(crate) fn judge(
    roles: Roles,
    mq: QueueBackend,
    cache: &CacheBackend,
    given: &BTreeSet<&'static str>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut ignored = |section: &str, why: &str| {
        let below =
            |path: &&&str| path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let all = given.iter().filter(below);
        findings.extend(all.map(|path| Finding::warning(*path, format!("has no effect: {why}"))));
    };
    if !matches!(cache, CacheBackend::Memory(_)) {
        ignored("cache.memory", "cache.backend is another");
    }
    if !matches!(cache, CacheBackend::Redis(_)) {
        ignored("cache.redis", "cache.backend is another");
    }
    if roles.api && *cache == CacheBackend::None {
        ignored("tenant_defaults.query.cache_ttl", "cache.backend is none");
    }
    let memory = matches!(cache, CacheBackend::Memory(_));
    if memory && mq == QueueBackend::Nats && roles.api && given.contains(BACKEND) {
        let text = "memory is of this process alone, and other processes insert: answers live for 10 s at most";
        findings.push(Finding::warning(BACKEND, text).hint("cache.backend: redis is shared"));
    }
    findings
}

/// What is wrong with the files it names. They are read once, to see that they can be.
pub(crate) fn unreadable(cache: &CacheBackend) -> Vec<Finding> {
    let CacheBackend::Redis(redis) = cache else { return Vec::new() };
    let logins = [(PASSWORD, &redis.login), (SENTINEL_PASSWORD, &redis.sentinel_login)];
    let of_secrets = logins.into_iter().filter_map(|(path, login)| {
        let file = login.password_file.as_ref()?;
        let error = Secret::read(file).err()?;
        Some(Finding::error(path, format!("cannot be read: {error}")))
    });
    let of_tls = redis.ca_file.iter().filter_map(|file| {
        let problem = openable(file).err()?;
        Some(Finding::error(CA, format!("cannot be read: {}: {problem}", file.display())))
    });
    of_secrets.chain(of_tls).collect()
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
