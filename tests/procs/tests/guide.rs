//! The commands of the guide, run as they stand there.

use procs::System;
use std::time::Duration;
use tokio::process::Command;
use wh_testkit::workspace;

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

#[tokio::test]
async fn the_commands_of_the_guide_on_ingest_print_what_it_says() {
    let page = std::fs::read_to_string(workspace::root().unwrap().join("docs/guide/ingest.md")).unwrap();
    let blocks = blocks(&page);
    let table = &blocks[0];
    assert_eq!((table.0.as_str(), table.1.trim()), ("sql", procs::TABLE), "the table is the one of these tests");
    let system = System::start().await.unwrap();
    let mut commands = 0;
    for pair in blocks.windows(2) {
        let [(language, command), (_, expected)] = pair else { continue };
        if language != "sh" {
            continue;
        }
        commands += 1;
        let here = command.replace("http://127.0.0.1:8080", &system.url(""));
        assert_ne!(&here, command, "a command that is not for the server");
        let output = Command::new("sh").arg("-c").arg(&here).output().await.unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(printed.trim(), expected.trim(), "{command}\n{told}");
    }
    assert!(commands >= 6, "{commands}");
    // 1, 2, 5, 6, 8, 11 and 12
    system.holds_ids(7, Duration::from_secs(90)).await.unwrap();
    let notes =
        system.engine.query("SELECT groupArray(note) FROM (SELECT note FROM events ORDER BY id)").await.unwrap();
    assert_eq!(notes.trim(), r#"['first','fine','fine','seconds','a comma, and a "quote"','packed','seen']"#);
}
