//! The one thread that writes: takes what is queued, commits it as a group, tells who waits.

use crate::{
    error::{Error, Kind},
    log::Shared,
    queue::Work,
    record::Position,
    ticket::Ticket,
    writer::Writer,
};
use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

/// How far the log is, and how far its owner.
#[derive(Debug)]
pub(crate) struct Progress {
    end: Position,
    /// Durable groups whose places somebody may still hold, oldest first.
    held: VecDeque<(Position, Weak<Ticket>)>,
}

impl Progress {
    pub(crate) fn at(end: Position) -> Self {
        Self { end, held: VecDeque::new() }
    }

    pub(crate) fn end(&self) -> Position {
        self.end
    }

    pub(crate) fn applied(&mut self) -> Position {
        self.trim();
        self.held.front().map_or(self.end, |&(begins, _)| begins)
    }

    fn trim(&mut self) {
        while self.held.front().is_some_and(|(_, ticket)| ticket.strong_count() == 0) {
            self.held.pop_front();
        }
    }

    fn advance(&mut self, begins: Position, ticket: &Arc<Ticket>, end: Position) {
        self.trim();
        self.held.push_back((begins, Arc::downgrade(ticket)));
        self.end = end;
    }
}

/// Ends the log also when this thread panics: a waiter must not wait for ever.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.queue.fail_all();
        self.0.end();
    }
}

pub(crate) fn run(shared: &Shared, mut writer: Writer) {
    let ending = Ending(shared);
    let clock = Arc::clone(&shared.segments.options.clock);
    loop {
        let work = shared.queue.take(writer.marked());
        let begin = clock.now();
        let told = if let Work::Group(batch) = &work { batch.appends } else { 0 };
        if !turn(shared, &mut writer, work) {
            break;
        }
        shared.queue.gather(told, clock.now().duration_since(begin) / 2, &*clock);
    }
    drop(ending);
}

/// Does one piece of work; `false`: it was the last.
pub(crate) fn turn(shared: &Shared, writer: &mut Writer, work: Work) -> bool {
    match work {
        Work::Group(mut batch) => {
            let result = if shared.segments.reserve.spent() && !batch.reserved {
                Err(Error::new(Kind::NoSpace, "append", "what room there is is kept for freeing more"))
            } else {
                writer.commit(&mut batch)
            };
            let failed = result.is_err();
            let mut stats = shared.stats.lock();
            stats.count(&batch, &result);
            drop(stats);
            if let Ok(begins) = result {
                shared.progress.lock().advance(begins, &batch.ticket, writer.position());
                batch.ticket.finish(Ok(begins));
                writer.note(begins, &batch);
            } else {
                batch.ticket.finish(result);
            }
            shared.queue.done(batch, failed);
        }
        Work::Mark => writer.mark(false),
        Work::Seal(ticket) => {
            writer.seal();
            let end = writer.position();
            shared.progress.lock().end = end;
            ticket.finish(Ok(end));
        }
        Work::Close => {
            writer.mark(true);
            return false;
        }
    }
    true
}
