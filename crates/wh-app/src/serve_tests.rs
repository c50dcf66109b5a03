//! The server over real sockets: bounds, slow clients, and what a stop does to requests in flight.

use super::*;
use crate::front::Phase;
use axum::{Router, body::Body, routing::get};
use std::sync::Arc;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};
use wh_types::OsEntropy;

const LONG: Duration = Duration::from_secs(20);
const REQUEST: &[u8] = b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n";

/// A server whose `/slow` answers once it is told to, and says when a request has come.
struct Bench {
    server: Server,
    addr: SocketAddr,
    front: Front<Router>,
    came: Arc<Notify>,
    go: Arc<Notify>,
}

async fn bench(limits: Limits) -> Bench {
    let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let front = Front::new(Arc::new(OsEntropy));
    let (came, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (came.clone(), go.clone());
    let slow = move || async move {
        tell.notify_one();
        wait.notified().await;
        Body::from("done")
    };
    front.set(Phase::Serving(Router::new().route("/slow", get(slow)).route("/fast", get(|| async { "fast" }))));
    Bench { server: Server::start(listener, front.clone(), limits), addr, front, came, go }
}

fn limits() -> Limits {
    Limits { max_connections: 100, header_timeout: LONG }
}

async fn send(addr: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Everything until the server closes the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    match tokio::time::timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the connection stays open") {
        Ok(_) => String::from_utf8(bytes).unwrap(),
        Err(error) => format!("cut: {error}"),
    }
}

async fn ask(addr: SocketAddr, path: &str) -> String {
    rest(send(addr, format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes()).await).await
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight_and_closes_what_is_idle() {
    let bench = bench(limits()).await;
    let in_flight = send(bench.addr, REQUEST).await;
    let idle = TcpStream::connect(bench.addr).await.unwrap();
    bench.came.notified().await;
    let draining = bench.server.drain(LONG);
    let waiting = async {
        assert_eq!(rest(idle).await, "", "an idle connection is closed at once");
        let refused = async { while TcpStream::connect(bench.addr).await.is_ok() {} };
        tokio::time::timeout(LONG, refused).await.expect("nobody is accepted any more");
        bench.go.notify_one();
        rest(in_flight).await
    };
    let (cut, answer) = tokio::join!(draining, waiting);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    assert_eq!(cut, 0);
}

#[tokio::test]
async fn a_stop_cuts_what_outlasts_its_time() {
    let bench = bench(limits()).await;
    let in_flight = send(bench.addr, REQUEST).await;
    bench.came.notified().await;
    assert_eq!(bench.server.drain(Duration::ZERO).await, 1);
    assert!(!rest(in_flight).await.contains("200"));
}

#[tokio::test]
async fn a_client_that_never_ends_its_headers_is_closed() {
    let bench = bench(Limits { header_timeout: Duration::from_millis(50), ..limits() }).await;
    let slow = send(bench.addr, b"GET /fast HTTP/1.1\r\nhost:").await;
    let answer = rest(slow).await;
    assert!(!answer.contains("200"), "{answer}");
    assert!(ask(bench.addr, "/fast").await.ends_with("fast"));
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_for_room() {
    let bench = bench(Limits { max_connections: 1, ..limits() }).await;
    let first = send(bench.addr, REQUEST).await;
    bench.came.notified().await;
    let second = tokio::join!(ask(bench.addr, "/fast"), async {
        bench.go.notify_one();
        drop(first);
    });
    assert!(second.0.ends_with("fast"), "{}", second.0);
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let bench = bench(limits()).await;
    let error = listen(bench.addr).await.unwrap_err();
    assert!(matches!(error, ListenError::Taken(_)));
    assert!(error.to_string().contains(&bench.addr.to_string()), "{error}");
    let error = listen("192.0.2.1:1".parse().unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("192.0.2.1:1") && error.contains("server.host"), "{error}");
}

#[tokio::test]
async fn before_the_api_is_there_the_port_says_why_and_lives() {
    let bench = bench(limits()).await;
    let phases = [
        (Phase::Starting, "\"code\":\"server.starting\"", "this process is starting"),
        (Phase::NoSpace("no space for the queue: /data".into()), "\"code\":\"queue.no_space\"", "for the queue: /data"),
        (Phase::Stopped, "\"code\":\"server.stopping\"", "shutting down"),
    ];
    for (phase, code, words) in phases {
        bench.front.set(phase);
        let answer = ask(bench.addr, "/v1/ingest").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: "), "{answer}");
        assert!(answer.contains(code) && answer.contains(words) && answer.contains("\"retryable\":true"), "{answer}");
        let live = ask(bench.addr, "/livez").await;
        assert!(live.starts_with("HTTP/1.1 200"), "{live}");
    }
}

#[tokio::test]
async fn an_answer_that_comes_before_the_body_is_read_by_a_client_that_still_sends() {
    let bench = bench(limits()).await;
    let stream = TcpStream::connect(bench.addr).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    // far more than fits into the buffers between
    let body = vec![b'x'; 32 << 20];
    let sending = async {
        let head = format!("GET /fast HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len());
        writer.write_all(head.as_bytes()).await.unwrap();
        writer.write_all(&body).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut answer = String::new();
    let ((), read) = tokio::join!(sending, reader.read_to_string(&mut answer));
    read.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("fast"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "a client is told that its connection ends: {answer}");
}

#[tokio::test]
async fn a_connection_whose_bodies_are_read_is_kept() {
    let bench = bench(limits()).await;
    let route = axum::routing::post(|body: axum::body::Bytes| async move { format!("{} bytes", body.len()) });
    bench.front.set(Phase::Serving(Router::new().route("/read", route)));
    let one = "POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
    let last = one.replace("host: a", "host: a\r\nconnection: close");
    let answers = rest(send(bench.addr, format!("{one}{one}{last}").as_bytes()).await).await;
    assert_eq!(answers.matches("5 bytes").count(), 3, "{answers}");
    assert_eq!(answers.matches("connection: close").count(), 1, "{answers}");
}

/// The parser answers before there is a request: no body of ours can be given (docs/guide/http.md).
#[tokio::test]
async fn what_the_parser_refuses_has_a_status_and_closes() {
    let bench = bench(limits()).await;
    let long = "x".repeat(200 << 10);
    for (request, status) in [
        ("GARBAGE\r\n\r\n".to_owned(), "400"),
        (format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"), "414"),
        (format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "a: b\r\n".repeat(200)), "431"),
    ] {
        let answer = rest(send(bench.addr, request.as_bytes()).await).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{status}: {answer}");
    }
    assert!(ask(bench.addr, "/fast").await.ends_with("fast"));
}
