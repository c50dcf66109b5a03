//! Which epoch a stored message is of, by its stream's name and the time it was stored (decision D21). Pure.

use super::message::Message;
use crate::nats::cursor::epoch;
use std::sync::Arc;
use wh_types::{Cursor, Epoch, Timestamp};

/// How many incarnations of one stream are remembered.
const REMEMBERED: usize = 16;

/// The streams that are partitions, and when each was made, and made before as far as this process saw it.
#[derive(Clone, Debug, Default)]
pub(super) struct Eras(Vec<(Arc<str>, Incarnations)>);

/// When a stream was made each time, and the epoch of that, the oldest first.
type Incarnations = Vec<(Timestamp, Epoch)>;

impl Eras {
    /// A stream was made at that time.
    pub(super) fn add(&mut self, stream: &str, created: Timestamp) -> Epoch {
        let made = epoch(stream, created);
        match self.0.iter_mut().find(|(name, _)| &**name == stream) {
            None => self.0.push((Arc::from(stream), vec![(created, made)])),
            Some((_, eras)) => {
                if let Err(at) = eras.binary_search_by_key(&created, |(created, _)| *created) {
                    eras.insert(at, (created, made));
                }
                if eras.len() > REMEMBERED {
                    eras.remove(0);
                }
            }
        }
        made
    }

    /// The epoch of a message.
    ///
    /// One of a stream that is gone, or was stored before its stream was made as it is now, gets an epoch that every
    /// process derives alike: a cursor of it is good as long as nothing is made anew again.
    pub(super) fn of(&self, stream: &str, stored: Timestamp) -> Epoch {
        // no stream's name has a space
        let Some((_, eras)) = self.0.iter().find(|(name, _)| &**name == stream) else {
            return epoch(&format!("{stream} unknown"), Timestamp::default());
        };
        match eras.iter().rev().find(|(created, _)| *created <= stored) {
            Some((_, epoch)) => *epoch,
            None => epoch(&format!("{stream} before"), eras[0].0),
        }
    }

    /// Whether a stream that is a partition had this epoch.
    pub(super) fn knows(&self, epoch: Epoch) -> bool {
        self.0.iter().flat_map(|(_, eras)| eras).any(|(_, known)| *known == epoch)
    }

    /// Where a message stands.
    pub(super) fn place(&self, message: &Message) -> Cursor {
        Cursor { epoch: self.of(&message.stream, message.stored), sequence: message.sequence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_of_the_stream_as_it_was_when_it_was_stored() {
        let at = Timestamp::from_millis;
        let mut eras = Eras::default();
        let first = eras.add("P0", at(100));
        let other = eras.add("P1", at(50));
        assert_eq!(eras.of("P0", at(100)), first);
        let before = eras.of("P0", at(99));
        assert_ne!(before, first);
        let second = eras.add("P0", at(200));
        assert_eq!(eras.add("P0", at(200)), second, "seen again");
        assert_eq!((eras.of("P0", at(199)), eras.of("P0", at(200))), (first, second));
        assert_eq!(eras.of("P0", at(99)), before);
        assert_eq!((eras.of("P1", at(60)), first), (other, epoch("P0", at(100))));
        assert_ne!(eras.of("P2", at(60)), eras.of("P3", at(60)), "streams that are gone are told apart");
        assert_eq!(eras.of("P2", at(60)), Eras::default().of("P2", at(70)), "by every process alike");
    }

    #[test]
    fn few_incarnations_are_remembered() {
        let mut eras = Eras::default();
        for n in 1..100 {
            eras.add("P0", Timestamp::from_millis(n));
        }
        assert_eq!(eras.0[0].1.len(), REMEMBERED);
        assert_eq!(eras.of("P0", Timestamp::from_millis(99)), epoch("P0", Timestamp::from_millis(99)));
    }
}
