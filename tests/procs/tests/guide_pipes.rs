//! The guide on pipes: its file is loaded as it stands there, its commands print what it says.

use crate::guide::{blocks, page, run};
use procs::System;
use wh_testkit::clickhouse;

#[tokio::test]
async fn the_commands_of_the_guide_on_pipes_print_what_it_says() {
    let blocks = blocks(&page("pipes.md"));
    let [(_, pipes), (_, table), (_, rows), commands @ ..] = blocks.as_slice() else { panic!("three blocks first") };
    assert_eq!(table.trim(), procs::TABLE, "the table is the one of these tests");
    let engine = clickhouse::Server::start().await.unwrap();
    for statement in [table, rows] {
        engine.query(statement).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pipes.json");
    std::fs::write(&file, pipes).unwrap();
    let env = vec![
        ("WH_TENANT_DEFAULTS_PIPES_FILE", file.display().to_string()),
        ("WH_TENANT_DEFAULTS_DEFAULT_ROLE", "viewer".to_owned()),
    ];
    let url = engine.url();
    let system = System::in_env(engine, &url, env, "").await.unwrap();
    assert!(run(commands, &system).await >= 8);
}
