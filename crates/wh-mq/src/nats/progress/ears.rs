//! Takes in every mark that is announced, until the queue closes.

use super::wire;
use crate::{nats::shared::Shared, progress::Board};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use wh_nats::Subscription;
use wh_types::TopicKey;

pub(super) struct Ears {
    pub(super) shared: Arc<Shared>,
    pub(super) board: Arc<Board>,
    pub(super) messages: Subscription,
    pub(super) asked: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
}

impl Ears {
    pub(super) async fn run(mut self) {
        let prefix = self.shared.names().progress_subjects();
        let prefix = prefix.trim_end_matches('>').to_owned();
        loop {
            let message = tokio::select! {
                // what has come is taken in before anybody is told so
                biased;
                () = self.shared.stop.wait() => break,
                message = self.messages.next() => message,
                Some(done) = self.asked.recv() => {
                    // who asked may have gone
                    done.send(()).ok();
                    continue;
                }
            };
            let Some(message) = message else { break };
            let key = message.subject().strip_prefix(&prefix).and_then(TopicKey::parse);
            let Some(key) = key else { continue };
            match wire::read(&key, message.body()) {
                Ok(mark) => self.board.post(mark),
                Err(reason) => {
                    tracing::debug!(subject = message.subject(), reason, "a progress mark cannot be read: {reason}");
                }
            }
        }
        self.board.close();
    }
}
