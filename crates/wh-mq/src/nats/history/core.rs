//! What the readers, the ears and the mender of one process share.

use super::{
    archive::Archive,
    message::{self, Message},
    ring::Ring,
};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Notify;
use wh_topology::{Names, Spec, route};
use wh_types::{Clock, Mono, Stop, TopicKey};

/// The ring and the history.
#[derive(Debug)]
pub(super) struct Core<A> {
    /// Recent blocks.
    pub(super) ring: Mutex<Ring>,
    /// The history.
    pub(super) archive: Arc<A>,
    /// Something may be missing: it should be looked after now.
    pub(super) poke: Notify,
    /// The queue closes.
    pub(super) stop: Stop,
    /// Something may have been missed that only the partitions know of.
    suspicion: AtomicBool,
    clock: Arc<dyn Clock>,
    spec: Spec,
}

impl<A: Archive> Core<A> {
    pub(super) fn new(ring: Ring, archive: A, stop: Stop, clock: Arc<dyn Clock>, spec: Spec) -> Self {
        Self {
            ring: Mutex::new(ring),
            archive: Arc::new(archive),
            poke: Notify::new(),
            stop,
            suspicion: AtomicBool::new(false),
            clock,
            spec,
        }
    }

    fn names(&self) -> &Names {
        self.spec.names()
    }

    /// A message came, live.
    pub(super) fn hear(&self, message: Message) {
        let mut ring = self.ring.lock();
        let Some(index) = ring.index(&message.stream) else { return };
        let ours = self.is_ours(index, &message);
        ring.hear(index, message, ours, self.now());
        let (odd, holes) = (ring.take_odd(), ring.partition(index).waits());
        drop(ring);
        if odd {
            self.suspect();
        } else if holes {
            self.poke.notify_one();
        }
    }

    /// Whether a message's table lives in the partition that sent it.
    pub(super) fn is_ours(&self, index: usize, message: &Message) -> bool {
        let choices = self.spec.choices();
        let home = |key: &TopicKey| route(key.tenant(), key.table(), choices.partitions, choices.shards).partition;
        message.key.as_ref().is_some_and(|key| home(key) as usize == index)
    }

    /// The partitions should be asked for their ends.
    pub(super) fn suspect(&self) {
        self.suspicion.store(true, Ordering::Relaxed);
        self.poke.notify_one();
    }

    pub(super) fn take_suspicion(&self) -> bool {
        self.suspicion.swap(false, Ordering::Relaxed)
    }

    pub(super) fn now(&self) -> Mono {
        self.clock.now()
    }

    /// The subject of a table in the history.
    pub(super) fn subject(&self, key: &TopicKey) -> Arc<str> {
        Arc::from(self.names().history_subject(key))
    }

    /// The subjects of all tables.
    pub(super) fn subjects(&self) -> String {
        self.names().history_subjects()
    }

    /// The part of a subject that names the table.
    pub(super) fn tail<'a>(&self, subject: &'a str) -> Option<&'a str> {
        message::tail(&self.names().prefix, subject)
    }
}
