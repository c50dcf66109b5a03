//! An authority of a test's own, and what it signs.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Its own certificate.
    pub(crate) fn file(&self, dir: &Path) -> PathBuf {
        let file = dir.join("ca.pem");
        std::fs::write(&file, &self.pem).unwrap();
        file
    }

    /// A certificate for 127.0.0.1 and its key.
    pub(crate) fn issue(&self, dir: &Path) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let (cert, private) = (dir.join("server.pem"), dir.join("server.key"));
        std::fs::write(&cert, signed.pem()).unwrap();
        std::fs::write(&private, key.serialize_pem()).unwrap();
        (cert, private)
    }
}
