//! How connections are made: TCP without Nagle's delay, which would cost 40 ms an insert.

use crate::Result;
use hyper_util::client::legacy::connect::HttpConnector;
use std::time::Duration;

/// Makes connections.
pub(crate) type Connector = HttpConnector;

/// A connector that gives up on a connection after `timeout`.
#[expect(clippy::unnecessary_wraps, reason = "with TLS it can fail")]
pub(crate) fn new(timeout: Duration) -> Result<Connector> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(timeout));
    tcp.set_keepalive(Some(Duration::from_secs(60)));
    Ok(tcp)
}
