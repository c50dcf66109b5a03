//! Which store there is, and what stands in for one that is not there yet.

use super::*;
use wh_config::{Environment, load};
use wh_types::{BlockId, Epoch, OsEntropy, SystemClock, Table, Tenant};

fn config(folder: &tempfile::TempDir, text: &str) -> Config {
    let file = folder.path().join("wh.yaml");
    let data = folder.path().join("data");
    std::fs::write(&file, format!("data_dir: {}\n{text}", data.display())).unwrap();
    load(Some(&file), &Environment::default()).unwrap().config
}

async fn opened(config: &Config) -> std::result::Result<Option<Arc<Store>>, StartError> {
    open(config, Arc::new(SystemClock), Arc::new(OsEntropy)).await
}

fn row() -> Row {
    Row::new(wh_dedupe::Scope::new(&Tenant::default(), &Table::new("t").unwrap()).event("x").unwrap())
}

fn under() -> Under {
    Under { stream: 0, epoch: Epoch(1), block: BlockId([1; 16]), lease: Duration::from_secs(30) }
}

#[tokio::test]
async fn the_embedded_store_is_in_the_data_folder_and_has_one_owner() {
    has_one_owner("", "data/dedupe").await;
}

#[tokio::test]
async fn sled_is_in_the_data_folder_and_has_one_owner() {
    has_one_owner("dedupe: {backend: sled}", "data/dedupe-sled").await;
}

async fn has_one_owner(backend: &str, place: &str) {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&folder, backend);
    let first = opened(&config).await.unwrap().unwrap();
    assert!(folder.path().join(place).is_dir());
    assert!(matches!(first.reserve(&[row()], &under()).await.unwrap()[0], Verdict::New(_)));
    let Err(StartError::Dedupe(held)) = opened(&config).await else { panic!("two have it") };
    assert!(matches!(held.kind(), Kind::Held(_)), "{held:?}");
    first.close().await;
    assert_eq!(first.reserve(&[row()], &under()).await.unwrap_err().class(), Class::Stopping);
    let second = opened(&config).await.unwrap().unwrap();
    assert!(
        matches!(second.reserve(&[row()], &under()).await.unwrap()[0], Verdict::Lapsed { .. }),
        "its claim is over"
    );
    second.close().await;
}

#[tokio::test]
async fn there_is_none_where_none_is_named_or_no_events_come() {
    let folder = tempfile::tempdir().unwrap();
    assert!(opened(&config(&folder, "dedupe: {backend: none}")).await.unwrap().is_none());
    let ingest = "roles: [ingest]\nmq: {backend: nats, nats: {urls: [a]}}\ncoord: {backend: nats}\n\
                  dedupe: {backend: dynamodb, dynamodb: {table: t}}\n";
    assert!(opened(&config(&folder, ingest)).await.unwrap().is_none());
}

#[tokio::test]
async fn until_it_is_open_it_is_away() {
    let late = Store { open: RwLock::new(None), stop: Stop::new(), tasks: Tasks::new() };
    assert_eq!(late.reserve(&[row()], &under()).await.unwrap_err().class(), Class::Unavailable);
    late.close().await;
    assert_eq!(late.reserve(&[row()], &under()).await.unwrap_err().class(), Class::Stopping);
    assert!(passing(&Error::new("open", Kind::Unavailable)) && !passing(&Error::new("open", Kind::Denied("x".into()))));
}
