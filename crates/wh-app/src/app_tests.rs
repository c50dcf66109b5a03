//! A disk without room at boot: the port says so, and it goes on by itself.

use super::*;
use wh_log::disk::sim::SimDisk;

const ABOUT: About = About { name: "wavehouse", version: "0.0.0", commit: "test" };

async fn on_a_full_disk() -> (tempfile::TempDir, Arc<SimDisk>, Running) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let data = folder.path().join("data");
    std::fs::write(
        &file,
        format!("data_dir: {data:?}\ntenant_defaults: {{clickhouse: {{url: 'http://127.0.0.1:1'}}}}"),
    )
    .unwrap();
    let mut config = wh_config::load(Some(&file), &wh_config::Environment::default()).unwrap().config;
    config.server.port = 0;
    let (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>) = (Arc::new(SystemClock), Arc::new(OsEntropy));
    let disk = Arc::new(SimDisk::new(1));
    disk.set_capacity(Some(0));
    let opening = crate::queue::Opening::new(&config, clock.clone(), entropy.clone()).on(disk.clone());
    let backend = Backend::Embedded { opening: Box::new(opening), ack_wait: config.mq.embedded.ack_wait };
    let running = start(config, ABOUT, "test".to_owned(), backend, clock, entropy).await.unwrap();
    (folder, disk, running)
}

async fn get(running: &Running, path: &str) -> (u16, String) {
    let reply = wh_testkit::http::get(format!("http://{}{path}", running.addr())).send().await.unwrap();
    (reply.status.as_u16(), reply.text().into_owned())
}

#[tokio::test]
async fn a_full_disk_opens_the_port_with_the_reason_and_goes_on_once_there_is_room() {
    let (_folder, disk, mut running) = on_a_full_disk().await;
    let (status, body) = get(&running, "/v1/ingest?table=t").await;
    assert!(status == 503 && body.contains("queue.no_space") && body.contains("no space for the queue"), "{body}");
    assert_eq!((get(&running, "/livez").await.0, get(&running, "/readyz").await.0), (200, 503));
    disk.set_capacity(None);
    wh_testkit::until(Duration::from_secs(90), "the api to answer", || async {
        let (status, body) = get(&running, "/version").await;
        anyhow::ensure!(status == 200, "{body}");
        Ok::<_, anyhow::Error>(())
    })
    .await
    .unwrap();
    running.stop();
    running.wait().await.unwrap();
}

#[tokio::test]
async fn a_stop_ends_the_wait_for_room() {
    let (_folder, _disk, mut running) = on_a_full_disk().await;
    running.stop();
    tokio::time::timeout(Duration::from_secs(60), running.wait()).await.unwrap().unwrap();
}
