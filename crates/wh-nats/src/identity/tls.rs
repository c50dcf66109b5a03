//! Certificates: ours and those we trust. A connection takes them as they are when its handshake begins.

use super::files;
use crate::{Error, Result, options::Tls};
use arc_swap::ArcSwap;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        ResolvesClientCert, Resumption, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    sign::CertifiedKey,
};
use std::{fmt, path::Path, sync::Arc};

/// The certificates as they are now.
#[derive(Debug)]
pub(super) struct Certificates {
    provider: Arc<CryptoProvider>,
    trusted: ArcSwap<Trusted>,
    own: ArcSwap<Own>,
}

#[derive(Debug)]
struct Trusted {
    /// None where nobody is trusted.
    verifier: Option<Arc<WebPkiServerVerifier>>,
    file: Vec<u8>,
}

/// Our certificate, with the bytes it was read from.
struct Own {
    key: Option<Arc<CertifiedKey>>,
    cert_file: Vec<u8>,
    key_file: wh_types::Secret,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").field("given", &self.key.is_some()).finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads and checks them. Where TLS is not certain, the system's roots may be missing.
    pub(super) fn read(tls: &Tls, certain: bool) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trusted = ArcSwap::from_pointee(trusted(&provider, tls, certain)?);
        let own = ArcSwap::from_pointee(own(&provider, tls)?);
        Ok(Self { provider, trusted, own })
    }

    /// Reads them again; all of them are taken, or none. Says whether anything changed.
    pub(super) fn reread(&self, tls: &Tls, certain: bool) -> Result<bool> {
        let (trusted, own) = (trusted(&self.provider, tls, certain)?, own(&self.provider, tls)?);
        let before = self.own.load();
        let same_own = own.cert_file == before.cert_file && own.key_file.expose() == before.key_file.expose();
        let changed = !same_own || trusted.file != self.trusted.load().file;
        if changed {
            self.trusted.store(Arc::new(trusted));
            self.own.store(Arc::new(own));
        }
        Ok(changed)
    }
}

fn refuse(what: &str, file: &Path, why: impl fmt::Display) -> Error {
    Error::config(format!("tls.{what} {}: {why}", file.display()))
}

fn trusted(provider: &Arc<CryptoProvider>, tls: &Tls, certain: bool) -> Result<Trusted> {
    let mut roots = RootCertStore::empty();
    let mut bytes = Vec::new();
    if let Some(file) = &tls.ca_file {
        bytes = files::read(file).map_err(|cause| refuse("ca_file", file, "cannot be read").caused(cause))?;
        for certificate in CertificateDer::pem_slice_iter(&bytes) {
            let certificate = certificate.map_err(|cause| refuse("ca_file", file, "is no PEM").caused(cause))?;
            roots.add(certificate).map_err(|cause| refuse("ca_file", file, "has a bad certificate").caused(cause))?;
        }
        if roots.is_empty() {
            return Err(refuse("ca_file", file, "has no certificate"));
        }
    } else {
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() && certain {
            return Err(Error::config("tls: the system has no root certificates; name a ca_file"));
        }
        if roots.is_empty() {
            // nobody is trusted: TLS, if a server asks for it, fails
            return Ok(Trusted { verifier: None, file: bytes });
        }
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|cause| Error::config("tls: the trusted certificates cannot be used").caused(cause))?;
    Ok(Trusted { verifier: Some(verifier), file: bytes })
}

fn own(provider: &CryptoProvider, tls: &Tls) -> Result<Own> {
    let (Some(cert_path), Some(key_path)) = (&tls.cert_file, &tls.key_file) else {
        return Ok(Own { key: None, cert_file: Vec::new(), key_file: wh_types::Secret::default() });
    };
    let unreadable = |what, file: &Path, cause: std::io::Error| refuse(what, file, "cannot be read").caused(cause);
    let cert_file = files::read(cert_path).map_err(|cause| unreadable("cert_file", cert_path, cause))?;
    let key_bytes = files::read(key_path).map_err(|cause| unreadable("key_file", key_path, cause))?;
    let chain = CertificateDer::pem_slice_iter(&cert_file)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|cause| refuse("cert_file", cert_path, "is no PEM").caused(cause))?;
    if chain.is_empty() {
        return Err(refuse("cert_file", cert_path, "has no certificate"));
    }
    let key = PrivateKeyDer::from_pem_slice(&key_bytes).map_err(|_| refuse("key_file", key_path, "has no key"))?;
    let key = provider
        .key_provider
        .load_private_key(key)
        .map_err(|_| refuse("key_file", key_path, "has a key of a kind that cannot be used"))?;
    let certified = CertifiedKey::new(chain, key);
    if let Err(cause) = certified.keys_match() {
        return Err(refuse("key_file", key_path, "is not the certificate's").caused(cause));
    }
    let key_file = wh_types::Secret::from(String::from_utf8_lossy(&key_bytes).as_ref());
    Ok(Own { key: Some(Arc::new(certified)), cert_file, key_file })
}

/// The settings of all handshakes.
pub(super) fn config(certificates: &Arc<Certificates>, server_name: Option<&str>) -> Result<ClientConfig> {
    let name = server_name.map(|name| {
        ServerName::try_from(name.to_owned())
            .map_err(|_| Error::config(format!("tls.server_name: {name:?} is no name")))
    });
    let verifier = Verifier { certificates: certificates.clone(), name: name.transpose()? };
    let mut config = ClientConfig::builder_with_provider(certificates.provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|cause| Error::config("tls: no protocol version can be used").caused(cause))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(Resolver(certificates.clone())));
    // a session that is resumed would keep the certificate it began with
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// Checks servers against what is trusted now, under the name that is demanded.
#[derive(Debug)]
struct Verifier {
    certificates: Arc<Certificates>,
    name: Option<ServerName<'static>>,
}

impl Verifier {
    fn now(&self) -> Result<Arc<WebPkiServerVerifier>, rustls::Error> {
        let nobody = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        self.certificates.trusted.load().verifier.clone().ok_or(nobody)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let name = self.name.as_ref().unwrap_or(server_name);
        self.now()?.verify_server_cert(end_entity, intermediates, name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.certificates.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Shows our certificate as it is now.
#[derive(Debug)]
struct Resolver(Arc<Certificates>);

impl ResolvesClientCert for Resolver {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.own.load().key.clone()
    }

    fn has_certs(&self) -> bool {
        self.0.own.load().key.is_some()
    }
}
