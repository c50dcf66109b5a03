//! The client: connections, credentials, and the four things asked of ClickHouse. Retries nothing.

use crate::{
    Answer, Error, Insert, Inserted, Kind, Options, Query, Result, ServerSettings,
    body::{Begun, Pieces},
    connector::{self, Connector},
    error::Purpose,
    exception,
    options::Target,
    request,
};
use arc_swap::{ArcSwap, ArcSwapOption};
use http::Request;
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use wh_types::Secret;

/// What is looked at of a bad answer's body, from its end.
const BAD_ANSWER: usize = 64 * 1024;
/// More than any answer to an insert or a definition has.
const SMALL_ANSWER: usize = 1024 * 1024;

/// Speaks to one ClickHouse as one user in one database. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    options: Options,
    access: ArcSwap<Access>,
    pool_key: String,
    address: String,
    http: legacy::Client<Connector, Pieces>,
    slots: Arc<Semaphore>,
    known: ArcSwapOption<ServerSettings>,
}

/// What changes with the password.
struct Access {
    target: Target,
    password: Option<Secret>,
}

impl Client {
    /// Checks the options. Connects to nothing.
    ///
    /// # Errors
    /// [`Kind::Invalid`], naming the option and the reason.
    pub fn new(options: Options) -> Result<Self> {
        let target = options.target()?;
        let pool_key = format!("{}@{}{} {}", options.user, target.origin, target.path, options.database);
        let address = format!("{}{}", target.origin, target.path);
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(options.idle_timeout)
            .pool_max_idle_per_host(options.max_connections)
            .build(connector::new(options.connect_timeout, target.origin.starts_with("https:"))?);
        let slots = Arc::new(Semaphore::new(options.max_connections.min(Semaphore::MAX_PERMITS)));
        let access = ArcSwap::from_pointee(Access { target, password: options.password.clone() });
        Ok(Self(Arc::new(Inner { options, access, pool_key, address, http, slots, known: ArcSwapOption::empty() })))
    }

    /// Uses another password from the next request on; clones too.
    ///
    /// # Errors
    /// [`Kind::Invalid`]: it cannot stand in a header. The password there was is kept.
    pub fn set_password(&self, password: Option<Secret>) -> Result<()> {
        let options = Options { password: password.clone(), ..self.0.options.clone() };
        let target = options.target()?;
        self.0.access.store(Arc::new(Access { target, password }));
        Ok(())
    }

    /// The database that unqualified names mean.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.0.options.database
    }

    /// Where the server is: its origin and path. Equal for clients of one server, whatever their users and databases.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// Whose trouble a failure is that is not one table's: equal for clients that share server, user and database.
    /// Holds no secret.
    #[must_use]
    pub fn pool_key(&self) -> &str {
        &self.0.pool_key
    }

    /// Tells which settings the server knows, so that those which vary by version can be sent. Discovery does.
    pub fn learn(&self, settings: Arc<ServerSettings>) {
        self.0.known.store(Some(settings));
    }

    /// What [`learn`](Self::learn) was told last.
    #[must_use]
    pub fn known(&self) -> Option<Arc<ServerSettings>> {
        self.0.known.load_full()
    }

    /// Inserts rows: all of them, or none, or unknown ([`Error::in_doubt`]).
    ///
    /// # Errors
    /// [`Error::failure`] says what becomes of the rows.
    ///
    /// # Cancel safety
    /// Detached: dropping the future may or may not stop the insert. Repeat under the same token.
    pub async fn insert(&self, insert: Insert<'_>) -> Result<Inserted> {
        let purpose = Purpose { op: "insert", effect: true };
        let inner = &*self.0;
        let access = inner.access.load_full();
        let request = request::insert(purpose, &access.target, self.database(), self.known().as_deref(), &insert)?;
        let answer = self.send(purpose, request, inner.options.request_timeout).await?;
        let done = Inserted {
            query_id: answer.query_id().map(str::to_owned),
            written_rows: answer.summary().map(|summary| summary.written_rows),
        };
        let known = answer.is_clickhouse();
        // an exception in the body says more than missing headers
        self.nothing_more(purpose, answer).await?;
        if known {
            return Ok(done);
        }
        // whoever listens there now took nothing, whatever its status says
        let text = "the answer to an insert has none of ClickHouse's headers: something else listens there";
        Err(Error::new(Kind::Malformed, purpose, text))
    }

    /// Runs a query and returns once its answer begins.
    ///
    /// # Errors
    /// [`Error::query_failure`] says what it means for who asked.
    ///
    /// # Cancel safety
    /// Detached: dropping the future closes the connection; a read is then cancelled, a write may go on.
    pub async fn query(&self, query: Query) -> Result<Answer> {
        self.ask(Purpose { op: "query", effect: !query.read_only }, query).await
    }

    /// Runs a statement to its end and forgets its answer: definitions, in tests and the quickstart.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    ///
    /// # Cancel safety
    /// Detached: the statement may go on.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        let purpose = Purpose { op: "execute", effect: true };
        let answer = self.ask(purpose, Query { wait_end: true, ..Query::any(sql) }).await?;
        answer.bytes(SMALL_ANSWER).await.map(drop)
    }

    /// Whether the server answers at all. Checks neither credentials nor the database.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn ping(&self) -> Result<()> {
        let purpose = Purpose { op: "ping", effect: false };
        let request = request::ping(purpose, &self.0.access.load_full().target)?;
        let answer = self.send(purpose, request, self.0.options.request_timeout).await?;
        answer.bytes(SMALL_ANSWER).await.map(drop)
    }

    pub(crate) async fn ask(&self, purpose: Purpose, query: Query) -> Result<Answer> {
        let Options { database, request_timeout, compress, .. } = &self.0.options;
        let (known, access) = (self.known(), self.0.access.load_full());
        let request = request::query(purpose, &access.target, database, known.as_deref(), *compress, &query)?;
        self.send(purpose, request, query.timeout.unwrap_or(*request_timeout)).await
    }

    /// Sends a request and gives its answer if it is a good one.
    async fn send(&self, purpose: Purpose, request: Request<Pieces>, timeout: Duration) -> Result<Answer> {
        let inner = &*self.0;
        let begun = request.body().begun();
        let mut deadline = Box::pin(tokio::time::sleep(timeout));
        let permit = tokio::select! {
            biased;
            permit = inner.slots.clone().acquire_owned() => permit,
            () = &mut deadline => {
                let text = format!("no connection was free within {timeout:?}");
                return Err(Error::new(Kind::Busy, purpose, text));
            }
        };
        let permit = permit.map_err(|_| Error::new(Kind::Stopping, purpose, "the client is closed"))?;
        let response = tokio::select! {
            biased;
            response = inner.http.request(request) => response.map_err(|cause| unanswered(purpose, &begun, cause))?,
            () = &mut deadline => return Err(late(purpose, &begun, timeout)),
        };
        let good = response.status().as_u16() == 200 && !response.headers().contains_key(EXCEPTION_CODE);
        let answer = Answer::new(response, purpose, inner.access.load().password.clone(), deadline, permit)?;
        if good { Ok(answer) } else { Err(self.refusal(purpose, answer).await) }
    }

    /// Reads what a bad answer says.
    async fn refusal(&self, purpose: Purpose, answer: Answer) -> Error {
        let named = answer.header(EXCEPTION_CODE).and_then(|code| code.trim().parse().ok());
        let status = answer.status();
        let body = answer.remains(BAD_ANSWER).await;
        match exception::in_bad_answer(named, &body) {
            Some(found) => Error::exception(purpose, status, found.without(self.0.access.load().password.as_ref())),
            // another's page may hold anything: its status has to do
            None => Error::new(Kind::Status, purpose, format!("status {status} without a ClickHouse exception"))
                .status_was(status),
        }
    }

    /// The body of a good answer to an insert holds nothing. ClickHouse's trouble in it is a failure, whatever its
    /// status said; anything else is not ClickHouse's answer.
    async fn nothing_more(&self, purpose: Purpose, answer: Answer) -> Result<()> {
        let status = answer.status();
        let body = answer.bytes(SMALL_ANSWER).await?;
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        Err(match exception::in_bad_answer(None, &body) {
            Some(found) => Error::exception(purpose, status, found.without(self.0.access.load().password.as_ref())),
            None => Error::new(Kind::Malformed, purpose, "the answer to an insert has a body: it is not ClickHouse's")
                .status_was(status),
        })
    }
}

const EXCEPTION_CODE: &str = "x-clickhouse-exception-code";

/// The request ended without an answer.
fn unanswered(purpose: Purpose, begun: &Begun, cause: legacy::Error) -> Error {
    let (kind, what) = if cause.is_connect() || !begun.get() {
        (Kind::Connect, "not reached")
    } else {
        (Kind::Lost, "the connection broke before the answer")
    };
    Error::new(kind, purpose, format!("{what}: {}", reasons(&cause))).caused(cause)
}

fn late(purpose: Purpose, begun: &Begun, timeout: Duration) -> Error {
    let (kind, what) = if begun.get() { (Kind::Timeout, "no answer") } else { (Kind::Connect, "not reached") };
    Error::new(kind, purpose, format!("{what} within {timeout:?}"))
}

/// The innermost reason says the most ("Connection refused").
fn reasons(error: &dyn std::error::Error) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.0.pool_key)
    }
}
