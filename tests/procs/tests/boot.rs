//! Boot: what cannot work says so by name and ends; what may still come does not end anything.

use procs::{System, TABLE, config};
use std::{fs, path::Path, time::Duration};
use wh_testkit::{Process, clickhouse, free_port, http, until, workspace};

const WAIT: Duration = Duration::from_secs(90);

/// Starts the binary on a configuration that cannot work; gives its exit code and what it said.
async fn refused(dir: &Path, text: &str) -> (i32, String) {
    fs::write(dir.join("config.yaml"), text).unwrap();
    fs::write(dir.join("key"), "k").unwrap();
    let mut process = Process::launch("wavehouse", workspace::binary("wavehouse", "wavehouse").unwrap())
        .args(["serve", "--config"])
        .arg(dir.join("config.yaml"))
        .start()
        .unwrap();
    let status = process.wait(WAIT).await.unwrap();
    (status.code().unwrap_or(-1), process.log())
}

#[tokio::test]
async fn a_data_folder_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a-file");
    fs::write(&file, "not a folder").unwrap();
    for data in [file.clone(), file.join("below"), "/proc/nowhere".into()] {
        let text = config(&data, &dir.path().join("key"), free_port().unwrap(), "http://127.0.0.1:1", "");
        let (code, said) = refused(dir.path(), &text).await;
        assert_ne!(code, 0, "{said}");
        assert!(said.contains(data.to_str().unwrap()), "{data:?} is not named: {said}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let text = config(&dir.path().join("data"), &dir.path().join("key"), port, "http://127.0.0.1:1", "");
    let (code, said) = refused(dir.path(), &text).await;
    assert_ne!(code, 0);
    assert!(said.contains(&port.to_string()), "{said}");
}

#[tokio::test]
async fn every_finding_of_the_configuration_is_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let more = "ingest:\n  batch_rws: 5\n  batch_wait: soon\nnonsense: 1";
    let text = config(&dir.path().join("data"), &dir.path().join("key"), 8080, "http://127.0.0.1:1", more);
    let (code, said) = refused(dir.path(), &text).await;
    assert_eq!(code, 64, "{said}");
    for part in ["batch_rws", "batch_rows", "batch_wait", "nonsense"] {
        assert!(said.contains(part), "{part} is not told: {said}");
    }
}

#[tokio::test]
async fn a_second_process_on_the_same_data_is_refused() {
    let system = System::start().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let data = system.dir().join("data");
    let text = config(&data, &dir.path().join("key"), free_port().unwrap(), &system.engine.url(), "");
    let (code, said) = refused(dir.path(), &text).await;
    assert_ne!(code, 0);
    assert!(said.contains(&system.wavehouse.id().to_string()), "the owner's process id is not named: {said}");
}

#[tokio::test]
async fn it_boots_without_clickhouse_and_takes_events_once_it_knows_the_schema() {
    let mut engine = clickhouse::Server::start().await.unwrap();
    engine.query(TABLE).await.unwrap();
    engine.crash().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (port, key) = (free_port().unwrap(), dir.path().join("key"));
    fs::write(&key, "k").unwrap();
    fs::write(dir.path().join("config.yaml"), config(&dir.path().join("data"), &key, port, &engine.url(), "")).unwrap();
    let mut process = Process::launch("wavehouse", workspace::binary("wavehouse", "wavehouse").unwrap())
        .args(["serve", "--config"])
        .arg(dir.path().join("config.yaml"))
        .start()
        .unwrap();
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    process
        .ready(WAIT, "the port to be open", || {
            let live = http::get(url("/livez")).send();
            async { live.await.map(|reply| (reply.status == 200).then_some(())).ok().flatten() }
        })
        .await
        .unwrap();
    assert_eq!(http::get(url("/readyz")).send().await.unwrap().status, 503);
    let event = r#"{"id":1,"at":"2026-01-01 00:00:00.000","note":"first"}"#;
    let post = || http::post(url("/v1/ingest?table=events"), event).header("content-type", "application/json").send();
    let reply = post().await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.header("retry-after").is_some()), (503, true), "{}", reply.text());

    engine.restart().await.unwrap();
    until(Duration::from_secs(60), "the event to be accepted", || async {
        let reply = post().await?;
        if reply.status == 200 { Ok(()) } else { anyhow::bail!("{}", reply.text()) }
    })
    .await
    .unwrap();
    until(WAIT, "the event in ClickHouse", || async {
        Ok::<_, anyhow::Error>((engine.query("SELECT count() FROM events").await?.trim() == "1").then_some(()))
    })
    .await
    .unwrap();
    assert!(process.stop(WAIT).await.unwrap().success());
}

/// A user of the profile `readonly` looks alive: it discovers. Whoever set it up must read what is wrong.
#[tokio::test]
async fn a_clickhouse_user_that_may_only_read_is_told_plainly_everywhere() {
    let engine = clickhouse::Server::start().await.unwrap();
    engine.query(TABLE).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (port, key) = (free_port().unwrap(), dir.path().join("key"));
    fs::write(&key, "k").unwrap();
    let text = config(&dir.path().join("data"), &key, port, &engine.url(), "");
    let user = "    database: default\n    username: ro\n    password: ro\n";
    fs::write(dir.path().join("config.yaml"), text.replace("    database: default\n", user)).unwrap();
    let binary = || Process::launch("wavehouse", workspace::binary("wavehouse", "wavehouse").unwrap());
    let mut process = binary().args(["serve", "--config"]).arg(dir.path().join("config.yaml")).start().unwrap();

    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    until(WAIT, "readiness to name the setting", || async {
        let reply = http::get(url("/readyz")).send().await?;
        let body = reply.json()?;
        let reason = body["degraded"]["clickhouse of tenant 0"].as_str().unwrap_or_default();
        anyhow::ensure!(body["status"] == "degraded" && reason.contains("set its setting readonly to 0"), "{body}");
        Ok(())
    })
    .await
    .unwrap();

    let query = http::post(url("/v1/query?table=events"), r#"{"columns":["id"]}"#);
    let reply = query.header("content-type", "application/json").send().await.unwrap();
    let body = reply.json().unwrap();
    assert_eq!((reply.status.as_u16(), body["code"].as_str()), (502, Some("clickhouse.misconfigured")), "{body}");
    assert!(body["error"].as_str().unwrap().contains("set its setting readonly to 0"), "{body}");

    let event = http::post(url("/v1/ingest?table=events"), r#"{"id":1,"at":"2026-01-01","note":"x"}"#);
    let reply = event.header("content-type", "application/json").send().await.unwrap();
    assert_eq!(reply.status, 200, "it is kept: {}", reply.text());
    until(WAIT, "the log to name the setting", || async {
        anyhow::ensure!(process.log().contains("set its setting readonly to 0"), "{}", process.log());
        Ok(())
    })
    .await
    .unwrap();
    process.stop(WAIT).await.unwrap();

    let mut doctor = binary().args(["doctor", "--config"]).arg(dir.path().join("config.yaml")).start().unwrap();
    let status = doctor.wait(WAIT).await.unwrap();
    assert_eq!(status.code(), Some(1), "{}", doctor.log());
    assert!(doctor.log().contains("set its setting readonly to 0"), "{}", doctor.log());
}

#[tokio::test]
async fn tables_without_the_column_that_tells_their_events_apart_are_named_in_the_log() {
    let system = System::with("  dedupe: {enabled: true, id_field: uid}").await.unwrap();
    until(WAIT, "the log to name the table", || async {
        let log = system.wavehouse.log();
        let told = log.contains("1 table has no column \"uid\"") && log.contains("(events)");
        anyhow::ensure!(told, "{log}");
        Ok(())
    })
    .await
    .unwrap();
}
