//! An open stream: what its tables tell, and whatever else it says, in one order.

use super::{
    committed::Committed,
    frame,
    lifetime::{Open, Reason, Tables},
    position::Origin,
    reader::Reader,
    wish::Told,
};
use bytes::{Bytes, BytesMut};
use futures::{FutureExt, Stream, future::BoxFuture};
use std::{convert::Infallible, future::pending, pin::Pin, sync::Arc, time::Duration};
use tokio::time::{Sleep, sleep_until};
use wh_types::{Clock, Mono, Stop};

/// So much goes out in one write where more than one block waits.
const WRITE: usize = 64 << 10;

/// A stream and its client's place.
pub(super) struct Connection {
    readers: Vec<Reader>,
    /// Which reader is asked first.
    turn: usize,
    /// What the client's id says of each table.
    said: Vec<Origin>,
    opening: Option<Bytes>,
    committed: Option<Committed>,
    /// A table is gone.
    gone: BoxFuture<'static, Box<str>>,
    keepalive: Keepalive,
    stop: Stop,
    clock: Arc<dyn Clock>,
    open: Open,
    ended: bool,
}

/// When a comment is due. The timer is set anew only when it went off.
struct Keepalive {
    every: Duration,
    due: Mono,
    timer: Pin<Box<Sleep>>,
}

/// What a connection is made of.
pub(super) struct Parts {
    pub(super) readers: Vec<Reader>,
    pub(super) committed: Option<Committed>,
    pub(super) tables: Tables,
    pub(super) keepalive: Duration,
    /// How long the client is to wait before it comes back.
    pub(super) retry: u64,
    pub(super) stop: Stop,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) open: Open,
}

/// Pieces of one write. Mostly there is one, and nothing is allocated for it.
#[derive(Default)]
struct Write {
    first: Bytes,
    more: Vec<Bytes>,
    bytes: usize,
}

impl Connection {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { readers, committed, mut tables, keepalive, retry, stop, clock, open } = parts;
        let due = clock.now() + keepalive;
        let timer = Box::pin(sleep_until(due));
        Self {
            turn: 0,
            said: vec![Origin::Now; readers.len()],
            readers,
            opening: Some(frame::retry(retry)),
            committed,
            gone: Box::pin(async move { tables.gone().await }),
            keepalive: Keepalive { every: keepalive, due, timer },
            stop,
            clock,
            open,
            ended: false,
        }
    }

    /// The body of the answer.
    pub(super) fn body(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        futures::stream::unfold(Box::new(self), |mut this| async move {
            let bytes = this.next().await?;
            Some((Ok(bytes), this))
        })
    }

    /// What is sent next, in one piece; `None` after the end.
    async fn next(&mut self) -> Option<Bytes> {
        tokio::task::coop::consume_budget().await;
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        if self.ended {
            return None;
        }
        let bytes = loop {
            // first, whatever the tables have: a busy stream ends, too
            if let Some(said) = self.beside().now_or_never() {
                break said;
            }
            let mut write = Write::default();
            self.gather(&mut write);
            if write.bytes > 0 {
                break write.join();
            }
            if let Some(bytes) = self.wait().await {
                break bytes;
            }
        };
        self.keepalive.due = self.clock.now() + self.keepalive.every;
        Some(bytes)
    }

    /// What is said beside the tables' events.
    async fn beside(&mut self) -> Bytes {
        if self.stop.given() {
            return self.end(Reason::Stopping);
        }
        let committed = async {
            match &mut self.committed {
                Some(committed) => committed.next().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = &mut self.gone => self.end(Reason::TableGone),
            bytes = committed => bytes,
        }
    }

    /// Takes what the tables have, each in its turn, for one write.
    fn gather(&mut self, write: &mut Write) {
        let count = self.readers.len();
        let turn = (self.turn + 1) % count.max(1);
        self.turn = turn;
        for index in (0..count).map(|index| (index + turn) % count) {
            while write.bytes < WRITE && !self.ended {
                let Some(told) = self.readers[index].take() else { break };
                let bytes = self.tell(index, told);
                write.add(bytes);
            }
        }
    }

    fn tell(&mut self, index: usize, told: Told) -> Bytes {
        let reader = &self.readers[index];
        let table = reader.table().as_str();
        let meters = &self.open.meters;
        let (kind, count, bytes) = match told {
            Told::Rows(frames) => {
                self.said[index] = reader.place();
                let count = frames.count;
                let bytes = if self.readers.len() > 1 {
                    let before = self.readers[..index].iter().map(|other| format!("{},", other.place()));
                    let after = self.readers[index + 1..].iter().map(|other| format!(",{}", other.place()));
                    frames.among((&before.collect::<String>(), &after.collect::<String>()), table).bytes
                } else {
                    frames.bytes
                };
                (&meters.events, count, bytes)
            }
            Told::Gap { from, to, why } => (&meters.gaps, 1, frame::gap(table, from.as_deref(), to.as_deref(), why)),
            Told::Ready => {
                self.said.iter_mut().zip(&self.readers).for_each(|(said, reader)| *said = reader.place());
                (&meters.readies, 1, frame::ready(&self.id(), table))
            }
            Told::End(reason) => return self.end(reason),
        };
        kind.frames.increment(count);
        kind.bytes.increment(bytes.len() as u64);
        bytes
    }

    /// Waits until there may be more to tell, or gives a comment.
    async fn wait(&mut self) -> Option<Bytes> {
        let Self { readers, committed, gone, keepalive, .. } = self;
        let committed = async {
            match committed {
                Some(committed) => committed.next().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = gone => return Some(self.end(Reason::TableGone)),
            bytes = committed => return Some(bytes),
            () = any(readers) => return None,
            () = keepalive.timer.as_mut() => {}
        }
        if self.clock.now() < self.keepalive.due {
            self.keepalive.timer.as_mut().reset(self.keepalive.due);
            return None;
        }
        self.keepalive.timer.as_mut().reset(self.clock.now() + self.keepalive.every);
        let moved = self.said.iter().zip(&self.readers).any(|(said, reader)| *said != reader.place());
        let bytes = if moved {
            self.said.iter_mut().zip(&self.readers).for_each(|(said, reader)| *said = reader.place());
            frame::at(&self.id())
        } else {
            frame::KEEPALIVE
        };
        let meters = &self.open.meters.keepalives;
        meters.frames.increment(1);
        meters.bytes.increment(bytes.len() as u64);
        Some(bytes)
    }

    fn end(&mut self, reason: Reason) -> Bytes {
        // a reader may hear of the stop first, as the end of its table
        let reason = if self.stop.given() { Reason::Stopping } else { reason };
        self.ended = true;
        self.open.ends(reason);
        let known = self.readers.iter().any(|reader| !reader.place().to_string().is_empty());
        frame::end(reason.name(), known.then(|| self.id()).as_deref())
    }

    /// Where the client may go on, over all tables.
    fn id(&self) -> String {
        let places: Vec<_> = self.readers.iter().map(|reader| reader.place().to_string()).collect();
        places.join(",")
    }
}

/// Returns once one of them may have something.
async fn any(readers: &mut [Reader]) {
    if let [reader] = readers {
        return reader.wait().await;
    }
    let waits: Vec<_> = readers.iter_mut().map(|reader| Box::pin(reader.wait())).collect();
    drop(futures::future::select_all(waits).await);
}

impl Write {
    fn add(&mut self, bytes: Bytes) {
        self.bytes += bytes.len();
        if self.first.is_empty() {
            self.first = bytes;
        } else {
            self.more.push(bytes);
        }
    }

    /// One piece is shared with other streams and is not copied.
    fn join(self) -> Bytes {
        if self.more.is_empty() {
            return self.first;
        }
        let mut all = BytesMut::with_capacity(self.bytes);
        all.extend_from_slice(&self.first);
        self.more.iter().for_each(|piece| all.extend_from_slice(piece));
        all.freeze()
    }
}
