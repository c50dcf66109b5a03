//! DynamoDB emulators: dynalite, one for each case; moto, one for all cases of a process, as it takes seconds to start; or
//! one that the user names. Every member has a proxy of its own in front of it, which throttles, cuts and drops replies.

use super::super::{Arm, Failure, Member, Stand, Way};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tokio::sync::OnceCell;
use wh_dedupe::dynamodb::{Credentials, Dedupe, Options};
use wh_testkit::{
    dynamodb::Server,
    fault::{Action, Proxy, Rule},
};
use wh_types::{BlockId, OsEntropy, Secret};

/// What only a claim's put has in it.
const A_CLAIM: &str = "attribute_not_exists";
/// So many requests of a call that stops half way are answered.
const HALF: u64 = 10;
const THROTTLED: &str =
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"injected"}"#;

#[derive(Clone, Debug)]
pub(super) struct DynamoDb {
    name: &'static str,
    from: From,
}

#[derive(Clone, Debug)]
enum From {
    Dynalite,
    /// Started by the first case that needs it.
    Moto(Arc<OnceCell<Server>>),
    Given(String),
}

impl DynamoDb {
    /// An emulator of the suite's own.
    pub(super) fn own(name: &'static str) -> Self {
        let from = if name == "dynalite" { From::Dynalite } else { From::Moto(Arc::default()) };
        Self { name, from }
    }

    /// One that the user names.
    pub(super) fn given(name: &'static str, url: String) -> Self {
        Self { name, from: From::Given(url) }
    }
}

#[derive(Debug)]
struct DynamoDbStand {
    url: String,
    table: String,
    failing: bool,
    /// Ends with the case.
    _server: Option<Server>,
}

#[derive(Debug)]
struct DynamoDbWay(Proxy);

/// The emulator that the user names.
#[expect(clippy::disallowed_methods, reason = "a test's own knob, read here only")]
pub(super) fn url() -> Option<String> {
    std::env::var("WH_TEST_DYNAMODB_URL").ok().filter(|url| !url.is_empty())
}

fn options(endpoint: &str, table: &str, failing: bool) -> Options {
    let mut options = Options::new(table);
    options.region = Some("eu-central-1".to_owned());
    options.endpoint = Some(endpoint.to_owned());
    options.credentials = Credentials::Keys { id: "id".to_owned(), secret: Secret::from("secret") };
    // an emulator on a busy machine is slow: what answers at all has all the time of its call, and is not asked for too
    // much at once
    let seconds = if failing { 10 } else { 60 };
    options.timeout = Duration::from_secs(seconds);
    options.attempt = options.timeout;
    options.concurrency = 16;
    options
}

#[async_trait]
impl Arm for DynamoDb {
    fn name(&self) -> &'static str {
        self.name
    }

    fn fails(&self, _: Failure) -> bool {
        true
    }

    fn largest_call(&self) -> usize {
        // each key is a request
        200
    }

    async fn open(&self, failing: bool) -> anyhow::Result<Box<dyn Stand>> {
        let (server, url) = match &self.from {
            From::Dynalite => {
                let server = Server::start().await?;
                let url = server.url();
                (Some(server), url)
            }
            From::Moto(server) => (None, server.get_or_try_init(Server::start_moto).await?.url()),
            From::Given(url) => (None, url.clone()),
        };
        let table = format!("wh-conf-{}", BlockId::draw(&OsEntropy));
        let mut making = options(&url, &table, false);
        making.create_table = true;
        Dedupe::connect(making).await?;
        Ok(Box::new(DynamoDbStand { url, table, failing, _server: server }))
    }
}

#[async_trait]
impl Stand for DynamoDbStand {
    async fn join(&self) -> anyhow::Result<Member> {
        let proxy = Proxy::start(&self.url).await?;
        let store = Dedupe::connect(options(&proxy.url(), &self.table, self.failing)).await?;
        Ok(Member { store: Arc::new(store), way: Arc::new(DynamoDbWay(proxy)) })
    }

    async fn crash(&self) -> anyhow::Result<()> {
        // a process that is gone is one that calls no more
        Ok(())
    }
}

#[async_trait]
impl Way for DynamoDbWay {
    async fn fail(&self, failure: Failure) {
        let throttle = Action::Status { status: 400, body: THROTTLED.to_owned() };
        let rule = match failure {
            Failure::Refused => return self.0.down().await,
            Failure::Throttled => Rule::any(throttle),
            Failure::Lost => Rule::any(Action::DropReply),
            Failure::Half => Rule::any(throttle).contains(A_CLAIM).skip(HALF),
            Failure::HalfLeft => Rule::any(Action::Reset).skip(HALF),
        };
        self.0.add(rule);
    }

    async fn heal(&self) {
        self.0.clear();
        // the port was its own before
        if let Err(error) = self.0.up().await {
            panic!("the proxy does not come back: {error:#}");
        }
    }
}
