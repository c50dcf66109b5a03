//! What a connection's tasks and handles share, and the changes they make to it.

use super::{Refusals, Replies, State, Subscription, refusals, slot::Slot, subscription::Wishes};
use crate::{Error, Kind, Result, Version, identity::Identity, options::Options};
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use std::{
    future::Future,
    sync::{Arc, Weak},
};
use tokio::sync::watch;
use wh_types::{Stop, Tasks};

/// The shared part of a connection.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) identity: Arc<Identity>,
    pub(crate) slot: ArcSwapOption<Slot>,
    pub(crate) state: watch::Sender<State>,
    pub(crate) stop: Stop,
    pub(super) refusals: Refusals,
    pub(super) wishes: Wishes,
    pub(super) replies: Arc<Replies>,
    all_replies: Mutex<Vec<Weak<Replies>>>,
    /// The generation that should be replaced, and whether its server is leaving.
    leave: watch::Sender<(u64, bool)>,
    pub(super) tasks: Tasks,
}

fn inbox(options: &Options) -> String {
    let (a, b) = (options.entropy.next_u64(), options.entropy.next_u64());
    format!("{}.{a:016x}{b:016x}", options.inbox_prefix)
}

impl Core {
    pub(super) fn new(options: Options, identity: Arc<Identity>) -> Arc<Self> {
        let now = options.clock.now();
        let replies = Replies::new(&inbox(&options));
        Arc::new(Self {
            identity,
            slot: ArcSwapOption::empty(),
            state: watch::Sender::new(State::new(now)),
            stop: Stop::new(),
            refusals: Refusals::new(),
            wishes: Wishes::default(),
            all_replies: Mutex::new(vec![Arc::downgrade(&replies)]),
            replies,
            leave: watch::Sender::new((0, false)),
            tasks: Tasks::new(),
            options,
        })
    }

    pub(crate) fn inbox(&self) -> String {
        inbox(&self.options)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.state.borrow().generation
    }

    pub(super) fn server(&self) -> Option<String> {
        self.state.borrow().server.clone()
    }

    /// The client in use.
    pub(crate) fn connected(&self, op: &str) -> Result<Arc<Slot>> {
        match self.slot.load_full() {
            Some(slot) if !slot.lost.given() => Ok(slot),
            _ if self.stop.given() => Err(Error::new(op, Kind::Closed)),
            _ => Err(Error::new(op, Kind::Disconnected)),
        }
    }

    /// Starts to serve an inbox of answers.
    pub(crate) async fn serve_replies(self: &Arc<Self>, replies: &Arc<Replies>) {
        let mut subscription = Subscription::new(self.clone(), replies.pattern().into(), None).await;
        let (unused, replies) = (replies.unused(), Arc::downgrade(replies));
        self.tasks.spawn("nats/replies", async move {
            loop {
                let message = tokio::select! {
                    biased;
                    message = subscription.next() => message,
                    () = unused.wait() => return,
                };
                let (Some(message), Some(replies)) = (message, replies.upgrade()) else { return };
                replies.deliver(message);
            }
        });
    }

    /// Registers an inbox of answers beside the connection's own.
    pub(crate) async fn add_replies(self: &Arc<Self>) -> Arc<Replies> {
        let replies = Replies::new(&self.inbox());
        self.serve_replies(&replies).await;
        let mut all = self.all_replies.lock();
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&replies));
        replies
    }

    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(&self, name: &'static str, task: F) {
        self.tasks.spawn(name, task);
    }

    fn each_replies(&self, act: impl Fn(&Replies)) {
        let all: Vec<_> = self.all_replies.lock().iter().filter_map(Weak::upgrade).collect();
        for replies in all {
            act(&replies);
        }
    }

    /// A client is connected: every subscription moves to it, then the world is told.
    pub(super) async fn up(&self, slot: &Arc<Slot>, server: String, version: Version) -> bool {
        if !self.wishes.ensure(slot).await {
            return false;
        }
        self.slot.store(Some(slot.clone()));
        // those that came between
        if !self.wishes.ensure(slot).await {
            return false;
        }
        let now = self.options.clock.now();
        self.state.send_modify(|state| state.up(now, slot.generation, server, version));
        true
    }

    /// No client is connected.
    pub(super) fn down(&self, why: &str) {
        self.slot.store(None);
        let now = self.options.clock.now();
        self.state.send_modify(|state| state.down(now, why.to_owned()));
        self.each_replies(|replies| replies.interrupt(&Kind::Interrupted));
    }

    /// A better connection could not be made.
    pub(super) fn failed(&self, why: String) {
        self.state.send_modify(|state| state.last_error = Some(why));
    }

    /// Changed files of credentials or certificates were taken, or cannot be.
    pub(crate) fn files(&self, taken: Result<(), String>) {
        self.state.send_modify(|state| match taken {
            Ok(()) => (state.files_taken, state.files_error) = (state.files_taken + 1, None),
            Err(error) => state.files_error = Some(error),
        });
    }

    pub(super) fn closed(&self) {
        self.state.send_modify(|state| state.closed = true);
        self.each_replies(|replies| replies.interrupt(&Kind::Closed));
        self.wishes.clear();
    }

    /// The server said something that belongs to no message.
    pub(super) fn said(&self, text: &str) {
        let text = text.strip_prefix("nats: ").unwrap_or(text);
        match refusals::read(text) {
            Some((subscription, subject)) => {
                self.refusals.note(subscription, subject);
                if !subscription {
                    self.each_replies(|replies| replies.refuse(subject));
                }
            }
            None => tracing::warn!(text, "the NATS server reports an error"),
        }
    }

    /// The server of this generation will leave soon.
    pub(super) fn leave(&self, generation: u64) {
        self.leave.send_replace((generation, true));
    }

    /// The client of this generation is to be replaced.
    pub(crate) fn replace(&self, generation: u64) {
        self.leave.send_replace((generation, false));
    }

    /// Waits until the client of this generation is to be replaced; says whether its server leaves.
    pub(super) async fn wait_leave(&self, generation: u64) -> bool {
        let mut leave = self.leave.subscribe();
        let found = leave.wait_for(|(which, _)| *which >= generation).await.map(|found| found.1);
        match found {
            Ok(leaving) => leaving,
            Err(_) => std::future::pending().await,
        }
    }
}
