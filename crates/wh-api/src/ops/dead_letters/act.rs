//! Check, replay and purge: a walk over the letters that are meant, a window at a time.

use super::{
    edit::Edit,
    failed,
    named::Named,
    publish::{Fate, publish},
    report::{Entry, Report, Status},
    select::{Chosen, FilterText, Selection, invalid},
    trial::{Trial, Verdict},
};
use crate::{
    app::App,
    body::{self, Bounds},
    codes,
    error::ApiError,
    json,
    ops::{enter, fresh},
    params::Params,
    served::TenantState,
};
use axum::{
    Json,
    extract::{Request, State},
    response::Response,
};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use wh_mq::{DeadLetter, DeadLetterQuery};
use wh_types::Class;

/// Rows of one step: no more than these are on their way into the queue at once.
const WINDOW: usize = 256;
/// Most time of a request until it says where to go on, and most bytes of rows it looks at or shows.
const TIME: Duration = Duration::from_secs(30);
const BYTES: usize = 32 << 20;
/// Largest body.
const BODY: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    ids: Option<Vec<String>>,
    #[serde(default, deserialize_with = "json::maybe")]
    filter: Option<FilterText>,
    #[serde(default)]
    all: bool,
    #[serde(default, deserialize_with = "whole")]
    limit: Option<usize>,
    cursor: Option<String>,
    #[serde(default)]
    edit: Vec<Box<RawValue>>,
    /// Replay: leave the letters where they are.
    #[serde(default)]
    keep: bool,
}

/// A number of letters. Anything else is refused in words, not in the name of a type.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    match Option::<Box<RawValue>>::deserialize(from)?.map(|given| given.get().parse()) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(D::Error::custom("\"limit\" is a whole number")),
    }
}

/// What is done with the letters.
enum Act {
    Check(Edit),
    Replay(Edit, Keep),
    Purge,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    No,
    Yes,
}

/// `POST /v1/ops/dead-letters/check`.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (tenant, ask) = read(&app, request).await?;
    if ask.keep {
        return Err(invalid("\"keep\" is for a replay"));
    }
    let act = Act::Check(Edit::read(&ask.edit)?);
    answer(&app, &tenant, ask, act).await
}

/// `POST /v1/ops/dead-letters/replay`.
pub(crate) async fn replay(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (tenant, ask) = read(&app, request).await?;
    let keep = if ask.keep { Keep::Yes } else { Keep::No };
    let act = Act::Replay(Edit::read(&ask.edit)?, keep);
    if keep == Keep::No {
        may_purge(&app, &tenant).await.map_err(|error| {
            error.reworded(|why| format!("{why}; with \"keep\": true the rows are replayed and their letters stay"))
        })?;
    }
    answer(&app, &tenant, ask, act).await
}

/// `POST /v1/ops/dead-letters/purge`.
pub(crate) async fn purge(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let (tenant, ask) = read(&app, request).await?;
    if ask.keep || !ask.edit.is_empty() {
        return Err(invalid("\"keep\" and \"edit\" are for a replay"));
    }
    may_purge(&app, &tenant).await?;
    answer(&app, &tenant, ask, Act::Purge).await
}

async fn read(app: &App, request: Request) -> Result<(Arc<TenantState>, Ask), ApiError> {
    let (head, body) = request.into_parts();
    let tenant = Arc::clone(enter(app, &head.headers, &head.uri)?);
    Params::new(&head.uri).only(&["tenant"])?;
    let bounds = Bounds { cap: BODY, time: app.options.body_timeout, share: 2 };
    let taken = body::take(&head.headers, body, bounds, &app.budget).await?;
    let ask = json::object(&taken.bytes).map_err(|error| invalid(format!("invalid json: {error}")))?;
    Ok((tenant, ask))
}

/// Whether letters can be removed here: asked before anything is done.
async fn may_purge(app: &App, tenant: &TenantState) -> Result<(), ApiError> {
    let purge = app.publishing.broker.purge_dead_letters(&tenant.runtime.tenant, &[]).await;
    purge.map(drop).map_err(|error| failed(&error))
}

async fn answer(app: &App, tenant: &TenantState, ask: Ask, act: Act) -> Result<Response, ApiError> {
    let Ask { ids, filter, all, limit, cursor, .. } = ask;
    let selection = Chosen { ids, filter, all, limit, cursor }.read(app.publishing.clock.wall())?;
    let Ok(_alone) = app.replaying.try_acquire() else {
        return Err(ApiError::new(&codes::DEAD_LETTERS_BUSY, "this process handles other dead letters right now"));
    };
    let report = walk(app, tenant, &selection, &act).await?;
    Ok(fresh(Json(report)))
}

async fn walk(app: &App, tenant: &TenantState, selection: &Selection, act: &Act) -> Result<Report, ApiError> {
    let (name, broker, clock) = (&tenant.runtime.tenant, &app.publishing.broker, &app.publishing.clock);
    let (mut report, mut bytes, start) = (Report::default(), 0, clock.now());
    let mut trial = Trial::new(app, tenant);
    let mut query = selection.query.clone();
    loop {
        query.limit = WINDOW.min(selection.most - report.results.len());
        let named = selection.query.ids.as_deref().map(|all| Named::new(all, query.cursor, query.limit));
        query.ids = named.as_ref().map(Named::asked);
        let page = match broker.dead_letters(name, &query).await {
            Ok(page) => page,
            Err(error) if report.results.is_empty() => return Err(failed(&error)),
            Err(error) => {
                report.stop(&query, &failed(&error));
                return Ok(report);
            }
        };
        let window: usize = page.letters.iter().map(|letter| letter.body.len()).sum();
        // the bodies, the edited rows and the blocks made of them
        let held = app.budget.take(window * 3).await;
        let done = match held {
            Ok(_held) => match act {
                Act::Check(edit) => {
                    try_out(&mut trial, &page.letters, edit, &mut report);
                    Ok(())
                }
                Act::Replay(edit, keep) => put_back(app, &mut trial, &page.letters, edit, *keep, &mut report).await,
                Act::Purge => remove(app, tenant, &page.letters, &mut report).await,
            },
            Err(busy) => Err(busy),
        };
        if let Err(error) = done {
            report.stop(&query, &error);
            return Ok(report);
        }
        bytes += window;
        let (missing, next) = named.map_or((Vec::new(), page.next), |named| named.passed(&page));
        missing.into_iter().for_each(|id| report.add(Entry::not_found(id)));
        query.cursor = next;
        let over =
            report.results.len() >= selection.most || bytes >= BYTES || clock.now().duration_since(start) >= TIME;
        if over || query.cursor.is_none() {
            report.next = query.cursor.map(|cursor| cursor.to_string());
            return Ok(report);
        }
        tokio::task::yield_now().await;
    }
}

impl Report {
    /// Something failed: the same window is to be tried again.
    fn stop(&mut self, query: &DeadLetterQuery, error: &ApiError) {
        self.next = Some(query.cursor.map_or_else(|| "c0".to_owned(), |cursor| cursor.to_string()));
        self.stopped = Some(error.into());
    }
}

fn try_out(trial: &mut Trial<'_>, letters: &[DeadLetter], edit: &Edit, report: &mut Report) {
    for letter in letters {
        report.add(match trial.judge(letter, edit) {
            Verdict::Accepted(row) => {
                let mut entry = Entry::new(letter, Status::Accepted);
                entry.row = Some(String::from_utf8_lossy(&row).into_owned());
                entry
            }
            other @ (Verdict::Refused(_) | Verdict::NotAttempted(_)) => refused(letter, &other),
        });
    }
}

/// The entry of a row that is not published.
fn refused(letter: &DeadLetter, verdict: &Verdict) -> Entry {
    match verdict {
        Verdict::Accepted(_) => Entry::new(letter, Status::Accepted),
        Verdict::Refused(refusal) => {
            let mut entry = Entry::new(letter, Status::Refused).because(refusal.code, &*refusal.reason);
            entry.column = refusal.column.as_deref().map(str::to_owned);
            entry
        }
        Verdict::NotAttempted(error) => Entry::new(letter, Status::NotAttempted).because(error.code(), error.message()),
    }
}

/// Publishes a window's rows and removes the letters of those that are stored.
async fn put_back(
    app: &App,
    trial: &mut Trial<'_>,
    letters: &[DeadLetter],
    edit: &Edit,
    keep: Keep,
    report: &mut Report,
) -> Result<(), ApiError> {
    let (mut entries, mut rows) = (BTreeMap::new(), Vec::with_capacity(letters.len()));
    let mut places = Vec::with_capacity(letters.len());
    for (place, letter) in letters.iter().enumerate() {
        match trial.judge(letter, edit) {
            Verdict::Accepted(row) => {
                rows.push((letter, row));
                places.push(place);
            }
            other @ (Verdict::Refused(_) | Verdict::NotAttempted(_)) => {
                entries.insert(place, refused(letter, &other));
            }
        }
    }
    let fates = publish(app, &rows).await;
    let (mut stored, mut trouble) = (Vec::with_capacity(rows.len()), None);
    for ((place, (letter, _)), fate) in places.into_iter().zip(&rows).zip(fates) {
        let entry = match fate {
            Fate::Stored => {
                app.meters.replayed(&letter.tenant, &letter.table, &letter.code);
                stored.push(letter.id);
                Entry::new(letter, Status::Replayed)
            }
            Fate::Duplicate => {
                stored.push(letter.id);
                Entry::new(letter, Status::Duplicate)
            }
            Fate::Failed { class: Class::Invalid, code, reason } => {
                Entry::new(letter, Status::Refused).because(code, reason)
            }
            Fate::Failed { code, reason, .. } => {
                trouble = Some(ApiError::new(code, reason.clone()));
                Entry::new(letter, Status::NotAttempted).because(code, reason)
            }
        };
        entries.insert(place, entry);
    }
    entries.into_values().for_each(|entry| report.add(entry));
    if keep == Keep::No && !stored.is_empty() {
        // what is not removed is a duplicate the next time
        match app.publishing.broker.purge_dead_letters(&trial.tenant().runtime.tenant, &stored).await {
            Ok(count) => report.purged += count,
            Err(error) => return Err(failed(&error)),
        }
    }
    trouble.map_or(Ok(()), Err)
}

async fn remove(app: &App, tenant: &TenantState, letters: &[DeadLetter], report: &mut Report) -> Result<(), ApiError> {
    let ids: Vec<_> = letters.iter().map(|letter| letter.id).collect();
    let purge = app.publishing.broker.purge_dead_letters(&tenant.runtime.tenant, &ids).await;
    report.purged += purge.map_err(|error| failed(&error))?;
    for letter in letters {
        report.add(Entry::new(letter, Status::Purged));
    }
    Ok(())
}
