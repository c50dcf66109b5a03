//! The answers that the proxy makes itself.

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use std::{fmt, time::Duration};

/// A body on its way to the client.
pub(super) type Body = UnsyncBoxBody<Bytes, Cut>;

/// Why a connection ends without a proper answer.
#[derive(Debug)]
pub(super) struct Cut(pub(super) String);

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cut by the fault proxy: {}", self.0)
    }
}

impl std::error::Error for Cut {}

impl Cut {
    pub(super) fn by(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// An answer with a whole body.
pub(super) fn whole(status: u16, body: impl Into<Bytes>) -> Result<Response<Body>, Cut> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(status).body(body).map_err(Cut::by)
}

/// An answer that was made before.
pub(super) fn canned(
    status: u16,
    headers: &[(String, String)],
    body: Vec<u8>,
    cut: bool,
) -> Result<Response<Body>, Cut> {
    let mut response = if cut {
        Response::builder().status(status).body(cut_after(body.into())).map_err(Cut::by)?
    } else {
        whole(status, body)?
    };
    for (name, value) in headers {
        let name = http::HeaderName::try_from(name).map_err(Cut::by)?;
        response.headers_mut().append(name, http::HeaderValue::try_from(value).map_err(Cut::by)?);
    }
    Ok(response)
}

/// ClickHouse's answer to a failed statement.
pub(super) fn exception(code: u32, name: &str, status: u16, message: &str) -> Result<Response<Body>, Cut> {
    let mut response = whole(status, exception_text(code, name, message))?;
    let headers = response.headers_mut();
    headers.insert("X-ClickHouse-Exception-Code", code.into());
    headers.insert("Content-Type", http::HeaderValue::from_static("text/plain; charset=UTF-8"));
    Ok(response)
}

fn exception_text(code: u32, name: &str, message: &str) -> String {
    format!("Code: {code}. DB::Exception: {message}. ({name}) (version 26.7.2.1 (injected))\n")
}

/// The block that ClickHouse writes into a body when a statement fails after the head was sent. The tag is the one it
/// announced in the head.
pub(super) fn in_band_exception(head: &HeaderMap, code: u32, name: &str) -> String {
    let tag = head.get("x-clickhouse-exception-tag").and_then(|tag| tag.to_str().ok()).unwrap_or("");
    let text = exception_text(code, name, "injected fault");
    format!("\r\n__exception__\r\n{tag}\r\n{text}{} {tag}\r\n__exception__\r\n", text.len())
}

/// A body that is cut after these bytes, without an end that the client could take for a proper one.
pub(super) fn cut_after(bytes: Bytes) -> Body {
    let sent = stream::iter([Ok(Frame::data(bytes))]);
    let cut = stream::once(async {
        // hyper drops what it has not flushed when a body fails; it flushes while the body is pending
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err(Cut("truncated".into()))
    });
    StreamBody::new(sent.chain(cut)).boxed_unsync()
}
