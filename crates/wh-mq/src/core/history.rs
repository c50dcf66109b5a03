//! A reader's way through one table's blocks. Replay and live are one walk, so there is no seam to lose anything at.

use super::{Core, TableIndex, table::State};
use crate::{From, Gap};
use wh_types::Cursor;

/// Where a reader stands.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub(crate) table: TableIndex,
    /// Everything up to here was shown, or was not there.
    after: u64,
    /// What is stored after this is live.
    seam: u64,
    live: bool,
    /// A gap to tell of before anything else: where the reader came from.
    gap: Option<Option<Cursor>>,
}

/// What a reader is shown.
#[derive(Clone, Debug)]
pub(crate) enum Shown<B> {
    Block(Cursor, B),
    Live,
    Gap(Gap),
}

/// What a reader gets when it looks.
#[derive(Debug)]
pub(crate) enum Read<B> {
    /// This.
    Shown(Shown<B>),
    /// Nothing new.
    Wait,
}

impl Reader {
    /// What is stored after this is live.
    pub(crate) fn seam(&self) -> u64 {
        self.seam
    }
}

impl<B: Clone> Core<B> {
    /// Begins to follow a table.
    pub(crate) fn follow(&mut self, at: TableIndex, from: From) -> Reader {
        let seam = self.confirmed;
        let table = &self.tables[at.0 as usize];
        let (after, gap) = match from {
            From::Now => (seam, None),
            From::After(cursor) if cursor.epoch != self.epoch || cursor.sequence > seam => {
                (table.floor, Some(Some(cursor)))
            }
            From::After(cursor) => (cursor.sequence, None),
            From::Time(since) => {
                let missed = table.floor_received.is_some_and(|received| received >= since);
                // one that is gone counts too: the reader is then told of the gap
                let mut there = table.entries.iter().filter(|e| !matches!(e.state, State::Void | State::Pending));
                let first = there.find(|entry| entry.received >= since);
                let after = match first {
                    Some(first) => first.sequence - 1,
                    None => seam,
                };
                (after.max(table.floor), missed.then_some(None))
            }
        };
        Reader { table: at, after, seam, live: false, gap }
    }

    /// What the reader sees next.
    pub(crate) fn read(&self, reader: &mut Reader) -> Read<B> {
        let table = &self.tables[reader.table.0 as usize];
        let mut missed = reader.gap.take();
        if missed.is_none() && reader.after < table.floor {
            missed = Some((reader.after > 0).then(|| self.cursor(reader.after)));
        }
        let mut index = table.first_after(reader.after);
        let found = loop {
            let Some(entry) = table.entries.get(index) else { break None };
            match entry.state {
                State::Pending => break None,
                State::Gone if missed.is_none() => missed = Some(Some(self.cursor(reader.after))),
                State::Gone | State::Void => {}
                State::Fresh | State::Held(_) | State::Delayed | State::Due | State::Settled => {
                    let taken = table.gaps.get(&entry.sequence).is_some_and(|through| *through > reader.after);
                    if taken && missed.is_none() {
                        missed = Some(Some(self.cursor(reader.after)));
                    }
                    break Some(entry);
                }
            }
            index += 1;
        };
        if let Some(after) = missed {
            let before = found.map(|entry| self.cursor(entry.sequence));
            // the reader stands right before what it is shown next, so that it hears of this gap once
            reader.after = match found {
                Some(entry) => entry.sequence - 1,
                None => {
                    let last = index.checked_sub(1).map_or(0, |last| table.entries[last].sequence);
                    reader.after.max(table.floor).max(last)
                }
            };
            return Read::Shown(Shown::Gap(Gap { after, before }));
        }
        match found {
            Some(entry) if reader.live || entry.sequence <= reader.seam => {
                reader.after = entry.sequence;
                match entry.body.clone() {
                    Some(body) => Read::Shown(Shown::Block(self.cursor(entry.sequence), body)),
                    None => Read::Shown(Shown::Gap(Gap { after: None, before: None })),
                }
            }
            Some(_) | None if !reader.live => {
                reader.live = true;
                Read::Shown(Shown::Live)
            }
            Some(_) | None => Read::Wait,
        }
    }
}
