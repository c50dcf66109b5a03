//! A parked row before its table as it is now: as `POST /v1/ingest` would judge it. Publishes nothing.

use super::edit::Edit;
use crate::{
    app::App,
    codes,
    error::ApiError,
    ingest::{Form, Judge, Plan, Records, Refusal, Walk},
    json::Scanner,
    served::TenantState,
};
use bytes::Bytes;
use std::{collections::HashMap, sync::Arc};
use wh_mq::DeadLetter;
use wh_types::Table;

/// What would become of a row.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// It would be taken, with this text.
    Accepted(Vec<u8>),
    /// It would be refused.
    Refused(Refusal),
    /// Nobody can say now.
    NotAttempted(ApiError),
}

/// Judges letters of one tenant; the plans of their tables are looked up once.
pub(super) struct Trial<'a> {
    app: &'a App,
    tenant: &'a TenantState,
    plans: HashMap<Table, Result<Arc<Plan>, ApiError>>,
}

impl<'a> Trial<'a> {
    pub(super) fn new(app: &'a App, tenant: &'a TenantState) -> Self {
        Self { app, tenant, plans: HashMap::new() }
    }

    pub(super) fn tenant(&self) -> &'a TenantState {
        self.tenant
    }

    pub(super) fn judge(&mut self, letter: &DeadLetter, edit: &Edit) -> Verdict {
        let (app, tenant) = (self.app, self.tenant);
        let plan = self
            .plans
            .entry(letter.table.clone())
            .or_insert_with(|| tenant.table(letter.table.as_str(), &app.publishing).map(|(_, plan)| plan));
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) if error.code().retryable() => return Verdict::NotAttempted(error.clone()),
            Err(error) => return Verdict::Refused(Refusal::new(error.code(), error.message())),
        };
        let body = if edit.is_empty() { Ok(letter.body.clone()) } else { edit.apply(&letter.body).map(Bytes::from) };
        match body.and_then(|body| judged(plan, &body, tenant.runtime.limits.max_row_bytes)) {
            Ok(row) => Verdict::Accepted(row),
            Err(refusal) => Verdict::Refused(refusal),
        }
    }
}

/// One row's text as it would be published.
fn judged(plan: &Plan, body: &[u8], max_row: usize) -> Result<Vec<u8>, Refusal> {
    let not_object = || Refusal::new(&codes::JSON_NOT_OBJECT, "a record must be a JSON object");
    let mut json = Scanner::new(body, 0);
    if json.peek() != Some(b'{') {
        json.value(0)?;
        return Err(not_object());
    }
    let (mut records, mut judge) = (Records::default(), Judge::new(plan));
    let mut walk = Walk::begin(Form::Document, body, max_row)?;
    while walk.step(&mut judge, &mut records)? {}
    if let Some(refused) = records.refusals.pop() {
        return Err(refused.refusal);
    }
    records.rows(body).next().map(<[u8]>::to_vec).ok_or_else(not_object)
}
