//! Answers that the engine once gave, as files: each has its class however much of it arrives, and the engine still
//! gives them.

use crate::{Rig, insert, provoke};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use wh_clickhouse::{Client, Error, Failure, Kind, Query, QueryFailure, RoleCaps};
use wh_testkit::fault::{Action, Proxy, Rule};

const PATIENCE: Duration = Duration::from_secs(20);

/// A captured answer.
struct Captured {
    title: String,
    code: i32,
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captured"))
}

/// All of them, by version.
fn captured() -> BTreeMap<String, Vec<Captured>> {
    let listed = |dir: PathBuf| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().unwrap();
    listed(folder())
        .map(|version| {
            let files = listed(version.path()).filter(|file| name(file).ends_with(".http"));
            let mut answers: Vec<_> = files.map(|file| read(&name(&file), &file.path())).collect();
            answers.sort_by(|a, b| a.title.cmp(&b.title));
            (name(&version), answers)
        })
        .collect()
}

fn read(name: &str, path: &std::path::Path) -> Captured {
    let all = std::fs::read(path).unwrap();
    let end = all.windows(2).position(|pair| pair == b"\n\n").unwrap();
    let head = std::str::from_utf8(&all[..end]).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().strip_prefix("HTTP ").unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap()).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
    let title = name.strip_suffix(".http").unwrap().to_owned();
    let code = title.split('-').next().unwrap().parse().unwrap();
    Captured { title, code, status, headers, body: all[end + 2..].to_vec() }
}

/// What the reference says of a code.
fn expected(code: i32) -> (Failure, bool, bool) {
    let failure = match code {
        159 | 164 | 201 | 202 | 241 | 242 | 243 | 252 => Failure::Unavailable,
        194 | 497 | 516 => Failure::Denied,
        _ => Failure::Rejected,
    };
    (failure, matches!(code, 242 | 252 | 497), matches!(code, 60 | 81))
}

async fn answered(client: &Client, proxy: &Proxy, action: Action) -> Error {
    let rule = proxy.add(Rule::insert(action));
    let error = insert(client, "t", &[r#"{"id":1}"#]).await.unwrap_err();
    proxy.remove(rule);
    error
}

#[tokio::test]
async fn a_captured_answer_has_its_class_however_much_of_it_arrives() {
    let rig = Rig::new().await;
    let proxy = Proxy::start(rig.database.url()).await.unwrap();
    let client = rig.through(proxy.url(), PATIENCE);
    let all = captured();
    assert!(!all.is_empty());
    for (version, answers) in &all {
        assert!(answers.len() >= 40, "{version}: {}", answers.len());
        for Captured { title, code, status, headers, body } in answers {
            let named: Vec<_> =
                headers.iter().filter(|(name, _)| name == "x-clickhouse-exception-code").cloned().collect();
            assert_eq!(named.len(), 1, "{title}");
            let text = String::from_utf8_lossy(body);
            let own = text.find(&format!("Code: {code}.")).unwrap_or_else(|| panic!("{title}: {text}"));
            let only = text[own..].as_bytes().to_vec();
            let reply = |status: u16, headers: &[(String, String)], body: &[u8], cut: bool| Action::Reply {
                status,
                headers: headers.to_vec(),
                body: body.to_vec(),
                cut,
            };
            let variants = [
                ("whole", reply(*status, headers, body, false)),
                ("header only", reply(*status, &named, b"", false)),
                ("body only", reply(500, &[], &only, false)),
                ("in a 200, named", reply(200, headers, body, false)),
                ("in a 200, body only", reply(200, &[], &only, false)),
                ("another status", reply(503, headers, body, false)),
                ("cut", reply(*status, headers, &body[..body.len() / 2], true)),
                ("cut, body only", reply(500, &[], &only[..only.len().min(40)], true)),
                ("other words", reply(*status, &named, b"something else entirely", false)),
            ];
            for (what, action) in variants {
                let error = answered(&client, &proxy, action).await;
                let got = (error.failure(), error.table_scoped(), error.unknown_table());
                let context = || format!("{version} {title}, {what}: {error:?}");
                assert_eq!((error.kind(), error.code()), (Kind::Exception, Some(*code)), "{}", context());
                assert_eq!(got, expected(*code), "{}", context());
                assert!(!error.in_doubt(), "an exception is an answer: {}", context());
            }
            let whole = answered(&client, &proxy, reply(*status, headers, body, false)).await;
            assert_eq!(whole.splittable(), matches!(&**title, "241-memory" | "252-partitions"), "{title}");
        }
    }
}

/// Wordings of one trouble by versions that cannot be had here.
const MEMORY: &[&str] = &[
    "Memory limit (total) exceeded: would use 7.21 GiB (attempt to allocate chunk of 4360992 bytes), maximum: 7.20 GiB. \
     OvercommitTracker decision: Query was selected to stop by OvercommitTracker. (MEMORY_LIMIT_EXCEEDED) (version 24.3.18.7)",
    "Memory limit (for query) exceeded: would use 9.34 GiB (attempt to allocate chunk of 134217760 bytes), maximum: 9.31 \
     GiB: While executing AggregatingTransform. (MEMORY_LIMIT_EXCEEDED) (version 24.8.4.13)",
    "(total) memory limit exceeded: would use 10.79 GiB (attempt to allocate chunk of 0.00 B bytes), current RSS: 10.81 \
     GiB, maximum: 10.80 GiB. (MEMORY_LIMIT_EXCEEDED) (version 25.3.2.39)",
    "(for user) memory limit exceeded: would use 1.00 GiB, maximum: 1.00 GiB: (while reading the value of key s): (at row \
     12). (MEMORY_LIMIT_EXCEEDED) (version 25.9.1.1)",
    "Query memory limit exceeded: would use 48.00 MiB, maximum: 47.68 MiB. Untracked memory across all threads: 2.34 MiB. \
     (MEMORY_LIMIT_EXCEEDED) (version 26.4.1.1)",
    "Cannot parse input: expected ',' before: not at all what it says",
];

#[tokio::test]
async fn a_memory_limit_is_one_class_in_the_words_of_every_version() {
    let rig = Rig::new().await;
    let proxy = Proxy::start(rig.database.url()).await.unwrap();
    let client = rig.through(proxy.url(), PATIENCE);
    let named = vec![("X-ClickHouse-Exception-Code".to_owned(), "241".to_owned())];
    for words in MEMORY {
        let coded = format!("Code: 241. DB::Exception: {words}\n").into_bytes();
        let old = format!("Code: 241, e.displayText() = DB::Exception: {words}\n").into_bytes();
        let plain = words.as_bytes().to_vec();
        let told = vec![("x-clickhouse-exception-tag".to_owned(), "abcdefghijklmnop".to_owned())];
        let block = format!(
            "\r\n__exception__\r\nabcdefghijklmnop\r\nCode: 241. DB::Exception: {words}\n9 abcdefghijklmnop\r\n__exception__\r\n"
        );
        for (status, headers, body, cut) in [
            (500, &named, &coded, false),
            (500, &vec![], &coded, false),
            (500, &vec![], &old, false),
            (500, &named, &plain, false),
            (200, &named, &plain, false),
            (200, &told, &block.clone().into_bytes(), true),
            (200, &told, &block.into_bytes(), false),
            // the older form: the text behind whatever came before, and the connection cut
            (200, &vec![], &[b"some data\n", &coded[..]].concat(), true),
        ] {
            let action = Action::Reply { status, headers: headers.clone(), body: body.clone(), cut };
            let error = answered(&client, &proxy, action).await;
            assert_eq!(
                (error.code(), error.failure(), error.splittable(), error.table_scoped(), error.in_doubt()),
                (Some(241), Failure::Unavailable, true, false, false),
                "{status} {headers:?} {words}: {error:?}"
            );
            assert_eq!(error.query_failure(RoleCaps::default()), QueryFailure::Unavailable);
        }
    }
    // without a code anywhere only the status is left to go by, whatever the words
    for words in MEMORY {
        let action = Action::Reply { status: 503, headers: Vec::new(), body: words.as_bytes().to_vec(), cut: false };
        let error = answered(&client, &proxy, action).await;
        assert_eq!((error.kind(), error.failure()), (Kind::Status, Failure::Unavailable), "{words}");
    }
}

#[tokio::test]
async fn an_exception_behind_rows_is_found_in_every_form_it_has_had() {
    let rig = Rig::new().await;
    let proxy = Proxy::start(rig.database.url()).await.unwrap();
    let client = rig.through(proxy.url(), PATIENCE);
    let text = "Code: 159. DB::Exception: Timeout exceeded: elapsed 1 s. (TIMEOUT_EXCEEDED) (version 24.8.4.13)\n";
    let rows = "{\"n\":1}\n".repeat(5_000);
    for (headers, body, cut) in [
        (vec![], format!("{rows}{text}"), true),
        (vec![], format!("{rows}{text}"), false),
        (
            vec![("X-ClickHouse-Exception-Tag".to_owned(), "t".to_owned())],
            format!("{rows}\r\n__exception__\r\nt\r\n{text}99 t\r\n__exception__\r\n"),
            true,
        ),
    ] {
        let rule = proxy.add(Rule::select(Action::Reply { status: 200, headers, body: body.into_bytes(), cut }));
        let answer = client.query(Query::read("SELECT 1").format("JSONEachRow")).await.unwrap();
        let error = answer.bytes(1 << 20).await.unwrap_err();
        assert_eq!((error.kind(), error.code(), error.failure()), (Kind::Exception, Some(159), Failure::Unavailable));
        proxy.remove(rule);
    }
}

#[tokio::test]
async fn the_engine_still_answers_as_captured() {
    let server = provoke::server().await;
    let version = server.query("SELECT version()").await.unwrap();
    let all = captured();
    let how = "cargo run -p wh-clickhouse --example capture -- crates/wh-clickhouse/tests/captured";
    let known = all.get(&version).unwrap_or_else(|| panic!("no answers of {version} are captured: {how}"));
    assert_eq!(known.len(), provoke::ALL.len(), "{how}");
    for provocation in provoke::ALL {
        let captured = known.iter().find(|captured| captured.title == provocation.title());
        let captured = captured.unwrap_or_else(|| panic!("{} is not captured: {how}", provocation.title()));
        let reply = provocation.answer(&server).await;
        let code = reply.header("x-clickhouse-exception-code").map(|code| code.parse::<i32>().unwrap());
        assert_eq!((reply.status.as_u16(), code), (captured.status, Some(captured.code)), "{}", captured.title);
        let head =
            |all: &[u8]| String::from_utf8_lossy(all).split("x-clickhouse-exception-tag").next().unwrap().to_owned();
        let file = folder().join(&version).join(format!("{}.http", captured.title));
        assert_eq!(head(&provoke::written(&reply)), head(&std::fs::read(file).unwrap()), "{how}");
    }
    let codes = std::fs::read_to_string(folder().join(&version).join("codes.tsv")).unwrap();
    assert!(server.query(provoke::CODES).await.unwrap() == codes.trim_end(), "{how}");
}
