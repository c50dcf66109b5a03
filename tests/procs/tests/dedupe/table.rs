//! `dedupe.backend: dynamodb` from the configuration to HTTP: the table is looked at before anything is taken, and what
//! opens it stays secret.

use super::{WAIT, dynamodb_at, emulator};
use procs::{System, TABLE, config};
use serde_json::{Value, json};
use std::{fs, path::Path};
use wh_testkit::{
    Process, clickhouse, dynamodb,
    fault::{Action, Proxy, Rule},
    free_port, http, until, workspace,
};

const SECRET: &str = "a-secret-that-nobody-prints";
const IDS: &str = "  dedupe: {enabled: true, id_field: id}\n";

fn env() -> Vec<(&'static str, String)> {
    vec![("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE".to_owned()), ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned())]
}

async fn over(url: &str, more: &str) -> System {
    let engine = clickhouse::Server::start().await.unwrap();
    engine.query(TABLE).await.unwrap();
    let clickhouse = engine.url();
    System::in_env(engine, &clickhouse, env(), &format!("{IDS}{}{more}", dynamodb_at(url, ""))).await.unwrap()
}

async fn post(system: &System, ids: std::ops::Range<u64>) -> (u16, Value) {
    let row = |id| format!("{{\"id\":{id},\"at\":\"2026-01-01 00:00:00.000\",\"note\":\"n\"}}\n");
    let reply = system.post("application/x-ndjson", ids.map(row).collect::<String>()).await.unwrap();
    (reply.status.as_u16(), reply.json().unwrap())
}

/// Posts until it is not told to come again.
async fn posted(system: &System, ids: std::ops::Range<u64>) -> Value {
    until(WAIT, "the events to be taken", || async {
        let (status, answer) = post(system, ids.clone()).await;
        if status == 200 { Ok(answer) } else { Err(answer) }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_table_is_made_on_an_emulator_ids_outlive_the_process_and_keys_are_not_logged() {
    let ids = dynamodb::Server::start().await.unwrap();
    let mut system = over(&ids.url(), "log: {level: trace}\n").await;
    assert_eq!(posted(&system, 0..20).await["accepted"], 20);
    assert_eq!(posted(&system, 10..30).await["duplicates"], 10);
    let before = system.wavehouse.log();
    assert!(system.wavehouse.stop(WAIT).await.unwrap().success());
    system.restart().await.unwrap();
    assert_eq!(posted(&system, 0..40).await["duplicates"], 30);
    system.holds_ids(40, WAIT).await.unwrap();
    assert_eq!(system.number("SELECT count() FROM events").await.unwrap(), 40);
    for log in [before, system.wavehouse.log()] {
        assert!(log.contains("the dedupe table ids is there"), "{log}");
        assert!(!log.contains(SECRET), "the secret is in the log");
    }
}

#[tokio::test]
async fn a_store_that_is_away_at_the_start_is_waited_for_and_other_tables_go_on() {
    let ids = dynamodb::Server::start().await.unwrap();
    let proxy = Proxy::start(ids.url()).await.unwrap();
    proxy.down().await;
    let system = over(&proxy.url(), "").await;
    let (status, answer) = post(&system, 0..5).await;
    assert_eq!((status, &answer["code"]), (503, &"dedupe.unavailable".into()), "{answer}");
    let ready = http::get(system.url("/readyz")).send().await.unwrap();
    assert!(ready.status == 200 && ready.text().contains("dedupe"), "{} {}", ready.status, ready.text());
    proxy.up().await.unwrap();
    assert_eq!(posted(&system, 0..5).await["accepted"], 5);
    system.holds_ids(5, WAIT).await.unwrap();
}

/// Starts the binary on a table that cannot be used; gives its exit code and what it said.
async fn refused(dir: &Path, url: &str, create: bool) -> (Option<i32>, String) {
    let dedupe = dynamodb_at(url, "").replace("create_table: true", &format!("create_table: {create}"));
    let (key, data, port) = (dir.join("key"), dir.join("data"), free_port().unwrap());
    fs::write(&key, "k").unwrap();
    let text = config(&data, &key, port, "http://127.0.0.1:1", &format!("{IDS}{dedupe}log: {{level: debug}}\n"));
    fs::write(dir.join("config.yaml"), text).unwrap();
    let launch = Process::launch("wavehouse", workspace::binary("wavehouse", "wavehouse").unwrap())
        .args(["serve", "--config"])
        .arg(dir.join("config.yaml"));
    let launch = env().into_iter().fold(launch, |launch, (name, value)| launch.env(name, value));
    let mut process = launch.start().unwrap();
    let status = process.wait(WAIT).await.unwrap();
    assert!(!process.log().contains(SECRET), "the secret is in the log");
    (status.code(), process.log())
}

/// Makes the table `ids` with another key.
async fn create(url: &str, keys: &[(&str, &str, &str)]) {
    let of = |part: fn(&(&str, &str, &str)) -> Value| keys.iter().map(part).collect::<Vec<_>>();
    let table = json!({
        "TableName": "ids",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": of(|(name, role, _)| json!({ "AttributeName": name, "KeyType": role })),
        "AttributeDefinitions": of(|(name, _, ty)| json!({ "AttributeName": name, "AttributeType": ty })),
    });
    emulator(url, "CreateTable", &table).await;
}

#[tokio::test]
async fn a_table_that_cannot_be_used_ends_the_start_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dynamodb::Server::start().await.unwrap();
    let (code, said) = refused(dir.path(), &missing.url(), false).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("dedupe cannot be used") && said.contains("table ids"), "{said}");

    let forbidden = Proxy::start(missing.url()).await.unwrap();
    let body = r#"{"__type":"com.amazonaws.dynamodb.v20120810#AccessDeniedException","Message":"you may not"}"#;
    let headers = vec![("content-type".to_owned(), "application/x-amz-json-1.0".to_owned())];
    forbidden.add(Rule::any(Action::Reply { status: 400, headers, body: body.into(), cut: false }));
    let (code, said) = refused(dir.path(), &forbidden.url(), false).await;
    assert!(code == Some(1) && said.contains("AccessDeniedException"), "{said}");

    for keys in [&[("id", "HASH", "S")][..], &[("pk", "HASH", "N")], &[("pk", "HASH", "S"), ("sk", "RANGE", "S")]] {
        let other = dynamodb::Server::start().await.unwrap();
        create(&other.url(), keys).await;
        // one that is there is never made anew
        for create in [false, true] {
            let (code, said) = refused(dir.path(), &other.url(), create).await;
            assert_eq!(code, Some(1), "{keys:?} {said}");
            assert!(said.contains("the table ids must have the string pk as its only key"), "{keys:?} {said}");
        }
    }
}
