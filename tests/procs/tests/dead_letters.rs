//! Dead letters of the real process in front of the real engine, through `wavehouse dlq`: parked, seen, tried, replayed.

use procs::{Fleet, Member, Setup, System};
use serde_json::Value;
use std::{collections::BTreeMap, process::Stdio, time::Duration};
use wh_testkit::{http, until, workspace};

const WAIT: Duration = Duration::from_secs(30);
const NDJSON: &str = "application/x-ndjson";

fn row(id: u64, note: &str) -> String {
    format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"{note}"}}"#)
}

/// What a command gave.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

/// Runs `wavehouse dlq` as an operator does beside the process.
async fn dlq(system: &System, line: &[&str]) -> Ran {
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
async fn json(system: &System, line: &[&str]) -> Value {
    let line: Vec<&str> = line.iter().copied().chain(["--json"]).collect();
    let ran = dlq(system, &line).await;
    serde_json::from_str(ran.out.lines().next().unwrap_or_default()).unwrap_or_else(|_| panic!("{line:?}: {ran:?}"))
}

/// How many letters there are, by code, as the store has them.
async fn stored(system: &System) -> BTreeMap<String, i64> {
    by_code(&json(system, &["counts"]).await)
}

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
async fn counted_by(urls: &[String]) -> BTreeMap<String, i64> {
    let mut text = String::new();
    for url in urls {
        text.push_str(&http::get(url.as_str()).send().await.unwrap().text());
    }
    let mut codes = BTreeMap::new();
    for line in text.lines() {
        let sign = match line.split('{').next() {
            Some("wavehouse_dead_letters_parked_total") => 1,
            Some("wavehouse_dead_letters_purged_total" | "wavehouse_dead_letters_dropped_total") => -1,
            _ => continue,
        };
        let code = line.split("code=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let count: i64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        *codes.entry(code).or_default() += sign * count;
    }
    codes.retain(|_, count| *count != 0);
    codes
}

async fn counted(system: &System) -> BTreeMap<String, i64> {
    counted_by(&[system.url("/metrics")]).await
}

async fn depth(system: &System, letters: usize) -> Vec<Value> {
    until(WAIT, "so many dead letters", || async {
        let page = json(system, &["list"]).await;
        let found = page["letters"].as_array().unwrap().clone();
        if found.len() == letters { Ok(found) } else { anyhow::bail!("{} of {letters}: {page}", found.len()) }
    })
    .await
    .unwrap()
}

async fn constrained() -> System {
    let engine = wh_testkit::clickhouse::Server::start().await.unwrap();
    engine.query(procs::TABLE).await.unwrap();
    engine.query("ALTER TABLE events ADD CONSTRAINT short CHECK length(note) < 20").await.unwrap();
    System::over(engine, "ingest:\n  batch_wait: 200ms").await.unwrap()
}

#[tokio::test]
async fn a_row_is_parked_found_tried_replayed_and_stored_once() {
    let system = constrained().await;
    let long = "x".repeat(30);
    let body = [row(1, "good"), row(2, &long), row(3, &long)].join("\n");
    assert_eq!(system.post(NDJSON, body).await.unwrap().status, 200);
    let letters = depth(&system, 2).await;
    system.holds_ids(1, WAIT).await.unwrap();
    assert_eq!(letters[0]["code"], "469", "{letters:?}");
    assert_eq!(
        (stored(&system).await, counted(&system).await),
        (BTreeMap::from([("469".into(), 2)]), BTreeMap::from([("469".into(), 2)]))
    );
    let id = letters[0]["id"].as_str().unwrap();

    let shown = dlq(&system, &["show", id]).await;
    assert!(shown.code == 0 && shown.out.contains(&long) && shown.out.contains("469"), "{shown:?}");
    let table = dlq(&system, &["list", "--reason", "SHORT"]).await;
    assert!(table.out.starts_with("ID ") && table.out.lines().count() == 3, "{table:?}");
    assert!(dlq(&system, &["list", "--code", "27"]).await.out.lines().count() == 1);

    // what ingest cannot tell, a check cannot either; what it can, it says
    let checked = dlq(&system, &["check", id, "--rename", "note=nothing"]).await;
    assert!(checked.code == 1 && checked.out.contains("column.not_found"), "{checked:?}");
    let checked = dlq(&system, &["check", id, "--set", "note=\"short\""]).await;
    assert!(checked.code == 0 && checked.out.contains(r#""note":"short""#), "{checked:?}");
    depth(&system, 2).await;

    let unasked = dlq(&system, &["replay", id, "--set", "note=\"short\""]).await;
    assert!(unasked.code == 2 && unasked.err.contains("--yes"), "{unasked:?}");
    let replayed = dlq(&system, &["replay", id, "--set", "note=\"short\"", "--yes"]).await;
    assert!(replayed.code == 0 && replayed.out.contains("1 replayed, 1 purged"), "{replayed:?}");
    system.holds_ids(2, WAIT).await.unwrap();
    depth(&system, 1).await;

    // not fixed: it comes back under another id
    let again = dlq(&system, &["replay", "--all", "--yes"]).await;
    assert_eq!(again.code, 0, "{again:?}");
    let other = until(WAIT, "the row to be parked again", || async {
        let page = json(&system, &["list"]).await;
        let letter = page["letters"][0].clone();
        if letter.is_null() || letter["id"] == letters[1]["id"] {
            anyhow::bail!("{page}")
        }
        Ok(letter)
    })
    .await
    .unwrap();
    assert!(other["body"].as_str().unwrap().contains(&long));
    assert_eq!(stored(&system).await, counted(&system).await);
    let purged = dlq(&system, &["purge", "--code", "469", "--yes"]).await;
    assert!(purged.code == 0 && purged.out.contains("1 purged"), "{purged:?}");
    let gone = dlq(&system, &["purge", id, id, "--yes"]).await;
    assert!(gone.code == 1 && gone.out.contains("0 looked at, 1 not found"), "{gone:?}");
    depth(&system, 0).await;
    assert_eq!((stored(&system).await, counted(&system).await), (BTreeMap::new(), BTreeMap::new()));
    assert_eq!(
        system.engine.query("SELECT id, note FROM events ORDER BY id FORMAT TSV").await.unwrap(),
        "1\tgood\n2\tshort"
    );
}

#[tokio::test]
async fn a_replay_that_died_before_its_letter_was_removed_stores_the_row_once() {
    let mut system = constrained().await;
    let body = (1..=50).map(|id| row(id, &"x".repeat(30))).collect::<Vec<_>>().join("\n");
    assert_eq!(system.post(NDJSON, body).await.unwrap().status, 200);
    depth(&system, 50).await;
    let edit = ["--set", "note=\"fixed\"", "--yes"];
    let published = dlq(&system, &[&["replay", "--all", "--keep"], &edit[..]].concat()).await;
    assert!(published.code == 0 && published.out.contains("50 replayed"), "{published:?}");
    system.wavehouse.kill().unwrap();
    system.restart().await.unwrap();
    depth(&system, 50).await;
    let again = dlq(&system, &[&["replay", "--all"], &edit[..]].concat()).await;
    assert!(again.code == 0 && again.out.contains("50 duplicates, 50 purged"), "{again:?}");
    depth(&system, 0).await;
    system.holds_ids(50, WAIT).await.unwrap();
    // what was in the queue is settled, and nothing more comes
    until(WAIT, "the queue to be empty", || async {
        let metrics = http::get(system.url("/v1/ops/queue")).header("x-operator-key", "an-operator-key").send().await?;
        let left = metrics.json()?["tenants"]["0"]["unsettled_rows"].as_u64();
        if left == Some(0) { Ok(()) } else { anyhow::bail!("{left:?} rows") }
    })
    .await
    .unwrap();
    assert_eq!(system.number("SELECT uniqExact(id) FROM events WHERE note = 'fixed'").await.unwrap(), 50);
}

#[tokio::test]
async fn rows_whose_column_was_dropped_arrive_by_themselves_when_it_is_back() {
    let engine = wh_testkit::clickhouse::Server::start().await.unwrap();
    engine.query(procs::TABLE).await.unwrap();
    engine.query("ALTER TABLE events ADD COLUMN extra UInt32 DEFAULT 7").await.unwrap();
    // rows wait in the worker while the column goes
    let system = System::over(engine, "ingest:\n  batch_wait: 3s").await.unwrap();
    let rows: Vec<String> = (1..=20)
        .map(|id| format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"n","extra":{}}}"#, id * 10))
        .chain((21..=30).map(|id| row(id, "plain")))
        .collect();
    assert_eq!(system.post(NDJSON, rows.join("\n")).await.unwrap().status, 200);
    system.engine.query("ALTER TABLE events DROP COLUMN extra").await.unwrap();
    let letters = depth(&system, 20).await;
    assert!(letters.iter().all(|letter| letter["retry_until"].is_string()), "{letters:?}");
    system.holds_ids(10, WAIT).await.unwrap();
    assert_eq!(stored(&system).await, counted(&system).await);
    assert!(dlq(&system, &["list", "--held"]).await.out.contains("held"));

    system.engine.query("ALTER TABLE events ADD COLUMN extra UInt32 DEFAULT 7").await.unwrap();
    system.holds_ids(30, WAIT).await.unwrap();
    depth(&system, 0).await;
    assert_eq!(counted(&system).await, BTreeMap::new());
    let found = system.engine.query("SELECT count(), sum(extra) FROM events WHERE id <= 20 FORMAT TSV").await.unwrap();
    assert_eq!(found.trim(), "20\t2100", "each once, none with a default in its place");
}

#[tokio::test]
async fn rows_of_a_table_that_is_gone_for_good_are_parked_under_its_code() {
    let engine = wh_testkit::clickhouse::Server::start().await.unwrap();
    engine.query(procs::TABLE).await.unwrap();
    let system = System::over(engine, "ingest:\n  batch_wait: 2s\n  missing_table_hold: 1s").await.unwrap();
    let body = (1..=5).map(|id| row(id, "n")).collect::<Vec<_>>().join("\n");
    assert_eq!(system.post(NDJSON, body).await.unwrap().status, 200);
    system.engine.query("DROP TABLE events SYNC").await.unwrap();
    let letters = depth(&system, 5).await;
    assert_eq!(letters[0]["code"], "60", "{letters:?}");
    assert_eq!((stored(&system).await, counted(&system).await["60"]), (BTreeMap::from([("60".into(), 5)]), 5));
    let checked = dlq(&system, &["check", "--all"]).await;
    assert!(checked.code == 1 && checked.out.contains("table.not_found"), "{checked:?}");
    system.engine.query(procs::TABLE).await.unwrap();
    let replayed = until(WAIT, "the table to be known", || async {
        let ran = dlq(&system, &["replay", "--table", "events", "--yes"]).await;
        if ran.code == 0 { Ok(ran) } else { anyhow::bail!("{ran:?}") }
    })
    .await
    .unwrap();
    assert!(replayed.out.contains("5 replayed, 5 purged"), "{replayed:?}");
    system.holds_ids(5, WAIT).await.unwrap();
    assert_eq!(system.number("SELECT count() FROM events").await.unwrap(), 5);
}

async fn act(api: &Member, what: &str, body: Value) -> Value {
    let request = http::post(api.url(&format!("/v1/ops/dead-letters/{what}")), body.to_string());
    let request = request.header("content-type", "application/json").header("x-operator-key", "an-operator-key");
    let reply = request.send().await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json().unwrap()
}

/// Waits until the store has these, and says that the counters of both processes agree.
async fn agree(api: &Member, ingest: &Member, expected: &[(&str, i64)]) {
    let expected: BTreeMap<String, i64> = expected.iter().map(|(code, count)| ((*code).to_owned(), *count)).collect();
    until(WAIT, "the dead letters that are expected", || async {
        let found = by_code(&api.ops("/v1/ops/dead-letters/counts").await?);
        if found == expected { Ok(()) } else { anyhow::bail!("{found:?}") }
    })
    .await
    .unwrap();
    assert_eq!(counted_by(&[api.url("/metrics"), ingest.url("/metrics")]).await, expected);
}

#[tokio::test]
async fn on_nats_counters_by_code_agree_with_the_store_whatever_parks_and_removes() {
    let more = "ingest: {batch_wait: 2s}".to_owned();
    let fleet = Fleet::new(Setup { partitions: 1, shards: 2, more, ..Setup::default() }).await.unwrap();
    fleet.engine.query(procs::TABLE).await.unwrap();
    fleet.engine.query("ALTER TABLE events ADD CONSTRAINT short CHECK length(note) < 20").await.unwrap();
    fleet.engine.query("ALTER TABLE events ADD COLUMN extra UInt32 DEFAULT 7").await.unwrap();
    let mut api = fleet.api("api").await.unwrap();
    let mut ingest = fleet.ingest("ingest").await.unwrap();

    let long = "x".repeat(30);
    let body = [row(1, "good"), row(2, &long), row(3, &long)].join("\n");
    assert_eq!(api.post("events", body).await.unwrap().status, 200);
    fleet.nats.operator().request("wh.ingest.0.0.0.events", "not a block").await.unwrap();
    agree(&api, &ingest, &[("469", 2), ("block.unreadable", 1)]).await;

    let edit = serde_json::json!([{"op": "set", "column": "note", "value": "short"}]);
    let ask = serde_json::json!({"all": true, "edit": edit});
    let checked = act(&api, "check", ask.clone()).await;
    assert_eq!((&checked["accepted"], &checked["refused"]), (&2.into(), &1.into()), "{checked}");
    let replayed = act(&api, "replay", ask).await;
    assert_eq!((&replayed["replayed"], &replayed["purged"]), (&2.into(), &2.into()), "{replayed}");
    agree(&api, &ingest, &[("block.unreadable", 1)]).await;

    let rows: Vec<String> = (11..=30)
        .map(|id| format!(r#"{{"id":{id},"at":"2026-01-01 00:00:00.000","note":"n","extra":{}}}"#, id * 10))
        .collect();
    assert_eq!(api.post("events", rows.join("\n")).await.unwrap().status, 200);
    fleet.engine.query("ALTER TABLE events DROP COLUMN extra").await.unwrap();
    until(WAIT, "rows to be held", || async {
        let page = api.ops("/v1/ops/dead-letters?held=true").await?;
        let held = page["letters"].as_array().map_or(0, Vec::len);
        if held == 20 { Ok(()) } else { anyhow::bail!("{held} of 20") }
    })
    .await
    .unwrap();
    fleet.engine.query("ALTER TABLE events ADD COLUMN extra UInt32 DEFAULT 7").await.unwrap();
    until(WAIT, "the held rows to arrive", || async {
        let rows = fleet.number("SELECT count() FROM events WHERE id > 10").await?;
        if rows == 20 { Ok(()) } else { anyhow::bail!("{rows} of 20") }
    })
    .await
    .unwrap();
    agree(&api, &ingest, &[("block.unreadable", 1)]).await;
    let purged = act(&api, "purge", serde_json::json!({"filter": {"code": "block.unreadable"}})).await;
    assert_eq!(purged["purged"], 1, "{purged}");
    agree(&api, &ingest, &[]).await;
    let found =
        fleet.engine.query("SELECT count(), uniqExact(id), sum(extra) FROM events WHERE id > 10 FORMAT TSV").await;
    assert_eq!(found.unwrap().trim(), "20\t20\t4100", "each once, none with a default in its place");
    assert_eq!(fleet.number("SELECT count() FROM events").await.unwrap(), 23);
    ingest.stop(WAIT).await.unwrap();
    api.stop(WAIT).await.unwrap();
}
