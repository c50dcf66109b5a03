//! The commands of the guide on dead letters, run as they stand there. Ids and times are not compared.

use super::guide::blocks;
use procs::System;
use std::time::Duration;
use tokio::process::Command;
use wh_testkit::{until, workspace};

/// The epoch of the ids that the page shows.
const EPOCH: &str = "1b2a3c4d";

/// Words as they are, but for those that are other ones each time: ids of rows and tables, and times.
fn words(text: &str) -> Vec<String> {
    let differs =
        |word: &str| word.len() >= 8 && word.contains('-') && word.bytes().filter(u8::is_ascii_digit).count() >= 4;
    text.split_whitespace().map(|word| if differs(word) { "*".to_owned() } else { word.to_owned() }).collect()
}

#[tokio::test]
async fn the_commands_of_the_guide_on_dead_letters_print_what_it_says() {
    let page = std::fs::read_to_string(workspace::root().unwrap().join("docs/guide/dead-letters.md")).unwrap();
    let blocks = blocks(&page);
    assert_eq!(blocks[0].0, "sql");
    let engine = wh_testkit::clickhouse::Server::start().await.unwrap();
    engine.query(&blocks[0].1).await.unwrap();
    let system = System::over(engine, "ingest:\n  batch_wait: 200ms").await.unwrap();
    let binary = workspace::binary("wavehouse", "wavehouse").unwrap();
    let folder = binary.parent().unwrap().display();
    let run = async |command: &str| {
        let mut shell = Command::new("sh");
        let script = format!("PATH='{folder}':\"$PATH\"\n{command}");
        shell.args(["-c", &script]).env("WH_CONFIG", system.dir().join("config.yaml"));
        let output = shell.output().await.unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (String::from_utf8(output.stdout).unwrap(), told)
    };
    let (mut commands, mut epoch) = (0, String::new());
    for pair in blocks.windows(2) {
        let [(language, command), (_, expected)] = pair else { continue };
        if language != "sh" {
            continue;
        }
        commands += 1;
        let here = command.replace("http://127.0.0.1:8080", &system.url("")).replace(EPOCH, &epoch);
        let (printed, told) = run(&here).await;
        assert_eq!(words(&printed), words(expected), "{command}\n{printed}\n{told}");
        if epoch.is_empty() {
            let parked = until(Duration::from_secs(90), "two rows to be parked", || async {
                let (list, told) = run("wavehouse dlq list --code 469").await;
                if list.lines().count() == 3 { Ok(list) } else { anyhow::bail!("{list}{told}") }
            });
            let list = parked.await.unwrap();
            epoch = list.lines().nth(1).unwrap().split('-').next().unwrap().to_owned();
        }
    }
    assert!(commands >= 8, "{commands}");
    let shown = run(&format!("wavehouse dlq show {epoch}-1.1")).await;
    assert!(shown.1.contains("dead_letter.not_found"), "it was replayed: {shown:?}");
    system.holds_ids(2, Duration::from_secs(90)).await.unwrap();
    let notes =
        system.engine.query("SELECT groupArray(note) FROM (SELECT note FROM events ORDER BY id)").await.unwrap();
    assert_eq!(notes.trim(), "['short','fixed']");
}
