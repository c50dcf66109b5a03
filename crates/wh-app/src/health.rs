//! The question `wavehouse health` asks: is the port open and does `/livez` say so.

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;
use wh_config::Server;

/// How long a healthy process may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the process of this configuration answers, seen from the same machine.
pub(crate) fn url(server: &Server) -> String {
    let host = match server.host {
        std::net::IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        std::net::IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
        std::net::IpAddr::V4(ip) => ip.to_string(),
        std::net::IpAddr::V6(ip) => format!("[{ip}]"),
    };
    format!("http://{host}:{}/livez", server.port)
}

/// Asks; anything but a 200 within 5 s is an error.
pub(crate) async fn ask(url: &str) -> anyhow::Result<()> {
    let uri: Uri = url.parse()?;
    let Some(authority) = uri.authority().filter(|_| uri.scheme_str() == Some("http")) else {
        anyhow::bail!("{url} is no http:// address");
    };
    let place = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
    // an address without a path is the server's, not a page of it
    let path = if matches!(uri.path(), "" | "/") { "/livez" } else { uri.path() };
    let status = tokio::time::timeout(PATIENCE, status(&place, authority.as_str(), path))
        .await
        .map_err(|_| anyhow::anyhow!("{url} gave no answer within {} s", PATIENCE.as_secs()))?
        .map_err(|error| anyhow::anyhow!("{url}: {error}"))?;
    anyhow::ensure!(status == StatusCode::OK, "{url} answered {status}");
    Ok(())
}

async fn status(place: &str, host: &str, path: &str) -> anyhow::Result<StatusCode> {
    let stream = TcpStream::connect(place).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(path).header(header::HOST, host).body(Empty::<Bytes>::new())?;
    let (mut connection, mut answer) = (std::pin::pin!(connection), std::pin::pin!(sender.send_request(request)));
    tokio::select! {
        answer = &mut answer => Ok(answer?.status()),
        ended = &mut connection => {
            ended?;
            // closed after the answer, or without one: the sender knows
            Ok(answer.await?.status())
        }
    }
}
