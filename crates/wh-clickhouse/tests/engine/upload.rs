//! Uploads that are cut half-way: whatever was sent, nothing is stored (public report 47).

use crate::{Rig, of, table};
use bytes::Bytes;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use wh_clickhouse::{Insert, Kind};
use wh_testkit::until_equal;
use wh_types::{Encoding, Tasks, frame};

/// Passes `bytes` of what one client sends, then ends the upload: by closing both ways, or only the way up.
async fn cutter(upstream: String, bytes: usize, half: bool, tasks: &Tasks) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let upstream = upstream.trim_start_matches("http://").to_owned();
    drop(tasks.spawn("cutter", async move {
        let (mut down, _) = listener.accept().await.unwrap();
        let mut up = TcpStream::connect(upstream).await.unwrap();
        let mut sent = vec![0; bytes];
        down.read_exact(&mut sent).await.unwrap();
        up.write_all(&sent).await.unwrap();
        if half {
            up.shutdown().await.unwrap();
            copy_bidirectional(&mut down, &mut up).await.ok();
        }
    }));
    url
}

#[tokio::test]
async fn a_cut_upload_stores_nothing() {
    let rig = Rig::new().await;
    rig.sql("CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id").await;
    let block = |n: u64| {
        let row =
            |i: u64| format!("{{\"id\":{},\"s\":\"{:0200x}\"}}\n", n * 500 + i, (n * 500 + i).wrapping_mul(0x9E37));
        frame::encode(Encoding::Zstd, (0..500).map(row).collect::<String>().as_bytes()).unwrap()
    };
    let frames: Vec<Bytes> = (0..20).map(block).collect();
    let whole: usize = frames.iter().map(Bytes::len).sum();
    // blocks far smaller than the batch, were they not pinned; and the head's length is about 900 bytes
    let settings = [("min_insert_block_size_rows".to_owned(), "1".to_owned())];
    let tasks = Tasks::new();
    for percent in [10, 50, 99] {
        for half in [false, true] {
            let url = cutter(rig.database.url().into(), whole * percent / 100, half, &tasks).await;
            let client = rig.through(url, Duration::from_secs(20));
            let t = table("t");
            let insert = Insert { rows: 10_000, settings: &settings, ..of(&t, &frames) };
            let error = client.insert(insert).await.unwrap_err();
            assert!(matches!(error.kind(), Kind::Lost | Kind::Exception), "{percent} % {half}: {error:?}");
        }
    }
    tasks.wait().await;
    let running =
        "SELECT count() FROM system.processes WHERE query LIKE 'INSERT%' AND current_database = currentDatabase()";
    until_equal(Duration::from_secs(20), "inserts running", "0".to_owned(), || rig.sql(running)).await.unwrap();
    assert_eq!(rig.sql("SELECT count() FROM t").await, "0");
    rig.client.insert(Insert { rows: 10_000, ..of(&table("t"), &frames) }).await.unwrap();
    assert_eq!(rig.sql("SELECT count(), uniqExact(id) FROM t").await, "10000\t10000");
}
