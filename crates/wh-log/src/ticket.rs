//! What a group owes to those who wait for it: one result, and one wake each.

use crate::{
    error::Result,
    format::aligned,
    record::{Place, Position},
};
use parking_lot::Mutex;
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// A group on its way to the disk.
#[derive(Debug)]
pub(crate) struct Ticket(Mutex<State>);

#[derive(Debug)]
enum State {
    Waiting(Vec<Waker>),
    /// Where the group begins, or why it is not there.
    Done(Result<Position>),
}

impl Ticket {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::Waiting(Vec::new()))))
    }

    /// Tells all who wait.
    pub(crate) fn finish(&self, result: Result<Position>) {
        let before = std::mem::replace(&mut *self.0.lock(), State::Done(result));
        if let State::Waiting(wakers) = before {
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// `slot` is where this waiter's waker is, once it has one.
    fn poll(&self, slot: &mut Option<usize>, cx: &Context<'_>) -> Poll<Result<Position>> {
        match &mut *self.0.lock() {
            State::Done(result) => Poll::Ready(result.clone()),
            State::Waiting(wakers) => {
                match slot.and_then(|slot| wakers.get_mut(slot)) {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => {
                        *slot = Some(wakers.len());
                        wakers.push(cx.waker().clone());
                    }
                }
                Poll::Pending
            }
        }
    }
}

/// How long each record of an append is.
#[derive(Clone, Debug)]
pub(crate) enum Lens {
    One(u32),
    Many(Box<[u32]>),
}

/// An append that was queued. Resolves when its group is durable, or failed.
///
/// # Cancel safety
/// Detached: dropping it takes nothing back, the records are stored all the same.
#[derive(Debug)]
#[must_use = "the records are durable only once this resolved"]
pub struct Pending {
    pub(crate) ticket: Arc<Ticket>,
    /// Where the first record begins in the group.
    pub(crate) at: u32,
    pub(crate) lens: Lens,
    pub(crate) slot: Option<usize>,
}

impl Future for Pending {
    type Output = Result<Places>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.ticket.poll(&mut this.slot, cx).map(|result| {
            result.map(|group| {
                let offset = group.offset.saturating_add(this.at);
                let lens = std::mem::replace(&mut this.lens, Lens::One(0));
                Places { ticket: Arc::clone(&this.ticket), segment: group.segment, offset, lens }
            })
        })
    }
}

/// Waits for a group without having a record in it.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) slot: Option<usize>,
}

impl Future for Finished {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.ticket.poll(&mut this.slot, cx).map(|result| result.map(drop))
    }
}

impl Finished {
    pub(crate) fn of(ticket: Arc<Ticket>) -> Self {
        Self { ticket, slot: None }
    }
}

/// Where the records of one append stand, in their order.
///
/// While it lives, [`Log::applied`](crate::Log::applied) stays before these records: keep it until what they mean is in
/// the state a checkpoint would be taken of.
#[derive(Debug)]
pub struct Places {
    #[expect(dead_code, reason = "held so that `applied` sees it")]
    ticket: Arc<Ticket>,
    segment: u64,
    offset: u32,
    lens: Lens,
}

impl Places {
    /// The first record's place.
    #[must_use]
    pub fn first(&self) -> Place {
        let len = match &self.lens {
            Lens::One(len) => *len,
            Lens::Many(lens) => lens.first().copied().unwrap_or(0),
        };
        Place { segment: self.segment, offset: self.offset, len }
    }

    /// Every record's place.
    pub fn iter(&self) -> impl Iterator<Item = Place> {
        let lens = match &self.lens {
            Lens::One(len) => std::slice::from_ref(len),
            Lens::Many(lens) => lens,
        };
        lens.iter().scan(self.offset, |next, &len| {
            let offset = *next;
            *next = offset.saturating_add(u32::try_from(aligned(u64::from(len))).unwrap_or(u32::MAX));
            Some(Place { segment: self.segment, offset, len })
        })
    }
}
