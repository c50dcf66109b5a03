//! The store in a DynamoDB table that processes share, through the official SDK.
//!
//! A claim is a conditional put; one that finds a claim that lapsed takes it over by its token. Keys of a call are sent in
//! parallel, bounded; an attempt whose answer was lost is made again and knows its own token. The SDK's own retries are
//! off, so that it is known of every key whether something may have been done. `docs/operations/dedupe.md` has the table,
//! the rights and the costs; the `item` module's head has the attributes.

mod breaker;
mod claim;
mod error;
mod item;
mod resolve;
mod table;
mod tries;

pub use table::{Checked, TimeToLive};

use crate::{
    Error, Kind, Result, Retention, Row, Ticket, Under, Verdict,
    port::{self, checked},
};
use async_trait::async_trait;
use aws_config::{BehaviorVersion, Region, retry::RetryConfig};
use aws_sdk_dynamodb::{Client, config::Credentials as Keys};
use aws_smithy_http_client::tls::{self, rustls_provider::CryptoMode};
use breaker::Breaker;
use futures::StreamExt as _;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use wh_types::{Clock, Entropy, OsEntropy, Secret, SystemClock};

/// Who we are to AWS.
#[derive(Clone, Default)]
pub enum Credentials {
    /// What the SDK finds: environment, profile, web identity, container, instance.
    #[default]
    Found,
    /// Given keys: for emulators.
    Keys {
        /// The access key's id.
        id: String,
        /// Its secret.
        secret: Secret,
    },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Found => "Found",
            Self::Keys { .. } => "Keys",
        })
    }
}

/// How a table is used.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name.
    pub table: String,
    /// Its region; `None`: what the SDK finds.
    pub region: Option<String>,
    /// Where it is, where it is not AWS: an emulator's `http://host:port`.
    pub endpoint: Option<String>,
    /// Makes the table where it is missing. Only with an endpoint: on AWS the operator makes it.
    pub create_table: bool,
    /// Who we are.
    pub credentials: Credentials,
    /// How long a call may take, attempts and waits included. What is taken back after a failure has as long again.
    pub timeout: Duration,
    /// How long one attempt may take.
    pub attempt: Duration,
    /// Keys of one call that are sent at one time.
    pub concurrency: usize,
    /// Time. Its wall clock is compared with that of others.
    pub clock: Arc<dyn Clock>,
    /// Chance: tokens, and waits between attempts.
    pub entropy: Arc<dyn Entropy>,
}

impl Options {
    /// The defaults: 1 s a call, 400 ms an attempt, 64 keys at a time.
    #[must_use]
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            region: None,
            endpoint: None,
            create_table: false,
            credentials: Credentials::Found,
            timeout: Duration::from_secs(1),
            attempt: Duration::from_millis(400),
            concurrency: 64,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
        }
    }
}

/// The store.
#[derive(Debug)]
pub struct Dedupe {
    client: Client,
    options: Options,
    breaker: Breaker,
    closed: AtomicBool,
}

impl Dedupe {
    /// Connects, and checks that the table is what it must be.
    ///
    /// # Errors
    /// Invalid (`create_table` without an endpoint, no concurrency), `NotFound` (there is no such table), `Unsupported`
    /// (its key is another), Denied, Unavailable.
    ///
    /// # Cancel safety
    /// Safe, but for a table that was to be made.
    pub async fn connect(options: Options) -> Result<Self> {
        let invalid = |why: &'static str| Err(Error::new("connect", Kind::Invalid(why.into())));
        if options.create_table && options.endpoint.is_none() {
            return invalid("create_table needs an endpoint: on AWS the operator makes the table");
        }
        if options.concurrency == 0 || options.timeout.is_zero() || options.attempt.is_zero() {
            return invalid("concurrency, timeout and attempt must not be 0");
        }
        let provider = tls::Provider::Rustls(CryptoMode::Ring);
        let http = aws_smithy_http_client::Builder::new().tls_provider(provider).build_https();
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            // attempts are counted here
            .retry_config(RetryConfig::disabled());
        if let Some(region) = &options.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(endpoint) = &options.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        if let Credentials::Keys { id, secret } = &options.credentials {
            loader = loader.credentials_provider(Keys::new(id, secret.expose(), None, None, "configuration"));
        }
        let client = Client::new(&loader.load().await);
        let store = Self { client, options, breaker: Breaker::default(), closed: AtomicBool::new(false) };
        store.prepare().await?;
        Ok(store)
    }

    fn open(&self, op: &'static str) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) { Err(Error::new(op, Kind::Stopping)) } else { Ok(()) }
    }

    async fn each<'a, F>(
        &'a self,
        op: &'static str,
        held: &'a [Ticket],
        one: impl Fn(&'a Ticket) -> F,
    ) -> Vec<Result<()>>
    where
        F: Future<Output = Result<()>> + Send + 'a,
    {
        if let Some(refused) = checked::tickets(op, held) {
            return refused;
        }
        if self.open(op).is_err() {
            return held.iter().map(|_| self.open(op)).collect();
        }
        // made at once, so that nothing of `one` is borrowed while they run
        let all: Vec<F> = held.iter().map(one).collect();
        futures::stream::iter(all).buffered(self.options.concurrency).collect().await
    }
}

#[async_trait]
impl port::Dedupe for Dedupe {
    async fn reserve(&self, rows: &[Row], under: &Under) -> Result<Vec<Verdict>> {
        checked::reserve(rows, under)?;
        self.open("reserve")?;
        self.claim_all(rows, under).await
    }

    async fn commit(&self, held: &[Ticket], retention: Retention) -> Vec<Result<()>> {
        let (deadline, wall) = (self.options.clock.now() + self.options.timeout, self.options.clock.wall());
        self.each("commit", held, |ticket| self.commit_one(ticket, retention, wall, deadline)).await
    }

    async fn release(&self, held: &[Ticket]) -> Vec<Result<()>> {
        let deadline = self.options.clock.now() + self.options.timeout;
        self.each("release", held, |ticket| self.release_one(ticket, deadline)).await
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}
