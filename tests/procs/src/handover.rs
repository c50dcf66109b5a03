//! From a query to a stream: a client asks for all rows of `events`, then follows the table from where the answer says that
//! it is whole. Against the truth of an unbroken stream: what is in neither, and what is in both.

use crate::follower::row;
use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use wh_testkit::{http, until};
use wh_types::{Cursor, RowCursor};

/// How long anything may take.
const WAIT: Duration = Duration::from_secs(60);
/// Configuration under which one answer has all rows, within `tenant_defaults`.
pub const ALL_ROWS: &str = "  query: {default_max_rows: 10000000}";

/// An answer with all rows.
#[derive(Debug)]
struct Answer {
    /// Everything up to here is in it.
    committed: Cursor,
    /// Nothing beyond here is, where that was said.
    inserting: Option<Cursor>,
    ids: BTreeSet<u64>,
}

impl Answer {
    /// With a kept answer, too, or only with a new one.
    async fn ask(api: &str, new: bool) -> Result<Self> {
        let query = json!({ "columns": ["id"] }).to_string();
        let request = http::post(format!("{api}/v1/query?table=events"), query);
        let request = request.header("cache-control", if new { "no-cache" } else { "" });
        let reply = request.header("content-type", "application/json").timeout(WAIT).send().await?;
        ensure!(reply.status == 200, "{} {}", reply.status, reply.text());
        ensure!(reply.header("x-truncated").is_none(), "the answer is cut");
        let place = |name: &str| reply.header(name).map(str::parse::<Cursor>).transpose();
        let committed = place("x-wh-committed")?.context("how far the table is was not said")?;
        let inserting = place("x-wh-inserting")?;
        let rows = reply.json()?;
        let ids = rows.as_array().context("no rows")?.iter().map(|row| row["id"].as_u64());
        let ids = ids.collect::<Option<_>>().context("a row without its number")?;
        Ok(Self { committed, inserting, ids })
    }

    fn exact(&self) -> bool {
        self.inserting == Some(self.committed)
    }
}

/// One handover.
#[derive(Debug)]
pub struct Handover {
    answer: Answer,
    streamed: BTreeMap<RowCursor, u64>,
    /// The last place that was read.
    pub until: RowCursor,
}

impl Handover {
    /// Makes one at an api. `last` is the number of a row that is posted at its end, and that nobody else posts.
    ///
    /// # Errors
    /// A request fails, or the row does not come in time.
    pub async fn make(api: &str, last: u64) -> Result<Self> {
        Self::after(Answer::ask(api, false).await?, api, last).await
    }

    /// The same with an answer that says that nothing was under way.
    ///
    /// # Errors
    /// None does in time, or as [`Self::make`].
    pub async fn at_rest(api: &str, last: u64) -> Result<Self> {
        let exact = until(WAIT, "an answer of which nothing is uncertain", || async {
            let answer = Answer::ask(api, true).await?;
            ensure!(answer.exact(), "{} and {:?}", answer.committed, answer.inserting);
            Ok(answer)
        });
        Self::after(exact.await?, api, last).await
    }

    async fn after(answer: Answer, api: &str, last: u64) -> Result<Self> {
        let url = format!("{api}/v1/stream?table=events&since={}", answer.committed);
        let mut events = http::get(url).events().await?;
        let row_of_ours = json!({ "id": last, "at": "2026-01-01 00:00:00.000", "note": "last" }).to_string();
        let request = http::post(format!("{api}/v1/ingest?table=events"), row_of_ours);
        let reply = request.header("content-type", "application/json").timeout(WAIT).send().await?;
        ensure!(reply.status == 200, "{} {}", reply.status, reply.text());
        let mut streamed = BTreeMap::new();
        loop {
            let event = events.next(WAIT).await?.context("the stream ended")?;
            match event.kind.as_str() {
                "ready" => {}
                "row" => {
                    let (place, id) = row(&event)?;
                    ensure!(streamed.insert(place, id).is_none(), "{place} came twice");
                    if id == last {
                        return Ok(Self { answer, streamed, until: place });
                    }
                }
                _ => bail!("{event:?}"),
            }
        }
    }

    /// Whether the answer said that nothing was under way.
    #[must_use]
    pub fn exact(&self) -> bool {
        self.answer.exact()
    }

    /// Compares it with every row there was. Gives how many rows came twice.
    ///
    /// # Errors
    /// A hole, a row twice outside the interval that the answer names, or a word of the answer that is not true.
    pub fn judge(&self, truth: &[(RowCursor, u64)]) -> Result<usize> {
        let Answer { committed, inserting, ids } = &self.answer;
        let mut doubled = 0;
        for (place, id) in truth.iter().filter(|(place, _)| *place <= self.until) {
            let (answered, streamed) = (ids.contains(id), self.streamed.get(place) == Some(id));
            ensure!(answered || streamed, "{place} is in neither: {committed} {inserting:?}");
            let (before, beyond) = (place.block <= *committed, inserting.is_some_and(|at| place.block > at));
            ensure!(!before || (answered && !streamed), "{place} is not in the answer alone, up to {committed}");
            ensure!(!beyond || !answered, "{place} is in the answer, beyond {inserting:?}");
            doubled += usize::from(answered && streamed);
        }
        ensure!(!self.exact() || doubled == 0, "{doubled} rows twice although nothing was under way");
        Ok(doubled)
    }
}
