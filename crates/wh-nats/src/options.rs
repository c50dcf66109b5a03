//! How to connect.

use crate::{Error, Result};
use std::{path::PathBuf, sync::Arc, time::Duration};
use wh_types::{Clock, Entropy, OsEntropy, Secret, SystemClock};

/// Everything about a connection. Build it with [`Options::new`] and change what differs.
///
/// There is no setting for how long a lost client may keep what was queued in it: nothing is kept. A client that lost
/// its server is dropped with its queue at once and replaced by another, so that a block can never be sent later than
/// its publisher believes.
#[derive(Clone, Debug)]
pub struct Options {
    /// `nats://host:port` or `tls://host:port`, at least one. Without user and password: a `@` is refused.
    pub urls: Vec<String>,
    /// What the server shows for this connection.
    pub name: String,
    /// Who we are.
    pub credentials: Credentials,
    /// How the connection is encrypted.
    pub tls: Tls,
    /// The JetStream domain, when the server that is connected to is not in it itself.
    pub js_domain: Option<String>,
    /// First part of the subjects that answers come to; the user's rights name it.
    pub inbox_prefix: String,
    /// How long one server may take to greet, and how long [`Connection::open`](crate::Connection::open) waits.
    pub connect_timeout: Duration,
    /// How long a request of the JetStream API may take.
    pub request_timeout: Duration,
    /// A silent server is asked this often and given up on after three times as long.
    pub ping_interval: Duration,
    /// How often files of credentials and certificates are looked at.
    pub watch_interval: Duration,
    /// Messages that one subscription keeps for a slow reader; the rest is dropped and counted.
    pub subscription_capacity: usize,
    /// Bytes of messages, each with [`Subscription::OVERHEAD`](crate::Subscription::OVERHEAD), that one subscription keeps
    /// for a slow reader; the rest is dropped and counted. Not of pulls, whose messages were asked for by number.
    pub subscription_bytes: usize,
    /// Clocks.
    pub clock: Arc<dyn Clock>,
    /// Randomness of names and delays.
    pub entropy: Arc<dyn Entropy>,
}

/// Who we are. At most one form.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Credentials {
    /// Nobody: the server lets everyone in, or knows us by certificate.
    #[default]
    None,
    /// A `.creds` file: a user's JWT and the seed of its key.
    CredsFile(PathBuf),
    /// A file with the seed of a user's key.
    NkeySeedFile(PathBuf),
    /// A user whose password is in a file.
    PasswordFile {
        /// The user.
        user: String,
        /// The file.
        file: PathBuf,
    },
    /// A user and a password, for tests and for programs that have their secrets from elsewhere.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A file with a token.
    TokenFile(PathBuf),
}

/// How the connection is encrypted. TLS is used when the server asks for it, when a url says `tls://`, and when
/// `required` is set.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// PEM file of the authorities that may have signed the server's certificate; the system's where none is given.
    pub ca_file: Option<PathBuf>,
    /// PEM file of our certificate and what leads to its authority; comes with `key_file`.
    pub cert_file: Option<PathBuf>,
    /// PEM file of the certificate's key.
    pub key_file: Option<PathBuf>,
    /// The name that must stand in the server's certificate, where it is not the host of the url.
    pub server_name: Option<String>,
    /// Do not connect without TLS.
    pub required: bool,
    /// Encrypt before the server greets; the server must be set so, too.
    pub handshake_first: bool,
}

impl Options {
    /// Options for these servers, with nothing else set.
    pub fn new<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Self {
        Self {
            urls: urls.into_iter().map(Into::into).collect(),
            name: "wavehouse".into(),
            credentials: Credentials::None,
            tls: Tls::default(),
            js_domain: None,
            inbox_prefix: "_INBOX_wh".into(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(2),
            ping_interval: Duration::from_secs(2),
            watch_interval: Duration::from_secs(5),
            subscription_capacity: 65_536,
            subscription_bytes: 64 << 20,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
        }
    }

    /// Everything that can be said without reading a file or opening a connection.
    pub(crate) fn check(&self) -> Result<Vec<async_nats::ServerAddr>> {
        if self.urls.is_empty() {
            return Err(Error::config("urls: at least one server is needed"));
        }
        let prefix = &self.inbox_prefix;
        let token = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !prefix.split('.').all(token) {
            return Err(Error::config(format!("inbox_prefix: {prefix:?} is no subject")));
        }
        if let Some(domain) = self.js_domain.as_deref().filter(|domain| !token(domain)) {
            return Err(Error::config(format!(
                "js_domain: {domain:?} has other characters than letters, digits, - and _"
            )));
        }
        if self.tls.cert_file.is_some() != self.tls.key_file.is_some() {
            return Err(Error::config("tls: a certificate and its key come together"));
        }
        let times = [self.connect_timeout, self.request_timeout, self.ping_interval, self.watch_interval];
        if times.iter().any(Duration::is_zero) || self.subscription_capacity == 0 || self.subscription_bytes == 0 {
            return Err(Error::config("times and capacities must be above 0"));
        }
        self.urls.iter().map(|url| address(url)).collect()
    }
}

fn address(url: &str) -> Result<async_nats::ServerAddr> {
    let shown = masked(url);
    if url.contains('@') {
        return Err(Error::config(format!("urls: {shown}: user and password belong into files, not into the url")));
    }
    let address: async_nats::ServerAddr =
        url.parse().map_err(|cause| Error::config(format!("urls: {shown}: not a server's address")).caused(cause))?;
    if !matches!(address.scheme(), "nats" | "tls") || address.host().is_empty() {
        return Err(Error::config(format!("urls: {shown}: must be nats://host:port or tls://host:port")));
    }
    Ok(address)
}

/// A url as it may be shown: what stands before the host is masked.
#[must_use]
pub fn masked(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let rest = rest.rsplit_once('@').map_or_else(|| rest.to_owned(), |(_, host)| format!("***@{host}"));
    if scheme.is_empty() { rest } else { format!("{scheme}://{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::new(["nats://127.0.0.1:4222"]);
        change(&mut options);
        let error = options.check().unwrap_err();
        assert!(matches!(error.kind(), crate::Kind::Config(_)), "{error:?}");
        format!("{error} {error:?}")
    }

    #[test]
    fn passwords_in_urls_are_refused_and_not_shown() {
        for url in ["nats://joe:hush@h:4222", "nats://hush@h", "joe:hush@h", "tls://a:hush@b@h"] {
            let text = refused(|options| options.urls = vec![url.into()]);
            assert!(!text.contains("hush") && text.contains("***@h"), "{text}");
        }
        assert_eq!(masked("nats://joe:hush@h:4222"), "nats://***@h:4222");
        assert_eq!(masked("nats://h:4222"), "nats://h:4222");
        assert_eq!(masked("joe:hush@h"), "***@h");
    }

    #[test]
    fn options_that_cannot_work_are_named() {
        let expected = [
            ("at least one", refused(|options| options.urls.clear())),
            ("must be nats://", refused(|options| options.urls = vec!["ws://h:80".into()])),
            ("not a server's address", refused(|options| options.urls = vec!["http://h".into()])),
            ("inbox_prefix", refused(|options| options.inbox_prefix = "a b".into())),
            ("js_domain", refused(|options| options.js_domain = Some("a.b".into()))),
            ("come together", refused(|options| options.tls.cert_file = Some("x".into()))),
            ("above 0", refused(|options| options.ping_interval = Duration::ZERO)),
        ];
        for (says, text) in expected {
            assert!(text.contains(says), "{says}: {text}");
        }
        assert_eq!(Options::new(["h", "tls://h:1"]).check().unwrap().len(), 2);
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut options = Options::new(["nats://h"]);
        options.credentials = Credentials::Password { user: "joe".into(), password: "hush".into() };
        assert!(!format!("{options:?}").contains("hush"));
    }
}
