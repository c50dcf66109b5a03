//! The messages of one call that must be stored in the order given: which is sent next, and what a failed one means for
//! those behind it. Pure: no time, no client.
//!
//! Messages are pipelined. One that failed stalls its lane: nothing more is sent until all that is on its way was
//! answered. It is sent again only while none behind it was stored, since it would come after them, or, where it is
//! certain that it was not stored, while none behind it may have been; else it ends as it stands. So does one that was
//! refused while one behind it was on its way and may be stored, whatever an attempt before that came to. The first message
//! after a stall goes alone, so that a server that still refuses is asked once, not a window full of times.
//!
//! One disorder is left: a leader that dies with a message, a next one that is there before the message behind it is
//! sent, and whose answer to that one is lost too. While no leader is there every message is refused at once, which
//! stalls the lane, so this takes an election between two messages that are sent together.

use crate::Kind;

/// What one attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is stored, by this attempt or before.
    Stored {
        /// Where.
        sequence: u64,
        /// Its id was stored before.
        duplicate: bool,
    },
    /// This attempt stored nothing; another may.
    Refused,
    /// Whether this attempt stored it is not known.
    Unanswered,
    /// This attempt stored nothing, and no other will.
    Never(Kind),
}

/// Where a stored message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its sequence in the stream.
    pub(crate) sequence: u64,
    /// Whether its id was stored before.
    pub(crate) duplicate: bool,
    /// An attempt before was not answered: a duplicate may be the lane's own.
    pub(crate) perhaps_own: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Not sent, or to be sent again.
    Ready,
    /// On its way.
    Sent,
    /// Answered without an outcome: sent again or given up at the next [`Lane::settle`].
    Failed,
    Done(Result<Place, Kind>),
}

#[derive(Debug)]
struct Item {
    state: State,
    /// Some attempt was not answered: whatever comes, only a place is an outcome.
    unanswered: bool,
    /// The last attempt was refused.
    refused: bool,
    /// When it was sent last: how often the lane had been settled.
    flight: u64,
}

/// One lane of one call.
#[derive(Debug)]
pub(crate) struct Lane {
    items: Vec<Item>,
    /// Nothing before it is ready.
    next: usize,
    sent: usize,
    stalled: bool,
    /// One at a time, until one is stored.
    careful: bool,
    /// How often it was settled.
    flight: u64,
}

impl Lane {
    pub(crate) fn new(count: usize) -> Self {
        let item = || Item { state: State::Ready, unanswered: false, refused: false, flight: 0 };
        let items = (0..count).map(|_| item()).collect();
        Self { items, next: 0, sent: 0, stalled: false, careful: false, flight: 0 }
    }

    /// The message that may be sent now, if one may.
    pub(crate) fn ready(&self) -> Option<usize> {
        if self.stalled || (self.careful && self.sent > 0) {
            return None;
        }
        (self.next..self.items.len()).find(|index| self.items[*index].state == State::Ready)
    }

    /// It was handed over.
    pub(crate) fn sent(&mut self, index: usize) {
        (self.items[index].state, self.items[index].flight) = (State::Sent, self.flight);
        self.sent += 1;
        self.next = index + 1;
    }

    /// What became of one that was handed over.
    pub(crate) fn answered(&mut self, index: usize, answer: Answer) {
        self.sent -= 1;
        self.take(index, answer);
    }

    /// It was not handed over.
    pub(crate) fn not_sent(&mut self, index: usize) {
        self.take(index, Answer::Refused);
    }

    fn take(&mut self, index: usize, answer: Answer) {
        let item = &mut self.items[index];
        item.state = match answer {
            Answer::Stored { sequence, duplicate } => {
                self.careful = false;
                State::Done(Ok(Place { sequence, duplicate, perhaps_own: item.unanswered }))
            }
            Answer::Never(kind) => State::Done(Err(if item.unanswered { Kind::Unknown } else { kind })),
            Answer::Refused | Answer::Unanswered => {
                item.refused = answer == Answer::Refused;
                item.unanswered |= !item.refused;
                self.stalled = true;
                State::Failed
            }
        };
    }

    /// Whether something failed, and nothing is sent until [`Lane::settle`].
    pub(crate) fn stalled(&self) -> bool {
        self.stalled
    }

    /// Once a stalled lane is idle: failed messages are ready again, but for those that a stored one has overtaken.
    /// Gives whether any is.
    pub(crate) fn settle(&mut self) -> bool {
        let last = |test: &dyn Fn(&Item) -> bool| self.items.iter().rposition(test).unwrap_or_default();
        let stored = last(&|item| matches!(item.state, State::Done(Ok(_))));
        let perhaps = last(&|item| item.unanswered).max(stored);
        let just_now = last(&|item| item.unanswered && item.flight == self.flight).max(stored);
        for (index, item) in self.items.iter_mut().enumerate().filter(|(_, item)| item.state == State::Failed) {
            // one that is certainly not stored stays behind all that may be
            let overtaken = match (item.unanswered, item.refused) {
                (false, _) => index < perhaps,
                (true, true) => index < just_now,
                (true, false) => index < stored,
            };
            item.state = if overtaken { State::Done(Err(given_up(item, Kind::Unavailable))) } else { State::Ready };
        }
        self.stalled = false;
        self.careful = true;
        self.next = 0;
        self.flight += 1;
        self.ready().is_some()
    }

    /// Ends all that has no outcome: unknown where an attempt was not answered, else `kind`.
    pub(crate) fn give_up(&mut self, kind: &Kind) {
        for item in &mut self.items {
            if !matches!(item.state, State::Done(_)) {
                item.unanswered |= item.state == State::Sent;
                item.state = State::Done(Err(given_up(item, kind.clone())));
            }
        }
    }

    /// Whether every message has its outcome.
    pub(crate) fn done(&self) -> bool {
        self.items.iter().all(|item| matches!(item.state, State::Done(_)))
    }

    /// The outcomes, in the order given.
    pub(crate) fn outcomes(self) -> Vec<Result<Place, Kind>> {
        let outcome = |item: Item| match item.state {
            State::Done(outcome) => outcome,
            State::Ready | State::Sent | State::Failed => Err(given_up(&item, Kind::Unavailable)),
        };
        self.items.into_iter().map(outcome).collect()
    }
}

fn given_up(item: &Item, kind: Kind) -> Kind {
    if item.unanswered { Kind::Unknown } else { kind }
}

#[cfg(test)]
mod tests;
