//! What every test stands on: an API over a queue in memory that can be told to fail, and a small table.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tower::Service;
use wh_api::{
    AnswerCache, Api, ApiOptions, Check, DedupeStore, OperatorKey, Parts, PipeSet, Pipes, TenantLimits, TenantRuntime,
    Version,
};
use wh_clickhouse::{Client, Column, ColumnKind, Options, Schema, SchemaHandle, TableSchema, types::Type};
use wh_mq::{
    Allowance, Broker, Budget, Delivery, Verdict,
    faulty::{Faulty, Script},
    sim,
};
use wh_types::{Clock, Epoch, OsEntropy, Stop, SystemClock, Tenant, Timestamp, frame};

pub(crate) const KEY: &str = "open sesame";

pub(crate) struct Rig {
    pub(crate) api: Api,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) script: Script,
    pub(crate) stop: Stop,
}

type Wrap = fn(Arc<dyn Broker>) -> Arc<dyn Broker>;

/// What a rig is made with.
pub(crate) struct Setup {
    pub(crate) options: ApiOptions,
    pub(crate) limits: TenantLimits,
    pub(crate) schema: SchemaHandle,
    pub(crate) clickhouse: Client,
    pub(crate) key: Option<&'static str>,
    pub(crate) checks: Vec<Check>,
    pub(crate) allowance: Allowance,
    /// Where keys are kept.
    pub(crate) dedupe: Option<DedupeStore>,
    /// Where answers are kept.
    pub(crate) cache: Option<AnswerCache>,
    /// The pipes of every tenant.
    pub(crate) pipes: PipeSet,
    /// The role of who presents nothing.
    pub(crate) default_role: Option<String>,
    /// Stands between the API and the queue.
    pub(crate) wrap: Option<Wrap>,
    /// Time.
    pub(crate) clock: Arc<dyn Clock>,
    /// A queue of the test's own, instead of one in memory.
    pub(crate) queue: Option<Arc<dyn Broker>>,
}

impl Default for Setup {
    fn default() -> Self {
        let nowhere = Options { url: "http://127.0.0.1:9".into(), ..Options::default() };
        Self {
            options: ApiOptions::default(),
            limits: TenantLimits::default(),
            schema: SchemaHandle::fixed(schema()),
            clickhouse: Client::new(nowhere).unwrap(),
            key: Some(KEY),
            checks: Vec::new(),
            allowance: Allowance { bytes: 1 << 30, table_bytes: 1 << 30, history: Duration::from_secs(600) },
            dedupe: None,
            cache: None,
            pipes: PipeSet::default(),
            default_role: None,
            wrap: None,
            clock: Arc::new(SystemClock),
            queue: None,
        }
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Setup::default())
    }

    pub(crate) fn with(setup: Setup) -> Self {
        let clock = setup.clock;
        let in_memory = || {
            sim::Broker::new(sim::Options {
                epoch: Epoch(0xe),
                shards: 1,
                ack_wait: Duration::from_secs(60),
                duplicate_window: Duration::from_secs(120),
                default_allowance: setup.allowance,
                dead_letter_share: 10,
                clock: Arc::clone(&clock),
            })
        };
        let queue = setup.queue.unwrap_or_else(|| Arc::new(in_memory()));
        let script = Script::new();
        let mut broker: Arc<dyn Broker> = Arc::new(Faulty::new(queue, script.clone()));
        if let Some(wrap) = setup.wrap {
            broker = wrap(broker);
        }
        let stop = Stop::new();
        let pipes = Pipes::new(setup.pipes);
        let tenant = |name: &str| TenantRuntime {
            tenant: Tenant::new(name).unwrap(),
            schema: setup.schema.clone(),
            clickhouse: setup.clickhouse.clone(),
            limits: setup.limits.clone(),
            pipes: pipes.clone(),
            default_role: setup.default_role.clone(),
        };
        let parts = Parts {
            broker: Arc::clone(&broker),
            dedupe: setup.dedupe,
            cache: setup.cache,
            tenants: vec![tenant("0"), tenant("acme")],
            operator_key: OperatorKey::new(setup.key.map(Into::into)),
            clock,
            entropy: Arc::new(OsEntropy),
            stop: stop.clone(),
            process: "test-1".into(),
            version: Version { version: "1.2.3".into(), git_commit: "abc".into(), build_time: "now".into() },
            checks: setup.checks,
            metrics: Some(("/metrics".into(), Arc::new(|| "# metrics\n".to_owned()))),
        };
        Self { api: Api::new(parts, setup.options), broker, script, stop }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.raw(request).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        if let Some(length) = head.headers.get("content-length") {
            assert_eq!(length.to_str().unwrap(), body.len().to_string(), "the length told is the body's");
        }
        Reply { status: head.status, headers: head.headers, body }
    }

    pub(crate) async fn raw(&self, request: Request<Body>) -> http::Response<Body> {
        let answer = self.api.clone().call(request).await;
        answer.unwrap()
    }

    /// Posts records to table `t`.
    pub(crate) async fn post(&self, media: &str, body: impl Into<Body>) -> Reply {
        self.send(post("/v1/ingest?table=t", media, body)).await
    }

    pub(crate) async fn json(&self, body: impl Into<Body>) -> Reply {
        self.post("application/json", body).await
    }

    pub(crate) async fn lines(&self, body: impl Into<Body>) -> Reply {
        self.post("application/x-ndjson", body).await
    }

    /// Every block that is in the queue and not settled, in order; settles them.
    pub(crate) async fn queued(&self) -> Vec<Delivery> {
        let unit = self.broker.units()[0];
        let mut feed = self.broker.feed(unit, Budget { rows: 1 << 30, bytes: 1 << 30 }).await.unwrap();
        let settle = feed.settle();
        let mut blocks = Vec::new();
        let status = self.broker.status().await.unwrap();
        let unsettled: u64 = status.tenants.values().map(|held| held.unsettled_blocks).sum();
        for _ in 0..unsettled {
            let delivery = feed.next().await.unwrap().unwrap();
            settle.settle(&[delivery.token], Verdict::Ack).await;
            blocks.push(delivery);
        }
        feed.release().await.unwrap();
        blocks
    }

    /// The rows of these blocks.
    pub(crate) async fn rows(&self) -> Vec<String> {
        self.queued().await.iter().flat_map(rows_of).collect()
    }
}

pub(crate) fn rows_of(delivery: &Delivery) -> Vec<String> {
    let block = &delivery.block;
    let text = frame::decode(block.encoding, &block.body, 64 << 20).unwrap();
    assert_eq!(text.len(), block.decoded_bytes as usize);
    let text = String::from_utf8(text).unwrap();
    assert!(text.ends_with('\n'));
    let rows: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_eq!(rows.len(), block.rows as usize);
    rows
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Status and, of an error, its code.
    pub(crate) fn outcome(&self) -> (u16, Option<String>) {
        let code = (self.status.as_u16() >= 400).then(|| self.value()["code"].as_str().unwrap().to_owned());
        (self.status.as_u16(), code)
    }

    /// Each entry of `results` as index, status and code.
    pub(crate) fn results(&self) -> Vec<(u64, String, String)> {
        let value = self.value();
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let entry = |entry: &Value| (entry["index"].as_u64().unwrap(), text(entry, "status"), text(entry, "code"));
        value["results"].as_array().unwrap().iter().map(entry).collect()
    }

    /// `total`, `accepted`, `rejected`.
    pub(crate) fn counts(&self) -> [u64; 3] {
        let value = self.value();
        assert_eq!(value["duplicates"], 0);
        ["total", "accepted", "rejected"].map(|name| value[name].as_u64().unwrap())
    }
}

pub(crate) fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

pub(crate) fn post(path: &str, media: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post(path).header("content-type", media).body(body.into()).unwrap()
}

/// As the operator.
pub(crate) fn keyed(mut request: Request<Body>) -> Request<Body> {
    request.headers_mut().insert("x-operator-key", KEY.parse().unwrap());
    request
}

pub(crate) fn schema() -> Schema {
    let columns = [
        ("id", "UInt64", ColumnKind::Ordinary),
        ("note", "Nullable(String)", ColumnKind::Ordinary),
        ("n", "Int32", ColumnKind::Default),
        ("at", "DateTime64(3)", ColumnKind::Default),
        ("tags", "Array(String)", ColumnKind::Default),
        ("twice", "UInt64", ColumnKind::Materialized),
        ("next", "UInt64", ColumnKind::Alias),
        ("raw", "String", ColumnKind::Ephemeral),
        ("ça va", "String", ColumnKind::Default),
    ];
    let columns = (1..).zip(columns).map(|(position, (name, ty, kind))| Column {
        name: name.to_owned(),
        type_text: ty.to_owned(),
        ty: Type::parse(ty),
        kind,
        default_expression: String::new(),
        position,
    });
    let columns: Vec<_> = columns.collect();
    let table = |name: &str, engine: &str| (name.to_owned(), Arc::new(TableSchema::new(name, engine, columns.clone())));
    Schema {
        version: "26.7".into(),
        timezone: "UTC".into(),
        settings: Arc::default(),
        tables: [table("t", "MergeTree"), table("a.b/c", "MergeTree"), table("v", "View")].into(),
        taken_at: Timestamp::default(),
    }
}
