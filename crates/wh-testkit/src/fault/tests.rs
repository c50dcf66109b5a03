//! Every action against a small upstream that counts what reaches it.

use super::*;
use crate::{http, until_equal};
use ::http::{Request as HttpRequest, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

const SOON: Duration = Duration::from_secs(60);
const INSERT: &str = "/?query=INSERT%20INTO%20events%20FORMAT%20JSONEachRow";

/// Answers each request with its body, or with 10,000 bytes where there is none, and counts the bytes it was sent.
struct Upstream {
    port: u16,
    requests: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
    stop: Stop,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop.give();
    }
}

async fn upstream() -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = Upstream {
        port: listener.local_addr().unwrap().port(),
        requests: Arc::default(),
        bytes: Arc::default(),
        stop: Stop::new(),
    };
    let (requests, bytes, stop) = (upstream.requests.clone(), upstream.bytes.clone(), upstream.stop.clone());
    let tasks = Tasks::new();
    let connections = tasks.clone();
    drop(tasks.spawn("upstream", async move {
        loop {
            let stream = tokio::select! {
                () = stop.wait() => return,
                accepted = listener.accept() => accepted.unwrap().0,
            };
            let (requests, bytes) = (requests.clone(), bytes.clone());
            let echo = service_fn(move |request: HttpRequest<Incoming>| {
                let (requests, bytes) = (requests.clone(), bytes.clone());
                async move {
                    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                    requests.fetch_add(1, Ordering::SeqCst);
                    bytes.fetch_add(body.len(), Ordering::SeqCst);
                    let body = if body.is_empty() { Bytes::from(vec![b'x'; 10_000]) } else { body };
                    let reply = Response::builder().header("X-ClickHouse-Exception-Tag", "tagtagtag");
                    Ok::<_, Infallible>(reply.body(Full::new(body)).unwrap())
                }
            });
            let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), echo);
            drop(connections.spawn("upstream connection", serving));
        }
    }));
    upstream
}

async fn both() -> (Upstream, Proxy) {
    let upstream = upstream().await;
    let proxy = Proxy::start(format!("127.0.0.1:{}", upstream.port)).await.unwrap();
    (upstream, proxy)
}

impl Upstream {
    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn get(proxy: &Proxy) -> http::Request {
    http::get(format!("{}/?query=SELECT%201", proxy.url()))
}

fn insert(proxy: &Proxy, body: impl Into<Bytes>) -> http::Request {
    http::post(format!("{}{INSERT}", proxy.url()), body)
}

#[tokio::test]
async fn without_rules_it_is_invisible_and_large_bodies_stream_through() {
    let (upstream, proxy) = both().await;
    let body = Bytes::from(vec![b'r'; 64 << 20]);
    let reply = insert(&proxy, body.clone()).send().await.unwrap();
    assert!(reply.status == StatusCode::OK && reply.body == body);
    assert_eq!(upstream.bytes.load(Ordering::SeqCst), body.len());
    // a statement in the body, with data behind it, arrives unchanged too
    let statement = [b"INSERT INTO t FORMAT JSONEachRow ".as_slice(), &vec![b'j'; 100_000]].concat();
    let reply = http::post(proxy.url(), statement.clone()).send().await.unwrap();
    assert!(reply.body == statement);
    http::get(format!("{}/ping", proxy.url())).send().await.unwrap();
    let stats = proxy.stats();
    assert_eq!([Kind::Insert, Kind::Select, Kind::Ping].map(|kind| stats.requests(kind)), [2, 0, 1]);
}

#[tokio::test]
async fn an_exception_is_answered_without_asking_the_upstream() {
    let (upstream, proxy) = both().await;
    let rule = proxy.add(Rule::insert(Action::error(252, "TOO_MANY_PARTS")).times(1));
    let reply = insert(&proxy, "{}").send().await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.header("x-clickhouse-exception-code")), (500, Some("252")));
    assert!(reply.text().starts_with("Code: 252. DB::Exception: ") && reply.text().contains("(TOO_MANY_PARTS)"));
    assert_eq!((upstream.requests(), proxy.fired(rule)), (0, 1));
    assert_eq!(insert(&proxy, "{}").send().await.unwrap().text(), "{}");
}

#[tokio::test]
async fn a_status_carries_no_clickhouse_headers() {
    let (upstream, proxy) = both().await;
    proxy.add(Rule::any(Action::Status { status: 503, body: "no backend".into() }));
    let reply = get(&proxy).send().await.unwrap();
    assert_eq!((reply.status.as_u16(), &*reply.text(), upstream.requests()), (503, "no backend", 0));
    assert!(reply.headers.keys().all(|name| !name.as_str().starts_with("x-clickhouse")));
}

#[tokio::test]
async fn a_delay_forwards_afterwards() {
    let (upstream, proxy) = both().await;
    proxy.add(Rule::any(Action::Delay(Duration::from_secs(2))));
    let early = get(&proxy).timeout(Duration::from_millis(100)).send().await;
    assert!(early.is_err() && upstream.requests() == 0);
    assert_eq!(get(&proxy).send().await.unwrap().body.len(), 10_000);
}

#[tokio::test]
async fn a_hang_reads_the_body_and_never_answers() {
    let (upstream, proxy) = both().await;
    let rule = proxy.add(Rule::insert(Action::Hang));
    let error = insert(&proxy, vec![b'x'; 8 << 20]).timeout(Duration::from_secs(3)).send().await.unwrap_err();
    assert!(format!("{error:#}").contains("no answer in"), "{error:#}");
    assert_eq!((upstream.requests(), proxy.fired(rule)), (0, 1));
}

#[tokio::test]
async fn a_reset_is_a_reset_and_the_upstream_is_not_asked() {
    let (upstream, proxy) = both().await;
    proxy.add(Rule::insert(Action::Reset));
    let error = insert(&proxy, "{}").send().await.unwrap_err();
    let reset = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    assert!(reset.into_iter().any(|cause| cause.kind() == std::io::ErrorKind::ConnectionReset), "{error:#}");
    assert_eq!(upstream.requests(), 0);
}

#[tokio::test]
async fn a_dropped_reply_was_executed() {
    let (upstream, proxy) = both().await;
    proxy.add(Rule::insert(Action::DropReply).times(1));
    assert!(insert(&proxy, "{}").send().await.is_err());
    assert_eq!(upstream.requests(), 1);
    assert!(insert(&proxy, "{}").send().await.is_ok());
}

#[tokio::test]
async fn a_truncated_answer_gives_its_bytes_and_no_end() {
    let (_upstream, proxy) = both().await;
    proxy.add(Rule::select(Action::Truncate { bytes: 100 }));
    let error = get(&proxy).send().await.unwrap_err();
    assert!(format!("{error:#}").contains("unexpected EOF"), "{error:#}");
    let raw = raw(&proxy).await;
    let (_, body) = raw.split_once("\r\n\r\n").expect(&raw);
    assert_eq!(body.matches('x').count(), 100);
}

#[tokio::test]
async fn a_mid_stream_exception_comes_in_band_with_the_tag_of_the_head() {
    let (_upstream, proxy) = both().await;
    proxy.add(Rule::select(Action::MidException { code: 241, name: "MEMORY_LIMIT_EXCEEDED".into(), bytes: 10 }));
    let raw = raw(&proxy).await;
    assert!(raw.starts_with("HTTP/1.1 200 OK"), "{raw}");
    let (_, block) = raw.split_once("xxxxxxxxxx\r\n__exception__\r\ntagtagtag\r\n").expect(&raw);
    let (text, end) = block.split_at(block.find('\n').unwrap() + 1);
    assert!(text.starts_with("Code: 241. "), "{text}");
    assert!(end.starts_with(&format!("{} tagtagtag\r\n__exception__\r\n", text.len())), "{end}");
}

/// Everything that a GET's connection carries back, up to its end.
async fn raw(proxy: &Proxy) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    stream.write_all(b"GET /?query=SELECT HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut out = Vec::new();
    let mut buffer = [0; 4096];
    // the end may be a close or a reset; either way what came before it counts
    while let Ok(Ok(read @ 1..)) = tokio::time::timeout(SOON, stream.read(&mut buffer)).await {
        out.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn down_cuts_and_refuses_and_up_serves_on_the_same_port() {
    let (_upstream, proxy) = both().await;
    let rule = proxy.add(Rule::any(Action::Hang).times(1));
    let held = Tasks::new().spawn("held", get(&proxy).send());
    until_equal(SOON, "requests held", 1, || async { proxy.fired(rule) }).await.unwrap();
    proxy.down().await;
    assert!(held.await.unwrap().is_err(), "an open connection is cut");
    let refused = get(&proxy).send().await.unwrap_err();
    assert!(format!("{refused:#}").contains("refused"), "{refused:#}");
    proxy.up().await.unwrap();
    assert!(get(&proxy).send().await.is_ok());
}

#[tokio::test]
async fn an_upstream_that_is_down_looks_like_a_reset() {
    let port = free_port().unwrap();
    let proxy = Proxy::start(format!("http://127.0.0.1:{port}")).await.unwrap();
    assert!(get(&proxy).send().await.is_err());
}
