//! Progress over NATS: plain messages on one subject a table, stored nowhere. A process that serves hears all of them over
//! one subscription; what it missed it asks the durables for, which know less.

mod ears;
mod floors;
mod wire;

pub(crate) use floors::Floors;

use super::{error, shared::Shared};
use crate::{Error, Floor, Kind, Marks, Progress, Reader, Result, progress::Board};
use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use wh_types::{Table, Tenant};

/// What one process knows, and how it speaks.
#[derive(Debug)]
pub(crate) struct NatsMarks {
    shared: Arc<Shared>,
    /// Where this process serves.
    heard: Option<Heard>,
    floors: Floors,
}

#[derive(Debug)]
struct Heard {
    board: Arc<Board>,
    /// Asks the ears to say when they have taken in all that had come.
    asks: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

impl NatsMarks {
    /// Begins to hear, where this process serves.
    ///
    /// # Errors
    /// Unavailable, Stopping.
    pub(crate) async fn start(shared: &Arc<Shared>) -> Result<Arc<Self>> {
        let heard = if shared.options.role.serves() { Some(Self::listen(shared).await?) } else { None };
        Ok(Arc::new(Self { shared: Arc::clone(shared), heard, floors: Floors::default() }))
    }

    async fn listen(shared: &Arc<Shared>) -> Result<Heard> {
        let subscribed = shared.connection.subscribe(&shared.names().progress_subjects()).await;
        let messages = subscribed.map_err(|error| error::request("hear progress", error))?;
        let (board, (asks, asked)) = (Arc::new(Board::default()), mpsc::unbounded_channel());
        let ears = ears::Ears { shared: Arc::clone(shared), board: Arc::clone(&board), messages, asked };
        drop(shared.tasks.spawn("progress/ears", ears.run()));
        Ok(Heard { board, asks })
    }

    fn heard(&self, op: &'static str) -> Result<&Heard> {
        self.shared.running(op)?;
        let not_here = || Error::new(op, Kind::Unsupported("hear progress: this process does not serve"));
        self.heard.as_ref().ok_or_else(not_here)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Marks for NatsMarks {
    async fn announce(&self, marks: &[Progress]) -> Result<()> {
        const OP: &str = "announce progress";
        self.shared.running(OP)?;
        for mark in marks {
            let subject = self.shared.names().progress_subject(&Shared::key(&mark.tenant, &mark.table));
            let sent = self.shared.connection.send(&subject, None, None, wire::write(mark)).await;
            sent.map_err(|error| error::request(OP, error))?;
        }
        self.shared.connection.round_trip().await.map_err(|error| error::request(OP, error))
    }

    fn watch(&self, tenant: &Tenant, table: &Table) -> Result<Reader> {
        self.heard("watch progress")?.board.watch(tenant, table)
    }

    async fn hear(&self) -> Result<()> {
        const OP: &str = "hear progress";
        let heard = self.heard(OP)?;
        self.shared.connection.round_trip().await.map_err(|error| error::request(OP, error))?;
        let (done, taken) = oneshot::channel();
        let stopping = || Error::new(OP, Kind::Stopping);
        heard.asks.send(done).map_err(|_| stopping())?;
        taken.await.map_err(|_| stopping())
    }

    async fn floor(&self, tenant: &Tenant, table: &Table) -> Result<Floor> {
        self.shared.running("progress floor")?;
        let floor = self.floors.of(&self.shared, tenant, table).await?;
        if let Some(heard) = &self.heard {
            heard.board.post_floor(tenant, table, floor);
        }
        Ok(floor)
    }
}
