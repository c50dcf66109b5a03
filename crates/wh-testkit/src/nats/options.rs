//! How a server is set up: release, users, domain.

use crate::servers::NATS_VERSIONS;
use std::path::Path;

/// The user who may do everything in the account.
pub const OPERATOR: &str = "operator";
/// Every user's password.
pub const PASSWORD: &str = "secret";
/// A line for [`Options::lines`]: acks carry domain and account, as later releases will have it.
pub const ACK_V2: &str = "feature_flags { js_ack_fc_v2: true }";

/// A user of the one account.
#[derive(Clone, Debug)]
pub struct User {
    /// Its name; the password is [`PASSWORD`].
    pub name: String,
    /// Its `permissions { … }` block; empty for everything.
    pub permissions: String,
}

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// One of [`NATS_VERSIONS`].
    pub version: &'static str,
    /// Users, all in one account with JetStream. Without any, everybody may do everything and nobody logs in.
    pub users: Vec<User>,
    /// The JetStream domain.
    pub domain: Option<String>,
    /// Further lines of the `jetstream` block.
    pub jetstream: String,
    /// Further lines of the configuration file.
    pub lines: String,
}

impl Default for Options {
    fn default() -> Self {
        let (jetstream, lines) = ("max_file_store: 8G".to_owned(), String::new());
        Self { version: NATS_VERSIONS[0], users: Vec::new(), domain: None, jetstream, lines }
    }
}

impl Options {
    /// A release, else the oldest supported.
    #[must_use]
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// A user with a `permissions { … }` block, as `Rights::print` makes it. The first one brings [`OPERATOR`] along.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, permissions: impl Into<String>) -> Self {
        if self.users.is_empty() {
            self.users.push(User { name: OPERATOR.to_owned(), permissions: String::new() });
        }
        self.users.push(User { name: name.into(), permissions: permissions.into() });
        self
    }

    /// A JetStream domain.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }

    /// Further lines of the configuration file.
    #[must_use]
    pub fn lines(mut self, lines: &str) -> Self {
        self.lines.push_str(lines);
        self.lines.push('\n');
        self
    }

    /// The user that an operator logs in as; `None` where nobody does.
    pub(super) fn operator(&self) -> Option<&'static str> {
        (!self.users.is_empty()).then_some(OPERATOR)
    }

    /// The configuration file of a server on `port` with its data in `folder`.
    #[must_use]
    pub fn file(&self, port: u16, folder: &Path) -> String {
        let store = folder.join("jetstream");
        let domain = self.domain.as_ref().map(|domain| format!("domain: {domain}")).unwrap_or_default();
        let jetstream = format!("jetstream {{ store_dir: {store:?}\n{domain}\n{}\n}}", self.jetstream);
        format!("listen: \"127.0.0.1:{port}\"\n{jetstream}\n{}\n{}\n", self.accounts(), self.lines)
    }

    /// The accounts block; empty without users.
    fn accounts(&self) -> String {
        if self.users.is_empty() {
            return String::new();
        }
        let user =
            |user: &User| format!("{{ user: {:?}, password: {PASSWORD:?}\n{}\n}}\n", user.name, user.permissions);
        let users: String = self.users.iter().map(user).collect();
        format!("accounts {{ WAVEHOUSE {{ jetstream: enabled\nusers: [\n{users}] }} }}")
    }
}
