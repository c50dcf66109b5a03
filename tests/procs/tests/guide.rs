//! The commands of the guide, run as they stand there.

use procs::System;
use serde_json::Value;
use std::time::Duration;
use tokio::process::Command;
use wh_testkit::{clickhouse, workspace};

/// A fenced block: its language and its text.
pub(crate) fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                blocks.push((language.to_owned(), String::new()));
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let text = &mut blocks.last_mut().unwrap().1;
                text.push_str(line);
                text.push('\n');
            }
            (None, false) => {}
        }
    }
    blocks
}

pub(crate) fn page(name: &str) -> String {
    std::fs::read_to_string(workspace::root().unwrap().join("docs/guide").join(name)).unwrap()
}

/// What a command prints.
async fn printed(command: &str, system: &System) -> String {
    let here = command.replace("http://127.0.0.1:8080", &system.url(""));
    assert_ne!(here, command, "a command that is not for the server");
    let output = Command::new("sh").arg("-c").arg(&here).output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.is_empty(), "{command}\n{told}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs each command of a page and compares what it prints with the block behind it; gives how many there are.
pub(crate) async fn run(blocks: &[(String, String)], system: &System) -> usize {
    let mut commands = 0;
    for (at, (language, command)) in blocks.iter().enumerate() {
        if language != "sh" {
            continue;
        }
        commands += 1;
        let (_, expected) = blocks.get(at + 1).unwrap();
        assert_eq!(printed(command, system).await.trim(), expected.trim(), "{command}");
    }
    commands
}

#[tokio::test]
async fn the_commands_of_the_guide_on_ingest_print_what_it_says() {
    let blocks = blocks(&page("ingest.md"));
    let table = &blocks[0];
    assert_eq!((table.0.as_str(), table.1.trim()), ("sql", procs::TABLE), "the table is the one of these tests");
    let system = System::start().await.unwrap();
    let commands = run(&blocks, &system).await;
    assert!(commands >= 7, "{commands}");
    // 1, 2, 5, 6, 8, 11 and 12
    system.holds_ids(7, Duration::from_secs(20)).await.unwrap();
    let notes =
        system.engine.query("SELECT groupArray(note) FROM (SELECT note FROM events ORDER BY id)").await.unwrap();
    assert_eq!(notes.trim(), r#"['first','fine','fine','seconds','a comma, and a "quote"','packed','seen']"#);
}

#[tokio::test]
async fn the_commands_of_the_guide_on_dedupe_print_what_it_says() {
    let system = System::with("  dedupe: {enabled: true, id_field: id}").await.unwrap();
    let commands = run(&blocks(&page("dedupe.md")), &system).await;
    assert_eq!(commands, 2);
    system.holds_ids(3, Duration::from_secs(20)).await.unwrap();
    assert_eq!(system.number("SELECT count() FROM events").await.unwrap(), 3, "each once");
}

#[tokio::test]
async fn the_example_of_the_reference_of_http_answers_what_it_says() {
    let engine = clickhouse::Server::start().await.unwrap();
    let table = "CREATE TABLE flights (date DateTime, delay Int32, distance Int32, origin String, destination String) \
                 ENGINE = MergeTree ORDER BY date";
    engine.query(table).await.unwrap();
    let system = System::over(engine, "").await.unwrap();
    let blocks = blocks(&page("http.md"));
    let (_, console) = blocks.iter().find(|(language, _)| language == "console").unwrap();
    let (command, answer) = console.strip_prefix("$ ").unwrap().split_once("\nE\n").unwrap();
    let printed = printed(&format!("{command}\nE\n"), &system).await;
    let [said, expected] = [&printed, answer].map(|text| serde_json::from_str::<Value>(text).unwrap());
    assert_eq!(said, expected, "{printed}");
}
