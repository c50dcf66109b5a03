//! The operator's hands on dead letters: list, show, count, check, replay, purge.

use crate::rig::{Reply, Rig, Setup, get, keyed, post};
use serde_json::{Value, json};
use std::{fs, io::ErrorKind, path::Path, pin::pin, sync::Arc, time::Duration};
use wh_mq::{
    DeadLetter, DeadLetterId, Kind, embedded,
    faulty::{Fault, Op},
};
use wh_testkit::until;
use wh_types::{Cursor, Epoch, RowCursor, Table, Tenant, Timestamp};

fn letter(n: u64, table: &str, code: &str, body: &str) -> DeadLetter {
    DeadLetter {
        id: DeadLetterId(RowCursor { block: Cursor { epoch: Epoch(0xe), sequence: n }, row: 3 }),
        tenant: Tenant::default(),
        table: Table::new(table).unwrap(),
        body: body.to_owned().into(),
        reason: format!("Cannot parse row {n}"),
        code: code.to_owned(),
        column: Some("n".to_owned()),
        attempted: Timestamp::from_millis(i64::try_from(n).unwrap() * 1_000),
        received: Timestamp::from_millis(1),
        retry_until: None,
    }
}

fn id(n: u64) -> String {
    format!("0000000e-{n}.3")
}

async fn park(rig: &Rig, letters: &[DeadLetter]) {
    let kept = rig.broker.dead_letter(letters).await;
    assert!(kept.iter().all(Result::is_ok), "{kept:?}");
}

async fn ask(rig: &Rig, what: &str, body: Value) -> Reply {
    let request = post(&format!("/v1/ops/dead-letters/{what}"), "application/json", body.to_string());
    rig.send(keyed(request)).await
}

async fn listed(rig: &Rig, query: &str) -> Value {
    let reply = rig.send(keyed(get(&format!("/v1/ops/dead-letters{query}")))).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.value()
}

fn ids(page: &Value) -> Vec<String> {
    page["letters"].as_array().unwrap().iter().map(|letter| letter["id"].as_str().unwrap().to_owned()).collect()
}

/// Each result as id and status.
fn fates(reply: &Reply) -> Vec<(String, String)> {
    let value = reply.value();
    let results = value["results"].as_array().unwrap_or_else(|| panic!("no results: {value}"));
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    results.iter().map(|entry| (text(entry, "id"), text(entry, "status"))).collect()
}

fn expected(fates: &[(u64, &str)]) -> Vec<(String, String)> {
    fates.iter().map(|(n, status)| (id(*n), (*status).to_owned())).collect()
}

#[tokio::test]
async fn letters_are_listed_by_page_and_filter_and_shown_whole() {
    let rig = Rig::new();
    let mut letters: Vec<_> = (1..=7)
        .map(|n| letter(n, if n % 2 == 0 { "u" } else { "t" }, if n < 4 { "27" } else { "117" }, "{\"id\":1}"))
        .collect();
    letters[6].body = bytes::Bytes::from_static(b"\xff\xfe");
    letters[5].retry_until = Some(Timestamp::from_millis(32_503_680_000_000));
    park(&rig, &letters).await;

    let first = listed(&rig, "?limit=5").await;
    assert_eq!(ids(&first), (1..=5).map(id).collect::<Vec<_>>());
    let rest = listed(&rig, &format!("?limit=5&cursor={}", first["next"].as_str().unwrap())).await;
    assert_eq!((ids(&rest), &rest["next"]), (vec![id(6), id(7)], &Value::Null));
    for (query, found) in [
        ("?table=u", vec![2, 4, 6]),
        ("?code=27&table=t", vec![1, 3]),
        ("?reason=ROW%207", vec![7]),
        ("?from=1970-01-01T00:00:02Z&until=1970-01-01T00:00:04Z", vec![2, 3]),
        ("?held=true", vec![6]),
        ("?tenant=acme", vec![]),
    ] {
        assert_eq!(ids(&listed(&rig, query).await), found.into_iter().map(id).collect::<Vec<_>>(), "{query}");
    }
    let shown = rig.send(keyed(get(&format!("/v1/ops/dead-letters/{}", id(2))))).await.value();
    assert_eq!(
        shown,
        json!({"id": id(2), "table": "u", "code": "27", "column": "n", "reason": "Cannot parse row 2",
               "attempted": "1970-01-01T00:00:02.000000000Z", "received": "1970-01-01T00:00:00.001000000Z",
               "body_bytes": 8, "body": "{\"id\":1}", "body_encoding": "text"})
    );
    let binary = rig.send(keyed(get(&format!("/v1/ops/dead-letters/{}", id(7))))).await.value();
    assert_eq!((&binary["body"], &binary["body_encoding"]), (&json!("//4="), &json!("base64")));
    for (path, outcome) in [
        (id(99), (404, Some("dead_letter.not_found".to_owned()))),
        ("x".to_owned(), (400, Some("request.invalid".to_owned()))),
        (format!("{}?tenant=acme", id(2)), (404, Some("dead_letter.not_found".to_owned()))),
    ] {
        assert_eq!(rig.send(keyed(get(&format!("/v1/ops/dead-letters/{path}")))).await.outcome(), outcome);
    }
    for query in [
        "?limit=0",
        "?limit=1001",
        "?limit=x",
        "?cursor=7",
        "?held=1",
        "?from=now",
        "?reason=",
        "?tabel=u",
        "/counts?code=27",
    ] {
        let reply = rig.send(keyed(get(&format!("/v1/ops/dead-letters{query}")))).await;
        assert_eq!(reply.outcome(), (400, Some("request.invalid".to_owned())), "{query}");
    }
    let counts = rig.send(keyed(get("/v1/ops/dead-letters/counts"))).await.value();
    assert_eq!(
        counts,
        json!({"total": 7, "complete": true, "tables": [
            {"tenant": "0", "table": "t", "total": 4, "codes": {"27": 2, "117": 2}, "held": 0},
            {"tenant": "0", "table": "u", "total": 3, "codes": {"27": 1, "117": 2}, "held": 1}]})
    );
    let none = rig.send(keyed(get("/v1/ops/dead-letters/counts?tenant=acme"))).await.value();
    assert_eq!(none, json!({"total": 0, "complete": true, "tables": []}));
}

#[tokio::test]
async fn every_path_is_the_operators() {
    let rig = Rig::new();
    for path in ["", "/counts", "/0000000e-1.3"] {
        let reply = rig.send(get(&format!("/v1/ops/dead-letters{path}"))).await;
        assert_eq!(reply.outcome(), (401, Some("auth.required".to_owned())), "{path}");
    }
    for path in ["check", "replay", "purge"] {
        let request = post(&format!("/v1/ops/dead-letters/{path}"), "application/json", r#"{"all":true}"#);
        assert_eq!(rig.send(request).await.outcome(), (401, Some("auth.required".to_owned())), "{path}");
    }
}

#[tokio::test]
async fn a_check_says_what_would_happen_and_changes_nothing() {
    let rig = Rig::new();
    let letters = [
        letter(1, "t", "27", r#"{"id":1}"#),
        letter(2, "t", "16", r#"{"id":2,"gone":[1]}"#),
        letter(3, "nowhere", "60", r#"{"id":3}"#),
        letter(4, "t", "block.unreadable", "\u{1}"),
    ];
    park(&rig, &letters).await;
    let all = json!({"all": true});
    let plain = ask(&rig, "check", all.clone()).await;
    let fates_of_plain = [(1, "accepted"), (2, "refused"), (3, "refused"), (4, "refused")];
    assert_eq!(fates(&plain), expected(&fates_of_plain), "{}", plain.text());
    let results = plain.value()["results"].clone();
    assert_eq!(
        results[1],
        json!({"id": id(2), "table": "t", "status": "refused", "code": "column.not_found", "column": "gone",
               "reason": "column \"gone\" does not exist"})
    );
    assert_eq!((&results[2]["code"], &results[3]["code"]), (&json!("table.not_found"), &json!("json.malformed")));
    let edit = json!([{"op": "rename", "column": "gone", "to": "tags"}, {"op": "to_string", "column": "tags"},
                      {"op": "remove", "column": "tags"}, {"op": "set", "column": "note", "value": "x"}]);
    let edited = ask(&rig, "check", json!({"ids": [id(2)], "edit": edit})).await;
    assert_eq!(fates(&edited), expected(&[(2, "accepted")]));
    assert_eq!(edited.value()["results"][0]["row"], r#"{"id":2,"note":"x"}"#);
    assert_eq!(ids(&listed(&rig, "").await).len(), 4);
    assert!(rig.rows().await.is_empty(), "nothing was published");
}

#[tokio::test]
async fn a_replay_stores_each_row_once_and_removes_its_letter() {
    let rig = Rig::new();
    let mut letters: Vec<_> = (1..=600).map(|n| letter(n, "t", "27", &format!("{{\"id\":{n}}}"))).collect();
    letters[1].body = bytes::Bytes::from_static(br#"{"id":2, "note":"x y"}"#);
    letters[2].body = bytes::Bytes::from_static(br#"{"id":3,"nope":1}"#);
    park(&rig, &letters).await;

    let kept = ask(&rig, "replay", json!({"ids": [id(1)], "keep": true})).await.value();
    assert_eq!((&kept["replayed"], &kept["purged"]), (&json!(1), &json!(0)));
    let reply = ask(&rig, "replay", json!({"filter": {"table": "t"}, "limit": 500})).await;
    let value = reply.value();
    assert_eq!(
        (&value["matched"], &value["replayed"], &value["duplicates"], &value["refused"], &value["purged"]),
        (&json!(500), &json!(498), &json!(1), &json!(1), &json!(499)),
        "{}",
        value["stopped"]
    );
    let rest = json!({"filter": {"table": "t"}, "limit": 500, "cursor": value["next"]});
    let rest = ask(&rig, "replay", rest).await.value();
    assert_eq!((&rest["replayed"], &rest["next"]), (&json!(100), &Value::Null), "{rest}");
    assert_eq!(ids(&listed(&rig, "").await), [id(3)], "what was refused stays");

    let edit = json!([{"op": "remove", "column": "nope"}]);
    let fixed = ask(&rig, "replay", json!({"ids": [id(3), id(4)], "edit": edit})).await;
    assert_eq!(fates(&fixed), expected(&[(3, "replayed"), (4, "not_found")]));
    assert!(ids(&listed(&rig, "").await).is_empty());
    let mut rows = rig.rows().await;
    assert_eq!(rows.len(), 600);
    assert!(rows.contains(&r#"{"id":3}"#.to_owned()));
    rows.sort();
    rows.dedup();
    assert_eq!(rows.len(), 600, "each once");
}

#[tokio::test]
async fn a_second_replay_with_another_edit_is_no_duplicate_of_the_first() {
    let rig = Rig::new();
    park(&rig, &[letter(1, "t", "469", r#"{"id":1}"#), letter(2, "t", "16", r#"{"id":2}"#)]).await;
    let edited = |n: u64, note: &str, keep: bool| {
        let edit = json!([{"op": "set", "column": "note", "value": note}]);
        json!({"ids": [id(n)], "edit": edit, "keep": keep})
    };
    let first = ask(&rig, "replay", edited(1, "too long", true)).await;
    assert_eq!(fates(&first), expected(&[(1, "replayed")]));
    let same = ask(&rig, "replay", edited(1, "too long", true)).await;
    assert_eq!(fates(&same), expected(&[(1, "duplicate")]), "the same edit is the same block");
    let other = ask(&rig, "replay", edited(1, "fixed", false)).await;
    assert_eq!(fates(&other), expected(&[(1, "replayed")]), "{}", other.text());
    assert_eq!(other.value()["purged"], 1);

    // as it is, it is the row that a worker puts back by itself
    let held = letter(2, "t", "16", r#"{"id":2}"#);
    let block = held.block(&held.body, Timestamp::from_millis(2), wh_types::Encoding::Zstd).unwrap();
    assert!(matches!(rig.broker.publish(&[block]).await[0], Ok(wh_mq::Receipt::Stored(_))));
    let again = ask(&rig, "replay", json!({"ids": [id(2)]})).await;
    assert_eq!(fates(&again), expected(&[(2, "duplicate")]));
    assert!(ids(&listed(&rig, "").await).is_empty());
    assert_eq!(rig.rows().await, [r#"{"id":1,"note":"too long"}"#, r#"{"id":1,"note":"fixed"}"#, r#"{"id":2}"#]);
}

#[tokio::test]
async fn every_id_that_is_named_and_not_there_is_told_once() {
    let rig = Rig::new();
    park(&rig, &(1..=300).map(|n| letter(n, "t", "27", &format!("{{\"id\":{n}}}"))).collect::<Vec<_>>()).await;
    for what in ["check", "replay", "purge"] {
        let reply = ask(&rig, what, json!({"ids": [id(901)]})).await;
        let value = reply.value();
        assert_eq!((reply.status, fates(&reply)), (http::StatusCode::OK, expected(&[(901, "not_found")])), "{what}");
        assert_eq!((&value["matched"], &value["not_found"], &value["next"]), (&json!(0), &json!(1), &Value::Null));
        assert_eq!(value["results"][0]["code"], "dead_letter.not_found");
        let foreign = post(
            &format!("/v1/ops/dead-letters/{what}?tenant=acme"),
            "application/json",
            json!({"ids": [id(1)]}).to_string(),
        );
        assert_eq!(fates(&rig.send(keyed(foreign)).await), expected(&[(1, "not_found")]), "{what}: another tenant's");
        let misspelled =
            post(&format!("/v1/ops/dead-letters/{what}?tennant=acme"), "application/json", r#"{"all":true}"#);
        let misspelled = rig.send(keyed(misspelled)).await;
        assert_eq!(misspelled.outcome(), (400, Some("request.invalid".to_owned())));
        assert!(misspelled.text().contains("tennant"), "{}", misspelled.text());
    }
    let twice = ask(&rig, "check", json!({"ids": [id(1), id(902), id(1), id(902), id(2)]})).await;
    let once = [(1, "accepted"), (2, "accepted"), (902, "not_found")];
    assert_eq!(fates(&twice), expected(&once));

    // over several steps and requests: each id once, and no more results than the limit
    let named: Vec<String> = (1..=600).map(id).collect();
    let (mut told, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let reply = ask(&rig, "purge", json!({"ids": named, "limit": 280, "cursor": cursor})).await;
        let some = fates(&reply);
        assert!(some.len() <= 280, "{}", some.len());
        told.extend(some);
        cursor = reply.value()["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    told.sort();
    let all: Vec<_> = (1..=600).map(|n| (n, if n <= 300 { "purged" } else { "not_found" })).collect();
    let mut all = expected(&all);
    all.sort();
    assert_eq!(told, all);
    assert!(ids(&listed(&rig, "").await).is_empty());
}

#[tokio::test]
async fn a_row_whose_answer_was_lost_is_a_duplicate_and_then_gone() {
    let rig = Rig::new();
    park(&rig, &[letter(1, "t", "27", r#"{"id":1}"#), letter(2, "t", "27", r#"{"id":2}"#)]).await;
    rig.script.next(Op::Purge, Fault::Repeat);
    rig.script.next(Op::Purge, Fault::Fail(Kind::Unavailable));
    let cut = ask(&rig, "replay", json!({"all": true})).await.value();
    assert_eq!((&cut["replayed"], &cut["purged"]), (&json!(2), &json!(0)), "{cut}");
    assert_eq!(cut["stopped"]["code"], "queue.unavailable");
    rig.script.next(Op::Publish, Fault::LoseAnswer);
    let again = ask(&rig, "replay", json!({"all": true, "cursor": cut["next"]})).await.value();
    assert_eq!(
        (&again["duplicates"], &again["purged"], &again["next"]),
        (&json!(2), &json!(2), &Value::Null),
        "{again}"
    );
    assert!(rig.script.is_done());
    assert_eq!(rig.rows().await, [r#"{"id":1}"#, r#"{"id":2}"#]);
}

#[tokio::test(start_paused = true)]
async fn while_the_queue_is_away_nothing_is_removed() {
    let rig = Rig::new();
    park(&rig, &[letter(1, "t", "27", r#"{"id":1}"#)]).await;
    for _ in 0..3 {
        rig.script.next(Op::Publish, Fault::Fail(Kind::Unavailable));
    }
    let cut = ask(&rig, "replay", json!({"all": true})).await;
    assert_eq!(fates(&cut), expected(&[(1, "not_attempted")]));
    assert_eq!(cut.value()["stopped"]["code"], "queue.unavailable");
    assert_eq!(ids(&listed(&rig, "").await), [id(1)]);
    rig.script.next(Op::Purge, Fault::Fail(Kind::Unsupported("delete dead letters: its user has no right to")));
    let denied = ask(&rig, "replay", json!({"all": true})).await;
    assert_eq!(denied.outcome(), (501, Some("queue.unsupported".to_owned())));
    assert!(denied.text().contains("\\\"keep\\\": true"), "{}", denied.text());
    rig.script.next(Op::Purge, Fault::Fail(Kind::Unsupported("delete dead letters: its user has no right to")));
    let denied = ask(&rig, "purge", json!({"all": true})).await;
    assert_eq!(denied.outcome(), (501, Some("queue.unsupported".to_owned())));
    assert!(denied.text().contains("no right"), "{}", denied.text());
}

#[tokio::test]
async fn a_purge_takes_what_is_meant_and_says_so() {
    let rig = Rig::new();
    let letters: Vec<_> = (1..=5).map(|n| letter(n, "t", if n == 2 { "117" } else { "27" }, "{}")).collect();
    park(&rig, &letters).await;
    for body in [
        json!({}),
        json!({"filter": {}}),
        json!({"all": false}),
        json!({"all": true, "edit": [{"op": "remove", "column": "a"}]}),
        json!({"all": true, "keep": true}),
        json!({"everything": true}),
        json!({"filter": {"codes": "27"}}),
        json!([true]),
    ] {
        let reply = ask(&rig, "purge", body.clone()).await;
        assert_eq!(reply.outcome(), (400, Some("request.invalid".to_owned())), "{body}");
    }
    let one = ask(&rig, "purge", json!({"filter": {"code": "117"}})).await;
    assert_eq!(fates(&one), expected(&[(2, "purged")]));
    assert_eq!(ids(&listed(&rig, "").await).len(), 4);
    let all = ask(&rig, "purge", json!({"all": true})).await.value();
    assert_eq!((&all["purged"], &all["next"]), (&json!(4), &Value::Null));
    assert!(ids(&listed(&rig, "").await).is_empty());
}

/// Copies what a process leaves that is killed at this moment. Gives whether no file went while it was copied.
fn copied(from: &Path, to: &Path) -> bool {
    fs::create_dir_all(to).unwrap();
    let mut entries = fs::read_dir(from).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    // first what says how far the log is
    entries.sort_by_key(|entry| entry.file_name() != "extent");
    entries.iter().all(|entry| match fs::copy(entry.path(), to.join(entry.file_name())) {
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        copy => copy.map(|_| true).unwrap(),
    })
}

async fn over(dir: &Path) -> Rig {
    let options = embedded::Options { shards: 1, ack_wait: Duration::from_secs(600), ..embedded::Options::new(dir) };
    let queue = embedded::Broker::open(options).await.unwrap();
    Rig::with(Setup { queue: Some(Arc::new(queue)), ..Setup::default() })
}

#[tokio::test]
async fn a_crash_exactly_between_publish_and_purge_leaves_what_the_same_replay_finishes() {
    let dir = tempfile::tempdir().unwrap();
    let before = over(&dir.path().join("before")).await;
    let letters = (1..=3).map(|n| letter(n, "t", "469", &format!("{{\"id\":{n}}}"))).collect::<Vec<_>>();
    park(&before, &letters).await;
    // asked once whether it may, and then never answered
    before.script.spare(Op::Purge, 1);
    before.script.next(Op::Purge, Fault::Delay(Duration::from_secs(3_600)));
    let replay = json!({"all": true, "edit": [{"op": "set", "column": "note", "value": "fixed"}]});
    {
        let mut asked = pin!(ask(&before, "replay", replay.clone()));
        let mut reached = pin!(until(Duration::from_secs(90), "the purge to be reached", || async {
            if before.script.is_done() { Ok(()) } else { Err(anyhow::anyhow!("not yet")) }
        }));
        tokio::select! {
            reply = &mut asked => panic!("answered: {reply:?}"),
            reached = &mut reached => reached.unwrap(),
        }
        while !copied(&dir.path().join("before"), &dir.path().join("after")) {
            fs::remove_dir_all(dir.path().join("after")).unwrap();
        }
    }
    let after = over(&dir.path().join("after")).await;
    assert_eq!(ids(&listed(&after, "").await), (1..=3).map(id).collect::<Vec<_>>(), "no letter is gone");
    let again = ask(&after, "replay", replay.clone()).await.value();
    assert_eq!(
        (&again["duplicates"], &again["replayed"], &again["purged"]),
        (&json!(3), &json!(0), &json!(3)),
        "{again}"
    );
    assert!(ids(&listed(&after, "").await).is_empty());
    let mut rows = after.rows().await;
    rows.sort();
    assert_eq!(rows, (1..=3).map(|n| format!("{{\"id\":{n},\"note\":\"fixed\"}}")).collect::<Vec<_>>(), "each once");
}
