//! One call, ready to be asked: its settings and bounds, and what becomes of its answer.

use super::{
    kind::Kind,
    pipe::{Bound, Pipe},
};
use crate::{
    answers::{Asked, Freshness, How, Life, Looked, Produced, resolved, tee},
    app::App,
    codes,
    error::{ApiError, internal},
    query::{Asked as Failing, Form, Format, GRACE, Limits, Streams, X_TRUNCATED, failed_under, settings, streamed},
    rows::Whole,
    served::TenantState,
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderValue, header};
use std::{sync::Arc, time::Duration};
use wh_cache::Key;
use wh_clickhouse::{Answer, Client, Error, Query, Reads, ServerSettings};

/// Most time a definition's answer waits for the schema to be read again; the reading goes on.
const REFRESH: Duration = Duration::from_secs(5);

/// The setting that bounds a statement's time, which is no part of what it says.
const MAX_TIME: &str = "max_execution_time";

/// Codes that are about the statement and quote it: no such column, function, setting, table, database, and no syntax.
const OF_THE_STATEMENT: &[i32] = &[8, 10, 16, 46, 47, 60, 62, 63, 81, 115];

/// One call. Owns what it needs: it may outlive the request that brought it.
#[derive(Debug)]
pub(super) struct Call {
    tenant: Arc<TenantState>,
    pipe: Arc<Pipe>,
    bound: Bound,
    form: Form,
    known: Arc<ServerSettings>,
    request_id: String,
    limits: Limits,
    /// Most rows of the answer.
    most: u64,
}

impl Call {
    pub(super) fn new(
        tenant: Arc<TenantState>,
        pipe: Arc<Pipe>,
        bound: Bound,
        form: Form,
        known: Arc<ServerSettings>,
        request_id: &str,
    ) -> Self {
        let bounds = &tenant.runtime.limits;
        let own = pipe.limits.max_execution_time.filter(|own| *own < bounds.query_timeout);
        let limits = Limits { time: own.unwrap_or(bounds.query_timeout), own_time: own.is_some() };
        let most = pipe.limits.max_rows.unwrap_or(u64::MAX).min(bounds.max_result_rows);
        Self { tenant, pipe, bound, form, known, request_id: request_id.to_owned(), limits, most }
    }

    pub(super) fn client(&self) -> &Client {
        &self.tenant.runtime.clickhouse
    }

    pub(super) fn bound(&self) -> &Bound {
        &self.bound
    }

    /// What the statement runs under, whatever it is.
    fn bounds(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![(MAX_TIME, self.limits.time.as_secs_f64().to_string())];
        let own = &self.pipe.limits;
        for (name, value) in [("max_memory_usage", own.max_memory_usage), ("max_rows_to_read", own.max_rows_to_read)] {
            all.extend(value.map(|value| (name, value.to_string())));
        }
        all
    }

    /// A read's. Its rows are cut where its form allows it, at the end of the block that is one too many.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut all = settings(self.form, &self.known);
        let overflow = if self.form.format == Format::Json { "break" } else { "throw" };
        all.push(("max_result_rows", self.most.to_string()));
        all.push(("result_overflow_mode", overflow.to_owned()));
        all
    }

    fn query(&self, mut query: Query, settings: Vec<(&'static str, String)>) -> Query {
        query.params.clone_from(&self.bound.params);
        let all = settings.into_iter().chain(self.bounds());
        let query = all.fold(query, |query, (name, value)| query.setting(name, value));
        query.timeout(self.limits.time.saturating_add(GRACE))
    }

    pub(super) fn failed(&self, error: &Error) -> ApiError {
        let failing = Failing {
            columns: &[],
            database: self.client().database(),
            request_id: &self.request_id,
            most: None,
            limits: self.limits,
        };
        let told = failed_under(error, failing, self.pipe.limits.max_memory_usage.is_some());
        match error.code() {
            Some(396) => {
                let most = self.most;
                told.reworded(|_| format!("the answer has more than {most} rows, and this form is never cut"))
            }
            // the caller did not write it, and is not to read it
            Some(code) if OF_THE_STATEMENT.contains(&code) => {
                let name = &self.pipe.name;
                tracing::warn!(pipe = name, %error, "ClickHouse refuses the statement of the pipe {name}: {error}");
                told.reworded(|_| "ClickHouse refuses the pipe's statement; the server's log says why".to_owned())
            }
            _ => told,
        }
    }

    /// What distinguishes its answer from every other of its tenant.
    fn key(&self) -> Key {
        let Bound { sql, params } = &self.bound;
        // a store may be shared by servers of other databases
        let first = ["pipe", self.client().pool_key(), sql.as_str(), self.form.format.media()];
        // what fails under one bound may not under another
        let mut settings = self.settings();
        settings.extend(self.bounds().into_iter().filter(|(name, _)| *name != MAX_TIME));
        let settings = settings.iter().flat_map(|(name, value)| [*name, value.as_str()]);
        let params = params.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        Key::of(first.into_iter().chain(settings).chain(["params"]).chain(params).map(str::as_bytes))
    }

    /// What it reads, where that is of any use, and how fresh its answer is to be then.
    async fn reads(&self, app: &App, freshness: Freshness) -> (Reads, Freshness) {
        let kept = app.invalidation.is_some() && freshness != Freshness::Apart;
        if !kept || self.pipe.ttl.is_some_and(|ttl| ttl.is_zero()) {
            return (Reads::unknown(), freshness);
        }
        let Bound { sql, params } = &self.bound;
        resolved(self.limits.time, self.tenant.relations.reads_of_statement(sql, params), freshness).await
    }

    /// Answers with rows.
    pub(super) async fn read(self, app: &Arc<App>, freshness: Freshness) -> Result<Response, ApiError> {
        let (form, call) = (self.form, Arc::new(self));
        let (reads, freshness) = call.reads(app, freshness).await;
        let asked = Asked {
            tenant: &call.tenant.runtime.tenant,
            database: call.client().database(),
            key: call.key(),
            caps: u64::try_from(call.limits.time.as_millis()).unwrap_or(u64::MAX),
            reads,
            life: Life::at_most(call.tenant.runtime.limits.cache_ttl).of_its_own(call.pipe.ttl),
            freshness,
        };
        let mut response = if form.format == Format::Json {
            let (own, app_of_it) = (Arc::clone(&call), Arc::clone(app));
            app.kept.answer(asked, || async move { own.produce(&app_of_it).await }).await?.into_response()
        } else {
            streaming(app, asked, Arc::clone(&call)).await?
        };
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(form.format.media()));
        // no cache between us and the caller knows when it ends
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        Ok(response)
    }

    /// One array, held whole.
    async fn produce(&self, app: &App) -> Result<Produced, ApiError> {
        let answer = self.begin().await?;
        let read = Whole::read(answer, app.options.answer_bytes, &app.answers, |error| self.failed(error));
        let mut whole = read.await?;
        let cut = whole.keep_lines(self.most);
        whole.make_array();
        let told = cut.then(|| HeaderValue::from_str(&format!("rows={}", self.most)).ok()).flatten();
        let told = told.map(|value| (X_TRUNCATED.clone(), value)).into_iter().collect();
        let (body, held) = whole.into_parts();
        Ok(Produced { body, told, held, keep: !cut })
    }

    /// Runs a statement that writes, to its end, whether or not its caller stays: it may change what answers were made of
    /// in any case, also where it failed.
    pub(super) async fn write(self, app: &Arc<App>, kind: Arc<Kind>) -> Result<Response, ApiError> {
        let own = Arc::clone(app);
        let form = self.form;
        let running = app.publishing.tasks.spawn("api/pipe", async move {
            let outcome = self.run().await;
            self.changed(&own, &kind).await;
            outcome
        });
        // what may have happened is the caller's to look at
        running.await.unwrap_or_else(|_| Err(internal())).map_err(ApiError::without_retry)?;
        let nothing = if form.format == Format::Json { "[]" } else { "" };
        let mut response = Bytes::from_static(nothing.as_bytes()).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(form.format.media()));
        How::Bypass.tell(&mut response);
        Ok(response)
    }

    async fn run(&self) -> Result<(), ApiError> {
        // it is stored when it is answered
        let settings = vec![("async_insert", "0".to_owned())];
        let mut query = self.query(Query::any(self.bound.sql.as_str()), settings);
        // it is over, well or badly, before its answer begins
        query.wait_end = true;
        let answer = self.client().query(query).await.map_err(|error| self.failed(&error))?;
        let mut rest = answer.stream();
        while let Some(piece) = rest.next().await {
            piece.map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    /// Ends what was kept of what it may have changed; has the schema read again behind a definition.
    async fn changed(&self, app: &App, kind: &Kind) {
        self.end_answers(app, kind).await;
        if *kind == Kind::Other {
            let read = tokio::time::timeout(REFRESH, self.tenant.runtime.schema.refresh()).await;
            if !matches!(read, Ok(Ok(_))) {
                tracing::warn!(pipe = self.pipe.name, "the schema could not be read at once behind a pipe that writes");
            }
            // what was read meanwhile was looked up in the definitions from before
            self.end_answers(app, kind).await;
        }
    }

    async fn end_answers(&self, app: &App, kind: &Kind) {
        let Some(invalidation) = &app.invalidation else { return };
        match kind {
            Kind::Insert(Some(table)) if self.is_plain(table) => {
                invalidation.wrote(self.client(), &self.tenant.relations, table).await;
            }
            Kind::Insert(_) | Kind::Read | Kind::Other => invalidation.everything(self.client()).await,
        }
    }

    /// Whether it is a table of rows, and what an insert into it changes follows from the schema.
    fn is_plain(&self, table: &str) -> bool {
        let schema = self.tenant.runtime.schema.get();
        let table = schema.as_ref().and_then(|schema| schema.table(table));
        table.is_some_and(|table| table.engine.ends_with("MergeTree") || table.engine == "Memory")
    }
}

impl Streams for Arc<Call> {
    async fn begin(&self) -> Result<Answer, ApiError> {
        Call::begin(self).await
    }

    fn failed(&self, error: &Error) -> ApiError {
        Call::failed(self, error)
    }

    fn format(&self) -> Format {
        self.form.format
    }

    fn request_id(&self) -> &str {
        &self.request_id
    }
}

impl Call {
    /// Begins a read. It ends in ClickHouse when the answer is dropped.
    async fn begin(&self) -> Result<Answer, ApiError> {
        let query = Query::read(self.bound.sql.as_str()).format(self.form.format.clickhouse());
        let answer = self.client().query(self.query(query, self.settings())).await;
        let answer = answer.map_err(|error| self.failed(&error))?;
        let own = answer.format().is_some_and(|format| format != self.form.format.clickhouse());
        if own { Err(self.own_format()) } else { Ok(answer) }
    }

    /// The statement names the form of its answer itself: nobody asked for that.
    fn own_format(&self) -> ApiError {
        let name = &self.pipe.name;
        tracing::error!(pipe = name, "the pipe {name} cannot be run: its statement has a FORMAT of its own");
        let text = "the pipe cannot be run as it stands in the server's settings; the server's log says why";
        ApiError::new(&codes::PIPE_UNUSABLE, text)
    }
}

/// An answer that is passed on as it comes. It is computed for each request, and kept once it has ended well.
async fn streaming(app: &App, asked: Asked<'_>, call: Arc<Call>) -> Result<Response, ApiError> {
    let place = match app.kept.look(&asked).await {
        Looked::Hit(answer) => return Ok(answer.into_response()),
        Looked::Miss(place) => Some(place),
        Looked::Bypass => None,
    };
    let keep = place.map(|place| app.kept.gather(place, Vec::new()));
    let how = if keep.is_some() { How::Miss } else { How::Bypass };
    let pieces = streamed::begin(call).await?;
    let body = match keep {
        Some(keep) => Body::from_stream(tee(pieces, keep)),
        None => Body::from_stream(pieces),
    };
    let mut response = body.into_response();
    how.tell(&mut response);
    Ok(response)
}
