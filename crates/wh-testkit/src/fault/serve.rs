//! Accepting, forwarding and breaking: the proxy's loop.

use super::{
    Shared,
    reply::{Body, Cut, canned, cut_after, exception, in_band_exception, whole},
    rule::{Action, Kind},
};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use http::{HeaderMap, Request, Response, request};
use http_body_util::{BodyExt, BodyStream, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};
use wh_types::{Stop, Tasks};

/// How much of a body is looked at for its statement.
const LOOK_AT: usize = 4096;

/// Serves until told to stop; then the listener and every connection are gone once the tasks have ended.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: Stop, tasks: Tasks) {
    loop {
        let accepted = tokio::select! {
            () = stop.wait() => return,
            accepted = listener.accept() => accepted,
        };
        // out of file descriptors or the like: the client sees a connection that ends
        let Ok((stream, _)) = accepted else { continue };
        let (shared, stop) = (shared.clone(), stop.clone());
        drop(tasks.spawn("fault proxy connection", async move {
            tokio::select! {
                () = stop.wait() => {}
                () = connection(stream, shared) => {}
            }
        }));
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // hyper takes the stream; a second descriptor of the same socket is what a reset is prepared through
    let Ok(socket) = stream.as_fd().try_clone_to_owned() else { return };
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let (shared, socket) = (&shared, &socket);
    let service = service_fn(move |request| async move {
        let outcome = answer(request, shared).await;
        if outcome.is_err() {
            reset_on_close(socket);
        }
        outcome
    });
    let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // its error is the cut that was asked for, or a client that left
    drop(serving.await);
}

/// Makes the socket's close a reset: nothing more is sent and the peer gets an error at once.
fn reset_on_close(socket: &OwnedFd) {
    // a socket that the peer closed already refuses, and needs no reset
    rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO)).ok();
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Result<Response<Body>, Cut> {
    let (head, body) = request.into_parts();
    let (kind, statement, body) = read_statement(&head, body).await?;
    let action = shared.rules.lock().pick(kind, &statement);
    match action {
        None => forward(shared, head, body).await.map(pass),
        Some(Action::Delay(time)) => {
            tokio::time::sleep(time).await;
            forward(shared, head, body).await.map(pass)
        }
        Some(Action::Error { code, name, status, message }) => {
            drain(body).await?;
            exception(code, &name, status, &message)
        }
        Some(Action::Status { status, body: text }) => {
            drain(body).await?;
            whole(status, text)
        }
        Some(Action::Reply { status, headers, body: text, cut }) => {
            drain(body).await?;
            canned(status, &headers, text, cut)
        }
        Some(Action::Hang) => {
            drain(body).await?;
            std::future::pending().await
        }
        Some(Action::Reset) => {
            drain(body).await?;
            Err(Cut("reset".into()))
        }
        Some(Action::DropReply) => {
            let reply = forward(shared, head, body).await?;
            drain(reply.into_body().boxed_unsync()).await?;
            Err(Cut("reply dropped".into()))
        }
        Some(Action::Truncate { bytes }) => {
            let (head, body) = forward(shared, head, body).await?.into_parts();
            Ok(unfinished(head.status, head.headers, cut_after(first(body, bytes).await?)))
        }
        Some(Action::MidException { code, name, bytes }) => {
            let (head, body) = forward(shared, head, body).await?.into_parts();
            let mut sent = BytesMut::from(&first(body, bytes).await?[..]);
            sent.extend_from_slice(in_band_exception(&head.headers, code, &name).as_bytes());
            Ok(unfinished(head.status, head.headers, cut_after(sent.freeze())))
        }
    }
}

type Upload = UnsyncBoxBody<Bytes, hyper::Error>;

/// Tells what the request is; the body comes back whole.
async fn read_statement(head: &request::Parts, mut body: Incoming) -> Result<(Kind, String, Upload), Cut> {
    if head.uri.path() == "/ping" {
        return Ok((Kind::Ping, String::new(), body.boxed_unsync()));
    }
    let query = head.uri.query().unwrap_or("");
    let in_url = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "query");
    let (statement, body) = match in_url {
        Some((_, statement)) if !statement.is_empty() => (statement.into_owned(), body.boxed_unsync()),
        _ => {
            let start = read_some(&mut body, LOOK_AT).await?;
            let statement = String::from_utf8_lossy(&start[..start.len().min(LOOK_AT)]).into_owned();
            let rest = BodyStream::new(body);
            let whole = stream::iter([Ok(Frame::data(start))]).chain(rest);
            (statement, StreamBody::new(whole).boxed_unsync())
        }
    };
    let verb = statement.trim_start().get(..6).unwrap_or("");
    let kind = if verb.eq_ignore_ascii_case("insert") { Kind::Insert } else { Kind::Select };
    Ok((kind, statement, body))
}

/// Reads frames until there are that many bytes or no more; the last frame may go over.
async fn read_some(body: &mut Incoming, enough: usize) -> Result<Bytes, Cut> {
    let mut out = BytesMut::new();
    while out.len() < enough
        && let Some(frame) = body.frame().await
    {
        if let Ok(data) = frame.map_err(Cut::by)?.into_data() {
            out.extend_from_slice(&data);
        }
    }
    Ok(out.freeze())
}

/// The first bytes of a body; the rest is given up.
async fn first(mut body: Incoming, bytes: usize) -> Result<Bytes, Cut> {
    let mut read = read_some(&mut body, bytes).await?;
    read.truncate(bytes);
    Ok(read)
}

async fn drain(body: Upload) -> Result<(), Cut> {
    BodyStream::new(body).try_for_each(|_| async { Ok(()) }).await.map_err(Cut::by)
}

async fn forward(shared: &Shared, mut head: request::Parts, body: Upload) -> Result<Response<Incoming>, Cut> {
    let stream = TcpStream::connect(&shared.upstream).await.map_err(Cut::by)?;
    stream.set_nodelay(true).map_err(Cut::by)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(Cut::by)?;
    // it ends by itself once the reply was read or given up
    drop(Tasks::new().spawn("fault proxy upstream", connection));
    strip_hop_by_hop(&mut head.headers);
    sender.send_request(Request::from_parts(head, body)).await.map_err(Cut::by)
}

fn pass(reply: Response<Incoming>) -> Response<Body> {
    let (mut head, body) = reply.into_parts();
    strip_hop_by_hop(&mut head.headers);
    Response::from_parts(head, body.map_err(Cut::by).boxed_unsync())
}

/// A reply whose length is not said, so that only the missing last chunk tells that it was cut.
fn unfinished(status: http::StatusCode, mut headers: HeaderMap, body: Body) -> Response<Body> {
    strip_hop_by_hop(&mut headers);
    headers.remove(http::header::CONTENT_LENGTH);
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    reply
}

/// Headers that speak about one connection. A length stays: hyper keeps to it; else it sends chunks.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    for name in ["connection", "keep-alive", "transfer-encoding", "expect"] {
        headers.remove(name);
    }
}
