//! Asking ClickHouse: the statement with its settings and bounds, and an answer that is held whole.

use super::{
    build::End,
    failure::{Asked, failed},
    format::{Form, Format},
    planned::Planned,
    refused::Refused,
    seam::Seam,
};
use crate::{
    answers::Produced,
    app::App,
    error::ApiError,
    rows::{self, Whole},
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use std::{sync::Arc, time::Duration};
use wh_clickhouse::{Answer, Error, ServerSettings};

/// How much longer than ClickHouse we wait, so that a query that took too long is ended by it and not by us.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// Settings that not every version has, sent to those that do.
const WHERE_KNOWN: &[(&str, &str)] = &[
    // without it intervals before 1970 and after 2106 wrap around
    ("enable_extended_results_for_datetime_functions", "1"),
    // three comparisons of a DateTime with instants, joined by OR or AND, would become a list, which takes no instants
    ("optimize_min_equality_disjunction_chain_length", "1000000"),
    ("optimize_min_inequality_conjunction_chain_length", "1000000"),
];

pub(crate) static X_TRUNCATED: HeaderName = HeaderName::from_static("x-truncated");
static X_NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

/// One query, ready to be asked. Owns what it needs: it may outlive the request that brought it.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) plan: Arc<Planned>,
    pub(super) request_id: String,
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
    /// Begins the query. It ends in ClickHouse when the answer is dropped.
    pub(super) async fn begin(&self) -> Result<Answer, ApiError> {
        self.plan.tenant.runtime.clickhouse.query(self.plan.query()).await.map_err(|error| self.failed(&error))
    }

    pub(super) fn failed(&self, error: &Error) -> ApiError {
        let asked = Asked {
            columns: &self.plan.built.columns,
            database: self.plan.tenant.runtime.clickhouse.database(),
            request_id: &self.request_id,
            most: self.plan.most(),
            limits: self.plan.limits,
        };
        failed(error, asked)
    }

    /// Asks, and holds the answer whole.
    pub(super) async fn produce(&self, app: &App) -> Result<Produced, ApiError> {
        let seam = Seam::before(app, &self.plan.tenant.runtime.tenant, &self.plan.table).await;
        let answer = self.begin().await?;
        let read = Whole::read(answer, app.options.answer_bytes, &app.answers, |error| self.failed(error));
        let mut whole = read.await?;
        let (mut cut, mut next) = (None, None);
        match &self.plan.built.end {
            End::Asked => {}
            End::Probed => cut = whole.keep_lines(self.plan.built.most).then_some(self.plan.built.most),
            End::Page(page) => {
                if let Some(last) = whole.last_of(self.plan.built.most) {
                    let refused = |refused: Refused| ApiError::new(refused.code, refused.text);
                    next = Some(page.next(last).map_err(refused)?);
                }
            }
        }
        if self.plan.form.format == Format::Json {
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
