//! Where ClickHouse is and how it is spoken to. Not read from anywhere here: the configuration fills it in.

use crate::{Error, Kind, Result, error::Purpose};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use std::time::Duration;
use wh_types::Secret;

/// How a [`Client`](crate::Client) reaches one ClickHouse as one user in one database.
#[derive(Clone, Debug)]
pub struct Options {
    /// `http://host[:port][/path]`; without a port 8123. `https` needs the feature `tls` (port 8443). Credentials and
    /// queries in it are refused: they have fields of their own.
    pub url: String,
    /// The database that unqualified names mean.
    pub database: String,
    /// Who we are. Empty sends no credentials, which is for ClickHouse the user `default` without a password.
    pub user: String,
    /// The user's password.
    pub password: Option<Secret>,
    /// Further headers of every request, for a proxy in between. Those that this client sends itself are refused.
    pub headers: Vec<(String, Secret)>,
    /// Most time for one TCP (and TLS) set-up.
    pub connect_timeout: Duration,
    /// Most time for an insert or execute, and for a query that names none: from the wait for a connection to the last
    /// byte read.
    pub request_timeout: Duration,
    /// An unused connection is closed after this. Keep it below the server's `keep_alive_timeout` (3 s before 23.11,
    /// then 10, now 30 s): a request that meets a closing connection has an unknown outcome.
    pub idle_timeout: Duration,
    /// Most requests in flight; more wait in the order they came. Fairness between inserts and queries is the
    /// callers': give each its own client.
    pub max_connections: usize,
    /// Have answers compressed with zstd. Off by default: next to the server it costs both ends more than it saves.
    pub compress: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:8123".into(),
            database: "default".into(),
            user: String::new(),
            password: None,
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(2),
            max_connections: 100,
            compress: false,
        }
    }
}

/// Headers that the client sets itself.
const OURS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "x-clickhouse-database",
    "x-clickhouse-format",
    "x-clickhouse-key",
    "x-clickhouse-user",
];

/// Options that were checked, in the form that requests need.
#[derive(Debug)]
pub(crate) struct Target {
    /// Scheme, host and port.
    pub(crate) origin: String,
    /// The path, ending in `/`.
    pub(crate) path: String,
    /// Credentials and further headers.
    pub(crate) headers: HeaderMap,
}

impl Options {
    pub(crate) fn target(&self) -> Result<Target> {
        let (scheme, authority, path) = self.parts()?;
        if self.database.is_empty() || self.database.contains('\0') {
            return Err(refused("database", "is empty or holds a NUL character"));
        }
        if self.max_connections == 0 {
            return Err(refused("max_connections", "must be at least 1"));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let parsed =
                HeaderName::try_from(name.as_str()).map_err(|_| refused("headers", "a name is no HTTP name"))?;
            if OURS.contains(&parsed.as_str()) {
                return Err(refused("headers", format!("{parsed} is set by the client itself")));
            }
            headers.append(parsed, secret_value(value.expose(), "headers")?);
        }
        if !self.user.is_empty() {
            headers.insert("x-clickhouse-user", secret_value(&self.user, "user")?);
            if let Some(password) = &self.password {
                headers.insert("x-clickhouse-key", secret_value(password.expose(), "password")?);
            }
        } else if self.password.is_some() {
            return Err(refused("user", "is empty, but there is a password"));
        }
        Ok(Target { origin: format!("{scheme}://{authority}"), path, headers })
    }

    fn parts(&self) -> Result<(String, String, String)> {
        // the text itself is never quoted: someone may have put a password into it
        let uri: Uri = self.url.parse().map_err(|_| refused("url", "is no URL of the form http://host:port"))?;
        let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return Err(refused("url", "needs a scheme and a host: http://host:port"));
        };
        let port = match scheme {
            "http" => 8123,
            "https" if cfg!(feature = "tls") => 8443,
            "https" => return Err(refused("url", "https is not built in: build with the feature `tls`")),
            _ => return Err(refused("url", "the scheme must be http or https")),
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(refused("url", "must not hold credentials: give user and password by themselves"));
        }
        if uri.query().is_some() {
            return Err(refused("url", "must not hold a query: settings go with the requests"));
        }
        let path = uri.path();
        let path = if path.ends_with('/') { path.to_owned() } else { format!("{path}/") };
        Ok((scheme.to_owned(), format!("{host}:{}", uri.port_u16().unwrap_or(port)), path))
    }
}

fn refused(option: &str, reason: impl std::fmt::Display) -> Error {
    Error::new(Kind::Invalid, Purpose { op: "options", effect: false }, format!("{option} {reason}"))
}

fn secret_value(text: &str, option: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| refused(option, "holds a character that no HTTP header can carry"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(url: &str) -> Result<Target> {
        Options { url: url.into(), ..Options::default() }.target()
    }

    #[test]
    fn an_address_has_a_port_and_a_path() {
        for (text, origin, path) in [
            ("http://ch", "http://ch:8123", "/"),
            ("http://ch:80/", "http://ch:80", "/"),
            ("http://[::1]:9/proxy", "http://[::1]:9", "/proxy/"),
        ] {
            let target = url(text).unwrap();
            assert_eq!((&*target.origin, &*target.path), (origin, path));
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_reason_and_without_its_secret() {
        for (text, reason) in [
            ("ch:8123", "scheme"),
            ("", "url"),
            ("ftp://ch", "scheme"),
            ("http://u:hush@ch", "credentials"),
            ("http://ch/?password=hush", "query"),
            ("http://u:hush @ch", "no URL"),
        ] {
            let error = url(text).unwrap_err();
            assert!(error.message().contains(reason) && error.kind() == Kind::Invalid, "{text}: {error}");
            assert!(!format!("{error} {error:?}").contains("hush"));
        }
        #[cfg(not(feature = "tls"))]
        assert!(url("https://ch").unwrap_err().message().contains("`tls`"));
        let base = Options::default;
        for (options, named) in [
            (Options { database: String::new(), ..base() }, "database"),
            (Options { max_connections: 0, ..base() }, "max_connections"),
            (Options { user: "a\nb".into(), ..base() }, "user"),
            (Options { password: Some("p".into()), ..base() }, "user"),
            (Options { user: "u".into(), password: Some("hush\n".into()), ..base() }, "password"),
            (Options { headers: vec![("X-ClickHouse-Key".into(), "hush".into())], ..base() }, "headers"),
            (Options { headers: vec![("a b".into(), "hush".into())], ..base() }, "headers"),
        ] {
            let error = options.target().unwrap_err();
            assert!(error.message().starts_with(named), "{error}");
            assert!(!format!("{error} {error:?}").contains("hush"));
        }
    }
}
