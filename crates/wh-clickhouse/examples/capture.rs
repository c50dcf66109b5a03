//! Writes what the engine answers to each request of `tests/engine/provoke.rs` into a folder named after its version:
//! `cargo run -p wh-clickhouse --example capture -- crates/wh-clickhouse/tests/captured`.
#![allow(clippy::unwrap_used, reason = "a tool for tests fails loudly")]

#[path = "../tests/engine/provoke.rs"]
mod provoke;

use std::path::PathBuf;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let into = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("captured"), PathBuf::from);
    let server = provoke::server().await;
    let dir = into.join(server.query("SELECT version()").await.unwrap());
    std::fs::create_dir_all(&dir)?;
    for provocation in provoke::ALL {
        let answer = provocation.answer(&server).await;
        std::fs::write(dir.join(format!("{}.http", provocation.title())), provoke::written(&answer))?;
    }
    let codes = server.query(provoke::CODES).await.unwrap();
    std::fs::write(dir.join("codes.tsv"), codes + "\n")
}
