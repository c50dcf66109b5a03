//! A small HTTP/1 client for tests: one connection a request, nothing retried, nothing hidden.
//!
//! It is not fast and keeps no pool, so that a test sees each connection's fate.

mod sse;

pub use sse::{Event, Events};

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::{borrow::Cow, time::Duration};
use tokio::net::TcpStream;
use wh_types::Tasks;

/// The largest body that a reply may have.
const MAX_BODY: usize = 1 << 30;

/// A GET request.
pub fn get(url: impl Into<String>) -> Request {
    Request::new(Method::GET, url.into(), Bytes::new())
}

/// A POST request.
pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Request {
    Request::new(Method::POST, url.into(), body.into())
}

/// A request to send.
#[derive(Clone, Debug)]
pub struct Request {
    method: Method,
    url: String,
    headers: Vec<(String, String)>,
    body: Bytes,
    timeout: Duration,
}

impl Request {
    /// A request of any method.
    pub fn new(method: Method, url: String, body: Bytes) -> Self {
        Self { method, url, headers: Vec::new(), body, timeout: Duration::from_secs(30) }
    }

    /// One header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// How long the whole exchange may take; 30 s by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sends it and reads the whole reply. Any status is a reply.
    ///
    /// # Errors
    /// No connection, a reply cut short, a reply over 1 GiB, or the time is up.
    ///
    /// # Cancel safety
    /// Detached: the server may have acted.
    pub async fn send(self) -> Result<Reply> {
        let what = self.describe();
        let exchange = async {
            let (head, body) = self.begin().await?.into_parts();
            let body = Limited::new(body, MAX_BODY).collect().await.map_err(anyhow::Error::from_boxed)?;
            Ok(Reply { status: head.status, headers: head.headers, body: body.to_bytes() })
        };
        in_time(self.timeout, exchange).await.context(what)
    }

    /// Sends it and reads the reply's server-sent events as they come. The timeout is for the reply's head only.
    ///
    /// # Errors
    /// No connection, a reply that is not 200, or no head in time.
    ///
    /// # Cancel safety
    /// Detached: the server may have acted.
    pub async fn events(self) -> Result<Events> {
        let what = self.describe();
        let opening = async {
            let (head, body) = self.begin().await?.into_parts();
            if head.status != StatusCode::OK {
                let body = Limited::new(body, MAX_BODY).collect().await.map_err(anyhow::Error::from_boxed)?;
                anyhow::bail!("answered {}: {}", head.status, String::from_utf8_lossy(&body.to_bytes()));
            }
            Ok(Events::new(head.headers, body))
        };
        in_time(self.timeout, opening).await.context(what)
    }

    fn describe(&self) -> String {
        format!("{} {}", self.method, self.url)
    }

    async fn begin(&self) -> Result<::http::Response<Incoming>> {
        let uri: Uri = self.url.parse().context("not a URL")?;
        let host = uri.host().context("a URL without a host")?;
        let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // it ends by itself once the reply was read or dropped; its error is also the request's
        drop(Tasks::new().spawn("test http connection", connection));
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = ::http::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = path.parse()?;
        let authority = uri.authority().map_or(host, |a| a.as_str());
        request.headers_mut().insert(header::HOST, HeaderValue::from_str(authority)?);
        for (name, value) in &self.headers {
            request.headers_mut().append(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        Ok(sender.send_request(request).await?)
    }
}

async fn in_time<T>(timeout: Duration, exchange: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer in {timeout:?}")))
}

/// A whole reply.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status, whatever it is.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as sent (not decompressed).
    pub body: Bytes,
}

impl Reply {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// It is not JSON; the error quotes it.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("{} with {:?}", self.status, self.text()))
    }

    /// A header's value, when there is one and it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
