//! A subscriber that comes back: it follows the table `events` over broken connections with `Last-Event-ID`, and remembers
//! everything it was told.

use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::task::JoinSet;
use wh_testkit::{http, until};
use wh_types::RowCursor;

/// How long it waits for anything of a live connection. Keep-alives are no events.
const SILENCE: Duration = Duration::from_secs(120);
/// Between two attempts to come back.
const AGAIN: Duration = Duration::from_millis(20);

/// What a subscriber was told.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// Place and number of each row, in the order in which they came.
    pub rows: Vec<(RowCursor, u64)>,
    /// The data of each gap.
    pub gaps: Vec<String>,
    /// The reason of each end that the server told.
    pub ends: Vec<String>,
    /// How often it was live.
    pub connected: u64,
    /// What it could not make sense of; always empty.
    pub nonsense: Vec<String>,
}

impl Followed {
    /// The numbers of all rows.
    #[must_use]
    pub fn ids(&self) -> BTreeSet<u64> {
        self.rows.iter().map(|(_, id)| *id).collect()
    }

    /// Demands that rows came once each and in the order of their places, and that nothing is known to be missing.
    ///
    /// # Errors
    /// The first thing that is not so.
    pub fn whole(&self) -> Result<()> {
        ensure!(self.nonsense.is_empty(), "{:?}", self.nonsense);
        ensure!(self.gaps.is_empty(), "told of gaps: {:?}", self.gaps);
        for pair in self.rows.windows(2) {
            ensure!(pair[0].0 < pair[1].0, "{:?} came before {:?}", pair[0], pair[1]);
        }
        ensure!(self.ids().len() == self.rows.len(), "a row came under two places");
        Ok(())
    }
}

/// A subscriber at work. It ends when it is dropped.
#[derive(Debug)]
pub struct Follower {
    told: Arc<Mutex<Followed>>,
    _task: JoinSet<()>,
}

impl Follower {
    /// Follows `events` at the address of an api, from now on. Returns once it is live.
    ///
    /// # Errors
    /// It is not in time.
    pub async fn start(api: &str) -> Result<Self> {
        Self::from(api, None).await
    }

    /// The same, after an event.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn from(api: &str, last: Option<RowCursor>) -> Result<Self> {
        let told = Arc::new(Mutex::new(Followed::default()));
        let (url, own) = (format!("{api}/v1/stream?table=events"), Arc::clone(&told));
        let mut task = JoinSet::new();
        task.spawn(async move { follow(&url, &own, last).await });
        let this = Self { told, _task: task };
        this.until(Duration::from_secs(60), "a stream to be live", |told| told.connected > 0).await?;
        Ok(this)
    }

    /// Waits until what it was told is as wanted.
    ///
    /// # Errors
    /// It is not in time.
    pub async fn until(&self, within: Duration, what: &str, wanted: impl Fn(&Followed) -> bool) -> Result<()> {
        until(within, what, || async {
            let told = self.told();
            if wanted(&told) {
                return Ok(());
            }
            bail!("{} rows, live {} times, gaps {:?}", told.rows.len(), told.connected, told.gaps)
        })
        .await?;
        Ok(())
    }

    /// What it was told so far.
    #[must_use]
    pub fn told(&self) -> Followed {
        self.told.lock().clone()
    }
}

async fn follow(url: &str, told: &Mutex<Followed>, mut last: Option<RowCursor>) {
    loop {
        // a connection that cannot be made, or breaks, is what it is there for
        drop(connection(url, told, &mut last).await);
        tokio::time::sleep(AGAIN).await;
    }
}

async fn connection(url: &str, told: &Mutex<Followed>, last: &mut Option<RowCursor>) -> Result<()> {
    let mut request = http::get(url);
    if let Some(last) = last {
        request = request.header("last-event-id", last.to_string());
    }
    let mut events = request.events().await?;
    while let Some(event) = events.next(SILENCE).await? {
        let mut told = told.lock();
        match event.kind.as_str() {
            "ready" => told.connected += 1,
            "gap" => told.gaps.push(event.data),
            "end" => {
                let data = event.json()?;
                told.ends.push(data["reason"].as_str().unwrap_or_default().to_owned());
            }
            "row" => match row(&event) {
                Ok((place, id)) => {
                    told.rows.push((place, id));
                    *last = Some(place);
                }
                Err(error) => told.nonsense.push(format!("{event:?}: {error}")),
            },
            _ => told.nonsense.push(format!("{event:?}")),
        }
    }
    Ok(())
}

/// A row's place and number.
pub(crate) fn row(event: &http::Event) -> Result<(RowCursor, u64)> {
    let place = event.id.as_deref().context("a row without a place")?.parse()?;
    let id = event.json()?["id"].as_u64().context("a row without its number")?;
    Ok((place, id))
}
