//! Asking ClickHouse: the statement with its settings and bounds, and an answer that is held whole.

use super::{
    build::{Built, End},
    failure::{Asked, Limits, failed},
    format::{Form, Format},
    refused::Refused,
    seam::Seam,
};
use crate::{
    answers::Produced,
    app::App,
    error::ApiError,
    rows::{self, Whole},
    served::TenantState,
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use std::{sync::Arc, time::Duration};
use wh_cache::Key;
use wh_clickhouse::{Answer, Error, Query, ServerSettings, TableSchema};

/// How much longer than ClickHouse we wait, so that a query that took too long is ended by it and not by us.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// The setting that bounds a query's time.
const MAX_TIME: &str = "max_execution_time";
/// Settings that not every version has, sent to those that do.
const WHERE_KNOWN: &[(&str, &str)] = &[
    // without it intervals before 1970 and after 2106 wrap around
    ("enable_extended_results_for_datetime_functions", "1"),
];

pub(crate) static X_TRUNCATED: HeaderName = HeaderName::from_static("x-truncated");
static X_NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

/// One query, ready to be asked. Owns what it needs: it may outlive the request that brought it.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) tenant: Arc<TenantState>,
    pub(super) built: Built,
    pub(super) form: Form,
    pub(super) limits: Limits,
    pub(super) known: Arc<ServerSettings>,
    pub(super) request_id: String,
    /// What it reads.
    pub(super) table: Arc<TableSchema>,
}

/// How every answer of a form is written.
pub(crate) fn settings(form: Form, known: &ServerSettings) -> Vec<(&'static str, String)> {
    let plain = |(name, value): &(&'static str, &'static str)| (*name, (*value).to_owned());
    let known = |(name, _): &&(&'static str, &'static str)| known.knows(name);
    let mut settings: Vec<_> = rows::SETTINGS.iter().map(plain).collect();
    settings.extend(WHERE_KNOWN.iter().filter(known).map(plain));
    // those of a form change nothing where a version does not have them
    settings.extend(form.settings().iter().filter(known).map(plain));
    settings
}

impl Ask {
    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = settings(self.form, &self.known);
        settings.push((MAX_TIME, self.limits.time.as_secs_f64().to_string()));
        if let Some(most) = self.most() {
            settings.push(("max_result_rows", most.to_string()));
            settings.push(("result_overflow_mode", "throw".to_owned()));
        }
        settings
    }

    /// Most rows ClickHouse may give, where more are an error.
    fn most(&self) -> Option<u64> {
        let (most, bound) = (self.built.most, self.tenant.runtime.limits.max_result_rows);
        match &self.built.end {
            // rows that are equal in order stay together, within reason
            End::Page(_) => Some(most.saturating_add(bound)),
            End::Probed if self.form.format != Format::Json => Some(most),
            End::Probed | End::Asked => None,
        }
    }

    /// What distinguishes its answer from every other of its tenant.
    pub(super) fn key(&self) -> Key {
        let Built { sql, params, most, end, .. } = &self.built;
        let end = match end {
            End::Asked => "asked",
            End::Probed => "probed",
            End::Page(_) => "page",
        };
        // the time it may take is no part of what it says
        let settings: Vec<_> = self.settings().into_iter().filter(|(name, _)| *name != MAX_TIME).collect();
        let most = most.to_string();
        // a store may be shared by servers of other databases
        let pool = self.tenant.runtime.clickhouse.pool_key();
        let first = ["query", pool, sql, self.form.format.media(), end, &most];
        let settings = settings.iter().flat_map(|(name, value)| [*name, value.as_str()]);
        let params = params.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        Key::of(first.into_iter().chain(settings).chain(["params"]).chain(params).map(str::as_bytes))
    }

    fn query(&self) -> Query {
        let mut query = Query::read(self.built.sql.as_str())
            .format(self.form.format.clickhouse())
            .timeout(self.limits.time.saturating_add(GRACE));
        for (name, value) in self.settings() {
            query = query.setting(name, value);
        }
        for (name, value) in &self.built.params {
            query = query.param(name.as_str(), value);
        }
        query
    }

    /// Begins the query. It ends in ClickHouse when the answer is dropped.
    pub(super) async fn begin(&self) -> Result<Answer, ApiError> {
        self.tenant.runtime.clickhouse.query(self.query()).await.map_err(|error| self.failed(&error))
    }

    pub(super) fn failed(&self, error: &Error) -> ApiError {
        let asked = Asked {
            columns: &self.built.columns,
            database: self.tenant.runtime.clickhouse.database(),
            request_id: &self.request_id,
            most: self.most(),
            limits: self.limits,
        };
        failed(error, asked)
    }

    /// Asks, and holds the answer whole.
    pub(super) async fn produce(&self, app: &App) -> Result<Produced, ApiError> {
        let seam = Seam::before(app, &self.tenant.runtime.tenant, &self.table).await;
        let answer = self.begin().await?;
        let read = Whole::read(answer, app.options.answer_bytes, &app.answers, |error| self.failed(error));
        let mut whole = read.await?;
        let (mut cut, mut next) = (None, None);
        match &self.built.end {
            End::Asked => {}
            End::Probed => cut = whole.keep_lines(self.built.most).then_some(self.built.most),
            End::Page(page) => {
                if let Some(last) = whole.last_of(self.built.most) {
                    let refused = |refused: Refused| ApiError::new(refused.code, refused.text);
                    next = Some(page.next(last).map_err(refused)?);
                }
            }
        }
        if self.form.format == Format::Json {
            whole.make_array();
        }
        let text = |name: &HeaderName, value: Option<String>| {
            value.and_then(|value| HeaderValue::from_str(&value).ok()).map(|value| (name.clone(), value))
        };
        let cut = text(&X_TRUNCATED, cut.map(|rows| format!("rows={rows}")));
        let keep = cut.is_none();
        let mut told: Vec<_> = cut.into_iter().chain(text(&X_NEXT_CURSOR, next)).collect();
        if let Some(seam) = seam {
            told.extend(seam.after(app).await);
        }
        let (body, held) = whole.into_parts();
        Ok(Produced { body, told, held, keep })
    }

    /// What there is to say of no rows at all.
    pub(super) fn nothing(form: Form) -> Bytes {
        Bytes::from_static(if form.format == Format::Json { b"[]" } else { b"" })
    }
}
