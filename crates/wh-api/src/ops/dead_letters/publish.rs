//! Parked rows on their way back into the queue: each a block of its own, under the id that follows from the letter's, so
//! that it is stored once however often it is sent within the queue's duplicate window. Goes past the coalescer, whose
//! blocks have ids of their own.

use crate::{
    app::App,
    codes::{self, Code},
};
use std::time::Duration;
use wh_mq::{DeadLetter, Receipt};
use wh_types::{Block, Class};

/// Attempts for what was not answered or not taken in, where the queue makes only one itself.
const ATTEMPTS: u32 = 3;
const BETWEEN: Duration = Duration::from_millis(250);
/// How long a queue that tries again by itself may outlast its own time for that.
const GRACE: Duration = Duration::from_secs(1);

/// What became of a row.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    Stored,
    /// It was stored before.
    Duplicate,
    /// Not stored, and why.
    Failed {
        class: Class,
        code: &'static Code,
        reason: String,
    },
}

impl Fate {
    fn of(error: &wh_mq::Error) -> Self {
        let code = Code::by_name(error.code()).unwrap_or(&codes::QUEUE_FAILED);
        Self::Failed { class: error.class(), code, reason: error.kind().to_string() }
    }

    fn silent() -> Self {
        let reason = "whether the row was stored is not known".to_owned();
        Self::Failed { class: Class::Unknown, code: &codes::QUEUE_UNKNOWN, reason }
    }

    fn again(&self) -> bool {
        matches!(self, Self::Failed { class: Class::Unavailable | Class::Unknown, .. })
    }
}

/// Stores rows, one outcome each.
pub(super) async fn publish(app: &App, rows: &[(&DeadLetter, Vec<u8>)]) -> Vec<Fate> {
    let mut fates: Vec<Option<Fate>> = Vec::with_capacity(rows.len());
    let mut blocks = Vec::with_capacity(rows.len());
    for (at, (letter, row)) in rows.iter().enumerate() {
        match letter.block(row, app.publishing.clock.wall(), app.options.encoding) {
            Ok(block) => {
                fates.push(None);
                blocks.push((at, block));
            }
            Err(_) => fates.push(Some(Fate::Failed {
                class: Class::Bug,
                code: &codes::QUEUE_FAILED,
                reason: "the row could not be compressed".to_owned(),
            })),
        }
    }
    let (attempts, time) = match app.publishing.broker.publish_budget() {
        Duration::ZERO => (ATTEMPTS, app.options.publish_timeout),
        // it tries again by itself; its answer is waited for
        own => (1, own + GRACE),
    };
    for attempt in 0..attempts {
        if attempt > 0 {
            tokio::time::sleep(BETWEEN * attempt).await;
        }
        let open = |at: usize| fates[at].as_ref().is_none_or(Fate::again);
        let (places, calls): (Vec<usize>, Vec<Block>) = blocks.iter().filter(|(at, _)| open(*at)).cloned().unzip();
        if calls.is_empty() {
            break;
        }
        let answer = tokio::time::timeout(time, app.publishing.broker.publish(&calls)).await;
        let mut answers = answer.unwrap_or_default().into_iter();
        for at in places {
            fates[at] = Some(match answers.next() {
                Some(Ok(Receipt::Stored(_))) => Fate::Stored,
                Some(Ok(Receipt::Duplicate(_))) => Fate::Duplicate,
                Some(Err(error)) => Fate::of(&error),
                None => Fate::silent(),
            });
        }
    }
    fates.into_iter().map(|fate| fate.unwrap_or_else(Fate::silent)).collect()
}
