//! The fault proxy before the real engine.

use std::time::Duration;
use wh_testkit::{
    clickhouse::{Endpoint, Server},
    fault::{Action, Kind, Proxy, Rule},
};

async fn both() -> (Server, Proxy, Endpoint) {
    let server = Server::start().await.unwrap();
    let proxy = Proxy::start(server.url()).await.unwrap();
    let through = Endpoint::new(proxy.url());
    server.query("CREATE TABLE e (a UInt64) ENGINE = MergeTree ORDER BY a").await.unwrap();
    (server, proxy, through)
}

fn rows(count: u64) -> String {
    (0..count).map(|a| format!("{{\"a\":{a}}}\n")).collect()
}

const INSERT: Option<&str> = Some("INSERT INTO e FORMAT JSONEachRow");

#[tokio::test]
async fn inserts_and_answers_pass_and_a_dropped_reply_was_stored() {
    let (server, proxy, through) = both().await;
    assert!(through.answers().await);
    assert!(through.request(INSERT, rows(100_000)).send().await.unwrap().status.is_success());
    proxy.add(Rule::insert(Action::DropReply).times(1));
    assert!(through.request(INSERT, rows(1)).send().await.is_err());
    assert_eq!(server.query("SELECT count() FROM e").await.unwrap(), "100001");
    proxy.add(Rule::insert(Action::Reset).contains("INTO e").times(1));
    assert!(through.request(INSERT, rows(1)).send().await.is_err());
    assert_eq!(through.query("SELECT count() FROM e").await.unwrap(), "100001");
    assert_eq!(proxy.stats().requests(Kind::Insert), 3);
}

#[tokio::test]
async fn an_injected_exception_in_the_middle_looks_like_the_engines_own() {
    let (server, proxy, through) = both().await;
    let failing = "SELECT throwIf(number = 900000) FROM numbers(1000000) SETTINGS max_block_size = 10000";
    let real = raw(server.port(), failing).await;
    proxy.add(Rule::select(Action::MidException { code: 395, name: "X".into(), bytes: 20 }));
    let injected = raw(proxy.port(), "SELECT number FROM numbers(100)").await;
    for text in [&real, &injected] {
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        let (_, block) = text.split_once("\r\n__exception__\r\n").expect(text);
        let (tag, rest) = block.split_once("\r\n").unwrap();
        let (message, end) = rest.split_at(rest.rfind(&format!(" {tag}")).unwrap());
        assert!(message.starts_with("Code: 395. DB::Exception: "), "{message}");
        let (message, length) = message.rsplit_once('\n').unwrap();
        assert_eq!(length.parse::<usize>().unwrap(), message.len() + 1);
        assert_eq!(end.split("\r\n").nth(1), Some("__exception__"));
    }
    assert!(through.query("SELECT 1").await.is_err());
}

/// The whole of an answer, whatever way it ends.
async fn raw(port: u16, sql: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let length = sql.len();
    let request = format!("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{sql}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut out, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    let limit = Duration::from_secs(20);
    while let Ok(read @ 1..) = tokio::time::timeout(limit, stream.read(&mut buffer)).await.expect("an end") {
        out.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8_lossy(&out).into_owned()
}
