//! `cargo run -p embed-ingest -- FOLDER CLICKHOUSE_URL`: puts a hundred measurements into the table `measurements` of
//! the database `default`, which must exist:
//! `CREATE TABLE measurements (n UInt32, value Float64) ENGINE = MergeTree ORDER BY n`.

use anyhow::{Context, Result};
use embed_ingest::Service;
use std::path::PathBuf;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().context("usage: embed-ingest FOLDER CLICKHOUSE_URL")?);
    let url = args.next().context("usage: embed-ingest FOLDER CLICKHOUSE_URL")?;
    let service = Service::start(&folder, &url, "default").await?;
    for batch in 0..10 {
        let rows = (0..10).map(|i| batch * 10 + i).map(|n| format!("{{\"n\":{n},\"value\":{n}.5}}"));
        service.take("measurements", &rows.collect::<Vec<_>>()).await?;
    }
    service.stop().await;
    Ok(())
}
