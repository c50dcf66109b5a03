//! What the tests of dead letters ask and say.

use anyhow::Context as _;
use procs::{Member, System};
use serde_json::Value;
use std::{collections::BTreeMap, process::Stdio, time::Duration};
use wh_testkit::{
    fault::{Action, Proxy, Rule, RuleId},
    http, until, workspace,
};

pub(crate) const WAIT: Duration = Duration::from_secs(60);
pub(crate) const NDJSON: &str = "application/x-ndjson";

pub(crate) fn row(id: u64, note: &str) -> String {
    format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"{note}"}}"#)
}

/// What a command gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `wavehouse dlq` as an operator does beside the process.
pub(crate) async fn dlq(system: &System, line: &[&str]) -> Ran {
    let output = tokio::process::Command::new(workspace::binary("wavehouse", "wavehouse").unwrap())
        .arg("dlq")
        .args(line)
        .arg("--config")
        .arg(system.dir().join("config.yaml"))
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// The first answer of a command with `--json`.
pub(crate) async fn json(system: &System, line: &[&str]) -> Value {
    let line: Vec<&str> = line.iter().copied().chain(["--json"]).collect();
    let ran = dlq(system, &line).await;
    serde_json::from_str(ran.out.lines().next().unwrap_or_default()).unwrap_or_else(|_| panic!("{line:?}: {ran:?}"))
}

/// A count of letters by code.
fn by_code(counts: &Value) -> BTreeMap<String, i64> {
    assert_eq!(counts["complete"], true, "{counts}");
    let mut codes = BTreeMap::new();
    for table in counts["tables"].as_array().unwrap() {
        for (code, count) in table["codes"].as_object().unwrap() {
            *codes.entry(code.clone()).or_default() += count.as_i64().unwrap();
        }
    }
    codes
}

/// The same as the counters of these processes have it: parked, less purged and dropped.
async fn counted(urls: &[String]) -> anyhow::Result<BTreeMap<String, i64>> {
    let mut text = String::new();
    for url in urls {
        text.push_str(&http::get(url.as_str()).send().await?.text());
    }
    let mut codes = BTreeMap::new();
    for line in text.lines() {
        let sign = match line.split('{').next() {
            Some("wavehouse_dead_letters_parked_total") => 1,
            Some("wavehouse_dead_letters_purged_total" | "wavehouse_dead_letters_dropped_total") => -1,
            _ => continue,
        };
        let code = line.split("code=\"").nth(1).and_then(|rest| rest.split('"').next()).context("a code")?.to_owned();
        let count: i64 = line.rsplit(' ').next().context("a count")?.parse()?;
        *codes.entry(code).or_default() += sign * count;
    }
    codes.retain(|_, count| *count != 0);
    Ok(codes)
}

pub(crate) async fn depth(system: &System, letters: usize) -> Vec<Value> {
    until(WAIT, "so many dead letters", || async {
        let page = json(system, &["list"]).await;
        let found = page["letters"].as_array().unwrap().clone();
        if found.len() == letters { Ok(found) } else { anyhow::bail!("{} of {letters}: {page}", found.len()) }
    })
    .await
    .unwrap()
}

pub(crate) async fn constrained() -> System {
    let engine = wh_testkit::clickhouse::Server::start().await.unwrap();
    engine.query(procs::TABLE).await.unwrap();
    engine.query("ALTER TABLE events ADD CONSTRAINT short CHECK length(note) < 20").await.unwrap();
    System::over(engine, "ingest:\n  batch_wait: 200ms").await.unwrap()
}

/// A request to check, replay or purge.
pub(crate) fn request(api: &Member, what: &str, body: &Value) -> http::Request {
    let request = http::post(api.url(&format!("/v1/ops/dead-letters/{what}")), body.to_string());
    request.header("content-type", "application/json").header("x-operator-key", "an-operator-key").timeout(WAIT * 2)
}

pub(crate) async fn act(api: &Member, what: &str, body: Value) -> Value {
    let reply = request(api, what, &body).send().await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json().unwrap()
}

/// Has every insert put off until the rule is taken away, so that what is posted meanwhile waits.
pub(crate) fn hold_up(proxy: &Proxy) -> RuleId {
    proxy.add(Rule::insert(Action::Status { status: 503, body: "later".into() }))
}

/// Waits until the store has these letters, by code, and the counters of these processes the same: a counter may be a
/// moment behind.
async fn same(urls: &[String], expected: &[(&str, i64)], counts: impl AsyncFn() -> anyhow::Result<Value>) {
    let expected: BTreeMap<String, i64> = expected.iter().map(|(code, count)| ((*code).to_owned(), *count)).collect();
    until(WAIT, "store and counters to have what is expected", || async {
        let stored = by_code(&counts().await?);
        let counted = counted(urls).await?;
        anyhow::ensure!(stored == expected && counted == expected, "stored {stored:?}, counted {counted:?}");
        Ok(())
    })
    .await
    .unwrap();
}

/// Waits until the process's store and its counters have these, and no others.
pub(crate) async fn agrees(system: &System, expected: &[(&str, i64)]) {
    same(&[system.url("/metrics")], expected, async || Ok(json(system, &["counts"]).await)).await;
}

/// The same of processes on NATS, of which the first has the api.
pub(crate) async fn agree(members: [&Member; 2], expected: &[(&str, i64)]) {
    let urls = members.map(|member| member.url("/metrics"));
    same(&urls, expected, async || members[0].ops("/v1/ops/dead-letters/counts").await).await;
}
