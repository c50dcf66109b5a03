//! Each event once, with real processes: one with a store of its own, and two that share a queue on NATS and a table of
//! DynamoDB, each with a way of its own to either, which can be broken.

mod crashes;
mod kills;
mod queue;
mod races;
mod store;
mod table;

use procs::{Fleet, Member, Own, Role, Setup, create_tables};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write as _, ops::Range, time::Duration};
use wh_testkit::{chaos, dynamodb, fault::Proxy, http, until};

const WAIT: Duration = Duration::from_secs(90);
/// The shortest that a publish timeout of two seconds allows: three attempts, half a second, and ten.
const LEASE: Duration = Duration::from_millis(16_500);
/// What the store's requests have in them, each kind something that the others have not.
const COMMIT: &str = "SET st = :two";
const RELEASE: &str = "tk = :token AND st = :one";
/// The table whose rows are told apart by `n`, and one whose rows are not told apart.
const TABLE: &str = "t00";
const PLAIN: &str = "t01";

/// A process that takes events, and what stands between it and what it needs.
struct Party {
    api: Member,
    /// Before the store of ids.
    store: Proxy,
    /// Before the queue's server.
    queue: chaos::Tcp,
}

/// Two of them, over one queue and one store.
struct Pair {
    fleet: Fleet,
    one: Party,
    two: Party,
    ids: dynamodb::Server,
}

/// Who we are to the emulator.
fn credentials() -> Vec<(&'static str, String)> {
    vec![("AWS_ACCESS_KEY_ID", "id".to_owned()), ("AWS_SECRET_ACCESS_KEY", "secret".to_owned())]
}

/// What a configuration says of the table behind `url`.
fn dynamodb_at(url: &str, more: &str) -> String {
    format!(
        "dedupe:\n  backend: dynamodb\n{more}  dynamodb: {{table: ids, region: eu-central-1, endpoint: {url:?}, \
         create_table: true, timeout: 5s}}\n"
    )
}

impl Pair {
    async fn start() -> Self {
        let tables = format!("{{{PLAIN}: {{enabled: false}}}}");
        let setup = Setup {
            partitions: 1,
            shards: 2,
            publish_timeout: Some(Duration::from_secs(2)),
            dedupe_lease: Some(LEASE),
            more: format!(
                "  dedupe: {{enabled: true, id_field: n, tables: {tables}}}\ningest: {{batch_wait: 100ms}}\n"
            ),
            ..Setup::default()
        };
        let (mut fleet, ids) = tokio::join!(
            async {
                let fleet = Fleet::new(setup).await.unwrap();
                create_tables(&fleet.engine, 2).await.unwrap();
                fleet
            },
            async { dynamodb::Server::start().await.unwrap() }
        );
        let one = party(&mut fleet, &ids, "one", "refuse").await;
        let two = party(&mut fleet, &ids, "two", "refuse").await;
        Self { fleet, one, two, ids }
    }

    /// Has everything inserted, and gives how often each number is in a table.
    async fn inserted(&self, table: &str) -> BTreeMap<u64, u64> {
        let mut ingest = self.fleet.ingest("ingest").await.unwrap();
        self.fleet.drained(1, WAIT).await.unwrap();
        let sql = format!("SELECT n, count() FROM {table} GROUP BY n FORMAT TSV");
        let text = self.fleet.engine.query(&sql).await.unwrap();
        ingest.stop(WAIT).await.unwrap();
        text.lines()
            .map(|line| {
                let (n, count) = line.split_once('\t').unwrap();
                (n.parse().unwrap(), count.parse().unwrap())
            })
            .collect()
    }

    /// Blocks that the queue holds.
    async fn blocks(&self) -> u64 {
        self.fleet.queued(1).await.unwrap()
    }

    /// Claims and keys that the store holds.
    async fn items(&self) -> u64 {
        let asked = emulator(&self.ids.url(), "Scan", &json!({ "TableName": "ids", "Select": "COUNT" })).await;
        asked["Count"].as_u64().unwrap()
    }

    /// Waits until the store holds so many.
    async fn until_items(&self, count: u64) {
        until(WAIT, "claims in the store", || async {
            let items = self.items().await;
            anyhow::ensure!(items >= count, "{items} of {count}");
            Ok(())
        })
        .await
        .unwrap();
    }

    /// Demands that each of these numbers is stored once.
    #[track_caller]
    fn each_once(found: &BTreeMap<u64, u64>, numbers: impl IntoIterator<Item = u64>) {
        for n in numbers {
            assert_eq!(found.get(&n), Some(&1), "{n} is stored so often; in all: {found:?}");
        }
    }
}

/// Asks the emulator, past every proxy. It checks no signature.
async fn emulator(url: &str, operation: &str, body: &Value) -> Value {
    let reply = http::post(url.to_owned(), body.to_string())
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
        .header("x-amz-date", "20260101T000000Z")
        .header(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=id/20260101/eu-central-1/dynamodb/aws4_request, \
             SignedHeaders=host;x-amz-date;x-amz-target, Signature=0",
        )
        .send()
        .await
        .unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json().unwrap()
}

async fn party(fleet: &mut Fleet, ids: &dynamodb::Server, name: &str, on_outage: &str) -> Party {
    let store = Proxy::start(ids.url()).await.unwrap();
    let queue = chaos::Tcp::start(fleet.nats.one().unwrap().port()).await.unwrap();
    let kept = format!("  on_outage: {on_outage}\n  lease: {}ms\n", LEASE.as_millis());
    let more = dynamodb_at(&store.url(), &kept);
    let own = Own { nats: Some(queue.url("nats")), more, env: credentials() };
    let mut api = fleet.launch_with(name, "wavehouse-api", Role::Api, own).unwrap();
    api.ready().await.unwrap();
    Party { api, store, queue }
}

/// What a process answered.
#[derive(Debug)]
struct Told {
    status: u16,
    code: String,
    /// By number.
    each: BTreeMap<u64, String>,
    answer: Value,
}

impl Told {
    /// Those that were told to be new.
    fn stored(&self) -> impl Iterator<Item = u64> {
        self.each.iter().filter(|(_, status)| *status == "accepted").map(|(n, _)| *n)
    }

    /// Whether each of them was told to be this.
    fn all(&self, status: &str) -> bool {
        self.each.values().all(|told| told == status)
    }
}

fn rows(numbers: impl IntoIterator<Item = u64>) -> String {
    let mut body = String::new();
    for n in numbers {
        writeln!(body, "{{\"n\":{n},\"note\":\"row {n}\"}}").unwrap();
    }
    body
}

/// Sends rows of these numbers. Nothing where no answer comes.
async fn try_send(api: &Member, table: &str, numbers: &[u64]) -> Option<Told> {
    let reply = api.post(&format!("{table}&results=all"), rows(numbers.iter().copied())).await.ok()?;
    let answer: Value = reply.json().ok()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut each = BTreeMap::new();
    for result in answer["results"].as_array()? {
        let index = usize::try_from(result["index"].as_u64()?).ok()?;
        each.insert(numbers[index], text(&result["status"]));
    }
    Some(Told { status: reply.status.as_u16(), code: text(&answer["code"]), each, answer })
}

async fn send(api: &Member, numbers: Range<u64>) -> Told {
    let numbers: Vec<u64> = numbers.collect();
    let told = try_send(api, TABLE, &numbers).await.unwrap();
    assert_eq!(told.each.len(), numbers.len(), "{told:?}");
    told
}

/// Sends until each is told to be stored; gives those that were told to be new.
async fn until_stored(api: &Member, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let (mut open, mut new, mut last): (Vec<u64>, _, _) = (numbers.into_iter().collect(), Vec::new(), None);
    let sending = async {
        while !open.is_empty() {
            if let Some(told) = try_send(api, TABLE, &open).await {
                assert!(matches!(told.status, 200 | 503), "{told:?}");
                new.extend(told.stored());
                open.retain(|n| !matches!(told.each.get(n).map(String::as_str), Some("accepted" | "duplicate")));
                last = Some(told);
            }
            // a client waits too
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let sent = tokio::time::timeout(WAIT, sending).await;
    assert!(sent.is_ok(), "{} did not say that all are stored; last: {last:?}", api.name());
    new
}
