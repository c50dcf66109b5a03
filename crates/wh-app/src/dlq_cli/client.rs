//! Asking a server's `/v1/ops/dead-letters`, one request after another. Speaks plain HTTP, as the server does.

use super::{Failed, args::Body};
use anyhow::Context;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::time::Duration;
use tokio::net::TcpStream;
use wh_types::Secret;

/// Longer than the server takes to say where to go on.
const PATIENCE: Duration = Duration::from_secs(120);
/// Largest answer.
const ANSWER: usize = 256 << 20;

pub(super) struct Client {
    authority: String,
    place: String,
    key: Secret,
}

impl Client {
    /// For the server at `http://host:port`.
    pub(super) fn new(url: &str, key: Secret) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|why| format!("{url}: {why}"))?;
        let Some(authority) = uri.authority().filter(|_| uri.scheme_str() == Some("http")) else {
            return Err(format!("{url} is no http:// address"));
        };
        if !matches!(uri.path(), "" | "/") {
            return Err(format!("{url}: name the server without a path"));
        }
        let place = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
        Ok(Self { authority: authority.to_string(), place, key })
    }

    pub(super) fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, Failed> {
        self.ask(Method::GET, path, query, Bytes::new())
    }

    pub(super) fn post(&self, path: &str, query: &[(&str, String)], body: &Body) -> Result<Value, Failed> {
        self.ask(Method::POST, path, query, body.text().into())
    }

    fn ask(&self, method: Method, path: &str, query: &[(&str, String)], body: Bytes) -> Result<Value, Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failed::Work(error.to_string()))?;
        let asked = async {
            let answer = tokio::time::timeout(PATIENCE, self.exchange(method, path, query, body)).await;
            answer.map_err(|_| anyhow::anyhow!("no answer within {} s", PATIENCE.as_secs()))?
        };
        let (status, text) = runtime.block_on(asked).with_context(|| format!("http://{}", self.authority))?;
        let value: Value = serde_json::from_slice(&text)
            .map_err(|_| Failed::Work(format!("http://{} answered {status}, and no JSON", self.authority)))?;
        if status == StatusCode::OK {
            return Ok(value);
        }
        let member = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        Err(Failed::Work(format!("{} ({}, {status})", member("error"), member("code"))))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Bytes,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let stream = TcpStream::connect(&self.place).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut text = format!("/v1/ops/dead-letters{path}");
        for (at, (name, value)) in query.iter().enumerate() {
            text.push(if at == 0 { '?' } else { '&' });
            text.push_str(&format!("{name}={}", encoded(value)));
        }
        let mut key = HeaderValue::from_str(self.key.expose()).context("the operator key is no header's value")?;
        key.set_sensitive(true);
        let request = Request::builder()
            .method(method)
            .uri(text)
            .header(header::HOST, &self.authority)
            .header("x-operator-key", key)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        let answer = async {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("the answer cannot be read: {error}"))?;
            anyhow::Ok((status, body.to_bytes()))
        };
        let (mut connection, mut answer) = (std::pin::pin!(connection), std::pin::pin!(answer));
        tokio::select! {
            answer = &mut answer => answer,
            ended = &mut connection => {
                ended?;
                answer.await
            }
        }
    }
}

/// As a query string has it.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
