//! How connections are made: TCP without Nagle's delay, which would cost 40 ms an insert; TLS with the feature `tls`.

use crate::Result;
use hyper_util::client::legacy::connect::HttpConnector;
use std::time::Duration;

/// Unused connections are probed, so that a host that vanished is noticed.
const KEEPALIVE: Duration = Duration::from_secs(60);

fn tcp(timeout: Duration) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(timeout));
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp
}

/// Makes connections.
#[cfg(not(feature = "tls"))]
pub(crate) type Connector = HttpConnector;

/// A connector that gives up on a connection after `timeout`.
#[cfg(not(feature = "tls"))]
#[expect(clippy::unnecessary_wraps, reason = "with TLS it can fail")]
pub(crate) fn new(timeout: Duration, _https: bool) -> Result<Connector> {
    Ok(tcp(timeout))
}

/// Makes connections.
#[cfg(feature = "tls")]
pub(crate) type Connector = hyper_rustls::HttpsConnector<HttpConnector>;

/// A connector that gives up on a connection after `timeout`. Certificates are checked against the system's roots,
/// which must be there only where `https` is asked for.
#[cfg(feature = "tls")]
pub(crate) fn new(timeout: Duration, https: bool) -> Result<Connector> {
    use hyper_rustls::ConfigBuilderExt;
    let refused = |what: &str, cause: Box<dyn std::error::Error + Send + Sync>| {
        let purpose = crate::error::Purpose { op: "options", effect: false };
        crate::Error::new(crate::Kind::Invalid, purpose, format!("url {what}")).caused(cause)
    };
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| refused("cannot use TLS", cause.into()))?;
    let config = if https {
        config
            .with_native_roots()
            .map_err(|cause| refused("needs the system's root certificates, which cannot be read", cause.into()))?
    } else {
        config.with_root_certificates(rustls::RootCertStore::empty())
    };
    let mut tcp = tcp(timeout);
    tcp.enforce_http(false);
    let builder = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config.with_no_client_auth());
    Ok(builder.https_or_http().enable_http1().wrap_connector(tcp))
}
