//! Where the servers are and who we are there.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{Error, Kind};

/// How a cache on Redis or Valkey is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which servers.
    pub servers: Servers,
    /// Who we are there.
    pub login: Login,
    /// Who we are to sentinels; they know nobody unless they were told to.
    pub sentinel_login: Login,
    /// Encrypted connections; plain ones where there is none.
    pub tls: Option<Tls>,
    /// Which database; a cluster has only 0.
    pub database: u8,
    /// How many connections are used side by side (to each node of a cluster).
    pub connections: usize,
    /// What every cache over a shared store has.
    pub cache: crate::Options,
}

impl Options {
    /// Two plain connections, nobody in particular, database 0.
    #[must_use]
    pub fn new(servers: Servers, cache: crate::Options) -> Self {
        let nobody = Login::default;
        Self { servers, login: nobody(), sentinel_login: nobody(), tls: None, database: 0, connections: 2, cache }
    }
}

/// How servers stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Servers {
    /// One server, or an address behind which somebody else chooses it.
    Standalone(Address),
    /// A cluster: some of its nodes, which name the others.
    Cluster(Vec<Address>),
    /// A primary that sentinels choose.
    Sentinel {
        /// The sentinels.
        sentinels: Vec<Address>,
        /// What they call the primary.
        primary: String,
    },
}

/// `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || Error::new("address", Kind::Invalid(format!("{text:?} is not host:port").into()));
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let usable = !bare.is_empty() && !bare.contains(['/', '@', ' ']);
        let port = port.parse().ok().filter(|port| *port > 0 && usable).ok_or_else(invalid)?;
        Ok(Self { host: bare.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Who we are. The password's file is read for each new connection, so that a changed one needs no restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The user of the server's access list; the default one where there is none.
    pub user: Option<String>,
    /// The file with the password; none is sent where there is none.
    pub password_file: Option<PathBuf>,
}

impl Login {
    /// A user with a password in a file.
    #[must_use]
    pub fn new(user: Option<&str>, password_file: &Path) -> Self {
        Self { user: user.map(str::to_owned), password_file: Some(password_file.to_owned()) }
    }
}

/// How connections are encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// PEM file of the authorities that may have signed the server's certificate; the system's where none is given.
    pub ca_file: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_host_and_port() {
        let parse = |text: &str| text.parse::<Address>().map(|address| (address.host, address.port)).ok();
        assert_eq!(parse("cache.internal:6379"), Some(("cache.internal".into(), 6379)));
        assert_eq!(parse("[::1]:6379"), Some(("::1".into(), 6379)));
        for bad in ["", "host", ":6379", "host:", "host:0", "host:65536", "redis://host:6379", "user@host:6379"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
