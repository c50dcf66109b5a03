//! Making connections: who we are is read anew for each, and none ever connects again by itself.

use super::{
    error,
    options::{Address, Login, Options, Servers, Tls},
};
use crate::{Error, Kind, Result};
use fred::{
    clients::Client,
    interfaces::ClientLike as _,
    types::{
        RespVersion,
        config::{
            ClusterDiscoveryPolicy, Config, ConnectionConfig, PerformanceConfig, Server, ServerConfig, TcpConfig,
            TlsConnector,
        },
    },
};
use parking_lot::Mutex;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::task::JoinHandle;
use wh_types::Secret;

/// Connections that were made together. Dropping it closes them.
#[derive(Debug)]
pub(super) struct Connections {
    each: Vec<Connection>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Connection {
    client: Client,
    /// What carries it; it ends when the connection does.
    carrier: Mutex<JoinHandle<std::result::Result<(), fred::error::Error>>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.carrier.get_mut().abort();
    }
}

impl Connections {
    /// One of them, in turn.
    pub(super) fn one(&self, op: &'static str) -> Result<&Client> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let connection = self.each.get(turn % self.each.len().max(1));
        // what is sent over one whose carrier ended would wait for ever
        match connection {
            Some(one) if !one.carrier.lock().is_finished() => Ok(&one.client),
            _ => Err(Error::new(op, Kind::Disconnected)),
        }
    }
}

/// Makes new connections.
pub(super) async fn dial(options: &Options) -> Result<Connections> {
    let config = config(options)?;
    let timeout = options.cache.connect_timeout;
    let connection = ConnectionConfig {
        connection_timeout: timeout,
        internal_command_timeout: timeout,
        // a write that is sent a second time could bring an old version back
        max_command_attempts: 1,
        max_redirections: 2,
        disable_cluster_health_check: true,
        tcp: TcpConfig { nodelay: Some(true), ..TcpConfig::default() },
        ..ConnectionConfig::default()
    };
    // the cache gives up sooner by itself; this keeps what it gave up on from being written much later
    let performance =
        PerformanceConfig { default_command_timeout: 10 * options.cache.timeout, ..PerformanceConfig::default() };
    let dials = (0..options.connections.clamp(1, 64)).map(|_| {
        let client = Client::new(config.clone(), Some(performance.clone()), Some(connection.clone()), None);
        async move {
            let carrier = client.init().await.map_err(|vendor| error::of("connect", &vendor))?;
            Ok(Connection { client, carrier: Mutex::new(carrier) })
        }
    });
    let each = futures::future::try_join_all(dials).await?;
    Ok(Connections { each, next: AtomicUsize::new(0) })
}

fn config(options: &Options) -> Result<Config> {
    let server = |address: &Address| Server::new(address.host.clone(), address.port);
    let servers = match &options.servers {
        Servers::Standalone(address) => ServerConfig::Centralized { server: server(address) },
        Servers::Cluster(some) => ServerConfig::Clustered {
            hosts: some.iter().map(server).collect(),
            policy: ClusterDiscoveryPolicy::default(),
        },
        Servers::Sentinel { sentinels, primary } => ServerConfig::Sentinel {
            hosts: sentinels.iter().map(server).collect(),
            service_name: primary.clone(),
            username: options.sentinel_login.user.clone(),
            password: password(&options.sentinel_login)?,
        },
    };
    let database = matches!(options.servers, Servers::Cluster(_)) || options.database == 0;
    Ok(Config {
        server: servers,
        username: options.login.user.clone(),
        password: password(&options.login)?,
        version: RespVersion::RESP2,
        database: (!database).then_some(options.database),
        tls: options.tls.as_ref().map(tls).transpose()?,
        fail_fast: true,
        ..Config::default()
    })
}

fn password(login: &Login) -> Result<Option<String>> {
    let Some(file) = &login.password_file else { return Ok(None) };
    let secret = Secret::read(file).map_err(|cause| unusable("the password's file", file).with_source(cause))?;
    Ok(Some(secret.expose().to_owned()))
}

fn unusable(what: &str, file: &Path) -> Error {
    Error::new("connect", Kind::Refused(format!("{what} cannot be used: {}", file.display()).into()))
}

fn tls(tls: &Tls) -> Result<fred::types::config::TlsConfig> {
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};
    let mut roots = rustls::RootCertStore::empty();
    match &tls.ca_file {
        Some(file) => {
            let bad = || unusable("the authorities' file", file);
            let all = CertificateDer::pem_file_iter(file).map_err(|cause| bad().with_source(cause))?;
            for certificate in all {
                let certificate = certificate.map_err(|cause| bad().with_source(cause))?;
                roots.add(certificate).map_err(|cause| bad().with_source(cause))?;
            }
        }
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    if roots.is_empty() {
        return Err(Error::new("connect", Kind::Refused("no authority is known that may have signed it".into())));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| Error::new("connect", Kind::Bug("no version of TLS".into())).with_source(cause))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(config).into())
}
