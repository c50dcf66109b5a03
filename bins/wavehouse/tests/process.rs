//! The real process: its signals, its exit codes, and its logs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed step fails the test")]

use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};
use tempfile::TempDir;
use wh_testkit::{Process, free_port, http};

const WAIT: Duration = Duration::from_secs(90);

struct Running {
    process: Process,
    port: u16,
    _folder: TempDir,
}

async fn serve(more: &[(&str, &str)]) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port().unwrap();
    let mut launch = Process::launch("wavehouse", env!("CARGO_BIN_EXE_wavehouse"))
        .current_dir(folder.path())
        .env("WH_SERVER_PORT", port.to_string())
        .env("WH_TENANT_DEFAULTS_CLICKHOUSE_URL", "http://127.0.0.1:1");
    for (name, value) in more {
        launch = launch.env(name, value);
    }
    let mut process = launch.start().unwrap();
    let url = format!("http://127.0.0.1:{port}/version");
    process
        .ready(WAIT, "the api to answer", || {
            let asked = http::get(url.clone()).send();
            async {
                anyhow::ensure!(asked.await?.status == 200);
                Ok::<_, anyhow::Error>(())
            }
        })
        .await
        .unwrap();
    Running { process, port, _folder: folder }
}

impl Running {
    async fn logged(&mut self, words: &str) {
        let log = self.process.log_file().to_owned();
        self.process
            .ready(WAIT, "a line in the log", || {
                let found = std::fs::read_to_string(&log).unwrap_or_default().contains(words);
                async move { found.then_some(()) }
            })
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn sigterm_stops_with_0_and_sighup_does_nothing_but_say_so() {
    let mut running = serve(&[("WH_LOG_FORMAT", "json")]).await;
    let pid = Pid::from_raw(i32::try_from(running.process.id()).unwrap()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    running.logged("SIGHUP is ignored").await;
    assert_eq!(http::get(format!("http://127.0.0.1:{}/livez", running.port)).send().await.unwrap().status, 200);
    running.process.terminate().unwrap();
    assert_eq!(running.process.wait(WAIT).await.unwrap().code(), Some(0), "{}", running.process.log());
    let log = running.process.log();
    assert!(log.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{log}");
    assert!(log.contains("SIGTERM: stopping") && log.contains("\"message\":\"stopped\""), "{log}");
}

#[tokio::test]
async fn a_second_signal_ends_at_once_with_1() {
    let mut running = serve(&[("WH_SERVER_SHUTDOWN_TIMEOUT", "1h"), ("WH_AUTH_OPERATOR_KEY", "k")]).await;
    // a body that never comes keeps a request in flight; the interim answer says that it is awaited
    let mut slow = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
    let head =
        "POST /v1/ops/query HTTP/1.1\r\nhost: a\r\nauthorization: Operator k\r\ncontent-type: application/json\r\n";
    write!(slow, "{head}content-length: 9\r\nexpect: 100-continue\r\n\r\n").unwrap();
    let mut interim = [0; 12];
    slow.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100");
    running.process.interrupt().unwrap();
    running.logged("SIGINT: stopping").await;
    running.process.terminate().unwrap();
    assert_eq!(running.process.wait(WAIT).await.unwrap().code(), Some(1), "{}", running.process.log());
    assert!(running.process.log().contains("SIGTERM again"), "{}", running.process.log());
    drop(slow);
}

#[tokio::test]
async fn the_time_for_a_stop_is_kept() {
    let mut running = serve(&[("WH_SERVER_SHUTDOWN_TIMEOUT", "0")]).await;
    let idle = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
    running.process.terminate().unwrap();
    assert_eq!(running.process.wait(Duration::from_secs(8)).await.unwrap().code(), Some(0));
    drop(idle);
}

#[tokio::test]
async fn what_cannot_start_is_told_once_and_ends_with_1() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    for level in ["info", "off"] {
        let mut process = Process::launch("wavehouse", env!("CARGO_BIN_EXE_wavehouse"))
            .current_dir(folder.path())
            .arg("serve")
            .env("WH_SERVER_PORT", &port)
            .env("WH_LOG_LEVEL", level)
            .start()
            .unwrap();
        assert_eq!(process.wait(WAIT).await.unwrap().code(), Some(1));
        assert_eq!(process.log().matches("the port is taken by another process").count(), 1, "{}", process.log());
    }
}
