//! The check of a running server, as a process makes it at boot: read, judged, and the user's rights probed.

use super::{Failed, args::Span};
use crate::{error::with_causes, nats};
use clap::Args;
use std::{path::PathBuf, time::Duration};
use wh_config::{NatsCredentials, NatsQueue, NatsTls};
use wh_mq::nats::boot::{Check, Report};
use wh_nats::Connection;
use wh_topology::{Role, Spec, defaults};

/// How long the whole check may take, once connected.
const BUDGET: Duration = Duration::from_secs(60);

/// The flags of [`Access`].
pub(super) const ACCESS: [&str; 11] = [
    "creds_file",
    "nkey_seed_file",
    "user",
    "password_file",
    "token_file",
    "tls_ca_file",
    "tls_cert_file",
    "tls_key_file",
    "tls_server_name",
    "tls_handshake_first",
    "connect_timeout",
];

/// Who asks, and how it is kept secret.
#[derive(Debug, Args)]
pub(super) struct Access {
    /// With --url: a .creds file
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with_all = ["nkey_seed_file", "user", "token_file"])]
    creds_file: Option<PathBuf>,
    /// With --url: a file with the seed of a user's key
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with_all = ["user", "token_file"])]
    nkey_seed_file: Option<PathBuf>,
    /// With --url: a user, whose password stands in --password-file
    #[arg(long, value_name = "NAME", requires_all = ["url", "password_file"], conflicts_with = "token_file")]
    user: Option<String>,
    /// With --user: the file of the password
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// With --url: a file with a token
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,
    /// With --url: certificates that servers are checked against, besides the system's
    #[arg(long, value_name = "FILE", requires = "url")]
    tls_ca_file: Option<PathBuf>,
    /// With --url: our own certificate
    #[arg(long, value_name = "FILE", requires_all = ["url", "tls_key_file"])]
    tls_cert_file: Option<PathBuf>,
    /// With --tls-cert-file: its key
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_key_file: Option<PathBuf>,
    /// With --url: the name that servers' certificates are checked for, instead of the host in the URL
    #[arg(long, value_name = "NAME", requires = "url")]
    tls_server_name: Option<String>,
    /// With --url: TLS begins before the server speaks
    #[arg(long, requires = "url")]
    tls_handshake_first: bool,
    /// With --url: how long connecting may take
    #[arg(long, value_name = "SPAN", requires = "url", default_value_t = Span(defaults::CONNECT_TIMEOUT))]
    connect_timeout: Span,
}

impl Access {
    /// What the configuration would say.
    pub(super) fn queue(&self, urls: &[String], topology: Spec) -> Result<NatsQueue, Failed> {
        if urls.iter().any(|url| url.contains('@')) {
            return Err(Failed::Usage("--url must not hold credentials: they stand in files".to_owned()));
        }
        Ok(NatsQueue {
            urls: urls.to_vec(),
            name: None,
            credentials: self.credentials(),
            tls: NatsTls {
                ca_file: self.tls_ca_file.clone(),
                identity: self.tls_cert_file.clone().zip(self.tls_key_file.clone()),
                server_name: self.tls_server_name.clone(),
                handshake_first: self.tls_handshake_first,
            },
            topology,
            connect_timeout: self.connect_timeout.0,
            topology_wait: defaults::TOPOLOGY_WAIT,
            topology_recheck: defaults::TOPOLOGY_RECHECK,
        })
    }

    fn credentials(&self) -> NatsCredentials {
        match (&self.creds_file, &self.nkey_seed_file, &self.token_file, &self.user, &self.password_file) {
            (Some(file), ..) => NatsCredentials::Creds(file.clone()),
            (_, Some(file), ..) => NatsCredentials::NkeySeed(file.clone()),
            (_, _, Some(file), ..) => NatsCredentials::Token(file.clone()),
            (.., Some(user), Some(file)) => NatsCredentials::Password { user: user.clone(), file: file.clone() },
            _ => NatsCredentials::None,
        }
    }
}

/// One check; nothing on the server changes.
pub(super) fn check(nats: &NatsQueue, role: Role) -> Result<Report, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::Work(error.to_string()))?;
    runtime.block_on(async {
        let options = nats::options(nats, "wavehouse-verify");
        let connection = Connection::open(options).await.map_err(|error| Failed::Work(with_causes(&error)))?;
        let check = Check::new(&connection, &nats.topology, role);
        let report = tokio::time::timeout(BUDGET, check.run()).await;
        connection.close().await;
        match report {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(error)) => Err(Failed::Work(error.to_string())),
            Err(_) => Err(Failed::Work(format!("the servers did not answer everything within {} s", BUDGET.as_secs()))),
        }
    })
}
