//! Bodies that are large, slow, packed or never finished: refused in time, and in bounded memory.

use flate2::{Compress, Compression, FlushCompress};
use procs::System;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use wh_testkit::{http, until};
use wh_types::{Clock, Encoding, SystemClock, Tasks, frame};

const MIB: usize = 1 << 20;
const NDJSON: &str = "application/x-ndjson";

/// The most memory the process had since the last [`forget`], in bytes.
fn peak(system: &System) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", system.wavehouse.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<usize>().unwrap() << 10
}

/// Makes the peak what the process has now, and gives that.
fn forget(system: &System) -> usize {
    std::fs::write(format!("/proc/{}/clear_refs", system.wavehouse.id()), "5").unwrap();
    peak(system)
}

/// 1 GiB in 16 MiB of gzip: a block of noise and zeros, over and over, and no end, which nobody gets to.
fn gzip_bomb() -> Vec<u8> {
    let mut plain = vec![b' '; MIB];
    let mut state = 1_u64;
    for byte in &mut plain[..9_900] {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = state.to_le_bytes()[7];
    }
    let mut block = Vec::with_capacity(64 << 10);
    Compress::new(Compression::fast(), false).compress_vec(&plain, &mut block, FlushCompress::Sync).unwrap();
    let mut bomb = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    while bomb.len() + block.len() <= 16 * MIB {
        bomb.extend_from_slice(&block);
    }
    assert!(bomb.len() > 15 * MIB && bomb.len() / block.len() >= 1_000, "{} of {}", bomb.len(), block.len());
    bomb
}

#[tokio::test]
async fn a_bomb_is_refused_and_costs_little_memory() {
    let system = System::start().await.unwrap();
    let gibibyte = |encoding| frame::encode(encoding, &vec![b' '; MIB]).unwrap().repeat(1_024);
    for (coding, bomb) in [("gzip", gzip_bomb()), ("zstd", gibibyte(Encoding::Zstd)), ("lz4", gibibyte(Encoding::Lz4))]
    {
        let before = forget(&system);
        let reply = http::post(system.url("/v1/ingest?table=events"), bomb)
            .header("content-type", NDJSON)
            .header("content-encoding", coding)
            .send()
            .await
            .unwrap();
        assert_eq!(
            (reply.status.as_u16(), &reply.json().unwrap()["code"]),
            (413, &"body.too_large".into()),
            "{coding}"
        );
        assert_eq!(reply.json().unwrap()["total"], 0);
        let more = peak(&system).saturating_sub(before);
        assert!(more < 64 * MIB, "{coding}: memory went up by {} MiB", more / MIB);
    }
}

/// An upload of a body of 16 MiB, a piece after the other; what came of it.
struct Upload {
    status: u16,
    code: String,
    sent: usize,
    took: Duration,
}

async fn upload(port: u16, body: usize, pause: Duration) -> Upload {
    let start = SystemClock.now();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let sending = async {
        let head = format!(
            "POST /v1/ingest?table=events HTTP/1.1\r\nhost: x\r\ncontent-type: {NDJSON}\r\ncontent-length: {body}\r\n\r\n"
        );
        let row = b"{\"id\":1,\"at\":\"2026-01-01\",\"note\":\"\"}\n";
        let piece = vec![b' '; 64 << 10];
        let mut sent = 0;
        write.write_all(head.as_bytes()).await?;
        write.write_all(row).await?;
        sent += row.len();
        while sent < body {
            tokio::time::sleep(pause).await;
            let part = piece.len().min(body - sent);
            write.write_all(&piece[..part]).await?;
            sent += part;
        }
        Ok::<_, std::io::Error>(sent)
    };
    let answer = async {
        let (mut answer, mut part) = (Vec::new(), [0; 4096]);
        while !answer.windows(14).any(|window| window == b"\"request_id\":\"") && !answer.ends_with(b"}") {
            match read.read(&mut part).await.unwrap() {
                0 => break,
                bytes => answer.extend_from_slice(&part[..bytes]),
            }
        }
        String::from_utf8(answer).unwrap()
    };
    let (mut sent, mut answer) = (None, std::pin::pin!(answer));
    let text = tokio::select! {
        text = &mut answer => text,
        done = sending => {
            // a server that answered early closes: what it said is still to be read
            sent = done.ok();
            answer.await
        }
    };
    let status = text.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {text:?}")).parse().unwrap();
    let code = text.split("\"code\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    Upload { status, code: code.to_owned(), sent: sent.unwrap_or_default(), took: start.elapsed() }
}

async fn held(system: &System) -> u64 {
    let metrics = http::get(system.url("/metrics")).send().await.unwrap();
    let text = metrics.text().into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("wavehouse_ingest_held_bytes ")).unwrap();
    line.parse().unwrap()
}

#[tokio::test]
async fn two_hundred_slow_uploads_are_held_within_the_budget_and_refused_early() {
    let system = System::with("ingest:\n  body_budget: 64MiB").await.unwrap();
    let row = "{\"id\":9,\"at\":\"2026-01-01\",\"note\":\"\"}";
    assert_eq!(system.post("application/json", row).await.unwrap().status, 200);
    let before = forget(&system);
    let (tasks, port) = (Tasks::new(), system.port());
    let slow = |_| tasks.spawn("upload", upload(port, 16 * MIB, Duration::from_millis(20)));
    let uploads: Vec<_> = (0..200).map(slow).collect();
    let mut ends = Vec::new();
    for upload in uploads {
        ends.push(upload.await.unwrap());
    }
    let more = peak(&system).saturating_sub(before);
    // the budget, and what 200 connections and the system's allocator have besides
    assert!(more < (64 + 64) * MIB, "memory went up by {} MiB", more / MIB);
    let stored = ends.iter().filter(|end| end.status == 200).count();
    assert!(stored >= 1, "one of the largest size always goes on");
    assert!(ends.iter().filter(|end| end.status == 200).all(|end| end.sent == 16 * MIB));
    let refused: Vec<_> = ends.iter().filter(|end| end.status != 200).collect();
    assert!(refused.len() > 150, "{}", refused.len());
    assert!(refused.iter().all(|end| (end.status, end.code.as_str()) == (503, "server.busy")));
    let early = refused.iter().filter(|end| end.sent < 8 * MIB).count();
    assert!(early * 10 > refused.len() * 9, "{early} of {} before half of their body was there", refused.len());
    assert_eq!(held(&system).await, 0);
    assert_eq!(system.post("application/json", row).await.unwrap().status, 200, "and then it goes on as before");
}

#[tokio::test]
async fn a_client_that_goes_away_gives_back_what_it_held() {
    let system = System::with("ingest:\n  body_budget: 64MiB").await.unwrap();
    let system =
        with_server_keys(system, "  body_timeout: 10m\n  body_idle_timeout: 10m\n  request_timeout: 11m").await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = TcpStream::connect(("127.0.0.1", system.port())).await.unwrap();
        let head = "POST /v1/ingest?table=events HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n\
                    content-length: 16777216\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        client.write_all(&vec![b' '; MIB]).await.unwrap();
        clients.push(client);
    }
    let wait = Duration::from_secs(60);
    until(wait, "the bodies to be held", async || match held(&system).await {
        bytes if bytes >= 4 * MIB as u64 => Ok(()),
        bytes => anyhow::bail!("{bytes}"),
    })
    .await
    .unwrap();
    drop(clients);
    // far sooner than a body that stands still would be given up
    until(wait, "their share to be given back", async || match held(&system).await {
        0 => Ok(()),
        bytes => anyhow::bail!("{bytes}"),
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_body_that_stands_still_or_takes_too_long_ends_with_408() {
    let more = "  body_timeout: 2s\n  body_idle_timeout: 500ms\n  request_timeout: 40s";
    let system = with_server_keys(System::with("").await.unwrap(), more).await;
    for (pause, took) in [(5_000, 500), (100, 2_000)] {
        let end = upload(system.port(), 16 * MIB, Duration::from_millis(pause)).await;
        assert_eq!((end.status, end.code.as_str()), (408, "body.timeout"), "{pause}");
        assert!(
            end.took >= Duration::from_millis(took) && end.took < Duration::from_millis(took + 20_000),
            "{:?}",
            end.took
        );
    }
    assert_eq!(held(&system).await, 0);
}

/// Started again with these keys of `server` besides.
async fn with_server_keys(mut system: System, keys: &str) -> System {
    let config = system.dir().join("config.yaml");
    let text = std::fs::read_to_string(&config).unwrap().replace("server:\n", &format!("server:\n{keys}\n"));
    std::fs::write(&config, text).unwrap();
    system.wavehouse.stop(Duration::from_secs(60)).await.unwrap();
    system.restart().await.unwrap();
    system
}
