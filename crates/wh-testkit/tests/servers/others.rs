//! NATS, Redis and the DynamoDB emulator: each starts, answers one request over TCP and stops.

use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use wh_testkit::{dynamodb, http, nats, redis, servers::NATS_VERSIONS};

/// Sends and reads until the wanted text came.
async fn exchange(port: u16, send: &str, wanted: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(send.as_bytes()).await.unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    let reading = async {
        while !seen.contains(wanted) {
            let read = stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "closed after {seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reading).await.expect("the wanted answer");
    seen
}

#[tokio::test]
async fn each_nats_version_answers_with_jetstream_and_stops() {
    for version in NATS_VERSIONS {
        let mut server = nats::Server::start_version(version).await.unwrap();
        let hello = exchange(server.port(), "CONNECT {\"verbose\":false}\r\nPING\r\n", "PONG\r\n").await;
        assert!(
            hello.contains(&format!("\"version\":\"{version}\"")) && hello.contains("\"jetstream\":true"),
            "{hello}"
        );
        server.restart().await.unwrap();
        exchange(server.port(), "PING\r\n", "PONG\r\n").await;
        server.stop().await.unwrap();
    }
}

#[tokio::test]
async fn redis_answers_and_stops() {
    let server = redis::Server::start().await.unwrap();
    exchange(server.port(), "PING\r\n", "+PONG\r\n").await;
    let info = exchange(server.port(), "INFO server\r\n", "redis_version:").await;
    assert!(info.contains("redis_version:"));
    server.stop().await.unwrap();
}

#[tokio::test]
async fn dynamodb_answers_and_stops() {
    let server = dynamodb::Server::start().await.unwrap();
    assert_eq!(tables(server.url()).await, "{\"TableNames\":[]}");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn moto_answers_and_stops() {
    let server = dynamodb::Server::start_moto().await.unwrap();
    assert_eq!(tables(server.url()).await, "{\"TableNames\": []}");
    server.stop().await.unwrap();
}

/// What a DynamoDB says of its tables.
async fn tables(url: String) -> String {
    let authorization =
        "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=x";
    let reply = http::post(url, "{}")
        .header("Content-Type", "application/x-amz-json-1.0")
        .header("X-Amz-Target", "DynamoDB_20120810.ListTables")
        .header("X-Amz-Date", "20260101T000000Z")
        .header("Authorization", authorization)
        .send()
        .await
        .unwrap();
    reply.text().into_owned()
}
