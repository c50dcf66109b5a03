//! Where a ClickHouse answers, and as whom; and the simplest way to ask it.

use crate::http;
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::time::Duration;

/// A ClickHouse's address and the user to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
    user: String,
    password: String,
    database: Option<String>,
}

impl Endpoint {
    /// The user `default` without a password.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), user: "default".into(), password: String::new(), database: None }
    }

    /// Reads `http://[user[:password]@]host:port`; user and password may be percent-encoded.
    ///
    /// # Errors
    /// It is not such a URL.
    pub fn parse(text: &str) -> Result<Self> {
        let rest = text.strip_prefix("http://").context("a ClickHouse URL starts with http://")?;
        let rest = rest.trim_end_matches('/');
        let Some((user_info, host)) = rest.rsplit_once('@') else { return Ok(Self::new(format!("http://{rest}"))) };
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        let decode = |text| percent_decode_str(text).decode_utf8().map(String::from);
        Ok(Self::new(format!("http://{host}")).user(decode(user)?, decode(password)?))
    }

    /// The same place as another user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = user.into();
        self.password = password.into();
        self
    }

    /// The same place with another default database.
    #[must_use]
    pub fn database(mut self, name: impl Into<String>) -> Self {
        self.database = Some(name.into());
        self
    }

    /// `http://host:port`, without a path.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The user's name.
    #[must_use]
    pub fn user_name(&self) -> &str {
        &self.user
    }

    /// The user's password.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
    }

    /// Runs a statement and gives its output without the last line feed. The statement is the request's body.
    ///
    /// # Errors
    /// No answer in 60 s, or an exception, also one in the middle of the output.
    ///
    /// # Cancel safety
    /// Detached: the statement may run on.
    pub async fn query(&self, sql: &str) -> Result<String> {
        let reply = self.request(None, sql.to_owned()).send().await?;
        let text = reply.text();
        let failed = !reply.status.is_success() || reply.headers.contains_key("x-clickhouse-exception-code");
        if failed || text.contains("\r\n__exception__\r\n") {
            bail!("{}: {} (of: {sql})", reply.status, text.trim_end());
        }
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// The request of a statement with data in its body, or of a statement in its body when there is no data. It is
    /// not sent yet: a test may add headers.
    pub fn request(&self, statement: Option<&str>, body: impl Into<Bytes>) -> http::Request {
        let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        let database = self.database.as_deref().unwrap_or("default");
        let mut url = format!("{}/?database={}", self.url, encode(database));
        if let Some(statement) = statement {
            url += &format!("&query={}", encode(statement));
        }
        http::post(url, body)
            .header("X-ClickHouse-User", &self.user)
            .header("X-ClickHouse-Key", &self.password)
            .timeout(Duration::from_secs(120))
    }

    /// Whether it answers its ping.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn answers(&self) -> bool {
        let ping = http::get(format!("{}/ping", self.url)).timeout(Duration::from_secs(2));
        ping.send().await.is_ok_and(|reply| reply.status.is_success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_and_without_a_user_is_read() {
        let plain = Endpoint::parse("http://127.0.0.1:8123/").unwrap();
        assert_eq!(plain, Endpoint::new("http://127.0.0.1:8123"));
        let full = Endpoint::parse("http://me:p%40ss@db:1").unwrap();
        assert_eq!((full.url(), full.user_name(), full.password()), ("http://db:1", "me", "p@ss"));
        assert!(Endpoint::parse("db:8123").is_err());
    }
}
