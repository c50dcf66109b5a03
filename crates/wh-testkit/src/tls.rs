//! TLS for servers that have none: certificates of a test's own, and a proxy that ends TLS in front of a plain port with
//! whichever certificate it is told to show.

use crate::free_port;
use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use std::{fmt, sync::Arc};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;
use wh_types::{Stop, Tasks};

/// Who signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// What a server shows, with its key.
pub struct Certificate {
    chain: CertificateDer<'static>,
    key: Vec<u8>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").finish_non_exhaustive()
    }
}

impl Authority {
    /// A new one, trusted by nobody yet.
    ///
    /// # Errors
    /// No key could be made.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem })
    }

    /// Its own certificate, for those who are to trust it.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a name or an address.
    ///
    /// # Errors
    /// It is no name.
    pub fn sign(&self, name: &str) -> Result<Certificate> {
        self.certificate(name, |_| {})
    }

    /// One whose time is over.
    ///
    /// # Errors
    /// As [`Self::sign`].
    pub fn sign_expired(&self, name: &str) -> Result<Certificate> {
        self.certificate(name, |params| {
            (params.not_before, params.not_after) = (date_time_ymd(2019, 1, 1), date_time_ymd(2020, 1, 1));
        })
    }

    fn certificate(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Result<Certificate> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let key = KeyPair::generate()?;
        let chain = params.signed_by(&key, &self.issuer)?.der().clone();
        Ok(Certificate { chain, key: key.serialize_der() })
    }
}

impl Certificate {
    fn server(&self) -> Result<Arc<ServerConfig>> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.chain.clone()], key)?;
        Ok(Arc::new(config))
    }
}

/// A running proxy. Dropping it ends its connections and frees its port.
#[derive(Debug)]
pub struct Terminator {
    port: u16,
    shown: watch::Sender<Arc<ServerConfig>>,
    stop: Stop,
}

impl Drop for Terminator {
    fn drop(&mut self) {
        self.stop.give();
    }
}

impl Terminator {
    /// In front of a port on 127.0.0.1.
    ///
    /// # Errors
    /// The certificate cannot be used, or no port is free.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn start(upstream: u16, certificate: &Certificate) -> Result<Self> {
        let port = free_port()?;
        let listener = TcpListener::bind(("127.0.0.1", port)).await.context("the proxy's port is taken")?;
        let (shown, seen) = watch::channel(certificate.server()?);
        let (stop, tasks) = (Stop::new(), Tasks::new());
        drop(tasks.spawn("tls proxy", accept(listener, upstream, seen, stop.clone(), tasks.clone())));
        Ok(Self { port, shown, stop })
    }

    /// `https://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Shows another certificate from now on. Connections that saw the one before are cut.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn show(&self, certificate: &Certificate) -> Result<()> {
        self.shown.send_replace(certificate.server()?);
        Ok(())
    }
}

async fn accept(
    listener: TcpListener,
    upstream: u16,
    shown: watch::Receiver<Arc<ServerConfig>>,
    stop: Stop,
    tasks: Tasks,
) {
    loop {
        let client = tokio::select! {
            () = stop.wait() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((client, _)) = client else { continue };
        let (stop, mut shown) = (stop.clone(), shown.clone());
        let config = shown.borrow_and_update().clone();
        let connection = async move {
            tokio::select! {
                () = stop.wait() => {}
                _ = shown.changed() => {}
                // how a connection ends is for its ends to say
                _ = pass(client, upstream, config) => {}
            }
        };
        drop(tasks.spawn("tls connection", connection));
    }
}

async fn pass(client: TcpStream, upstream: u16, config: Arc<ServerConfig>) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let mut client = TlsAcceptor::from(config).accept(client).await?;
    let mut server = TcpStream::connect(("127.0.0.1", upstream)).await?;
    server.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
