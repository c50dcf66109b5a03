//! Which counts (N, V) the processes that share the queue run with: said with each member's lease, read from the others'
//! (decision D19). Two that differ would look for a table's rows in two places.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};
use wh_coord::{Seen, Session};
use wh_topology::{Choices, Peer};
use wh_types::Mono;

/// The word before the counts in a note.
const WORD: &str = "counts";

/// How many streams and shards a process runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) partitions: u32,
    pub(crate) shards: u32,
}

/// What was heard of the other members.
#[derive(Debug)]
pub(crate) struct Peers {
    own: Counts,
    heard: BTreeMap<Session, Heard>,
    /// Those that were told of as differing.
    told: BTreeSet<Session>,
}

#[derive(Debug)]
struct Heard {
    peer: Peer,
    /// The first revision that was seen.
    first: u64,
    /// Another was seen since: what it says is said by somebody who lives.
    renewed: bool,
    lapses: Option<Mono>,
}

impl Counts {
    pub(crate) fn of(choices: &Choices) -> Self {
        Self { partitions: choices.partitions, shards: choices.shards }
    }

    /// A note, and our counts behind it.
    pub(crate) fn said_with(self, note: &str) -> String {
        let space = if note.is_empty() { "" } else { " " };
        format!("{note}{space}{WORD} {self}")
    }

    /// The counts in a note; `None` in one of a version that said none.
    pub(crate) fn read(note: &str) -> Option<Self> {
        let (_, said) = note.split(' ').zip(note.split(' ').skip(1)).find(|(word, _)| *word == WORD)?;
        let (partitions, shards) = said.split_once('x')?;
        Some(Self { partitions: partitions.parse().ok()?, shards: shards.parse().ok()? })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.partitions, self.shards)
    }
}

impl Heard {
    fn counts(&self) -> Counts {
        Counts { partitions: self.peer.partitions, shards: self.peer.shards }
    }

    fn is_live(&self, now: Mono) -> bool {
        self.lapses.is_none_or(|lapses| now < lapses)
    }
}

impl Peers {
    pub(crate) fn new(own: Counts) -> Self {
        Self { own, heard: BTreeMap::new(), told: BTreeSet::new() }
    }

    /// Takes in what was read of all members. Gives those that live and differ and were not given before.
    pub(crate) fn read<'a>(&mut self, seen: impl Iterator<Item = &'a Seen>, own: &Session, now: Mono) -> Vec<Peer> {
        let mut before = std::mem::take(&mut self.heard);
        for seen in seen.filter(|seen| seen.session != *own) {
            let Some(Counts { partitions, shards }) = Counts::read(&seen.note) else { continue };
            let known = before.remove(&seen.session);
            let first = known.as_ref().map_or(seen.revision, |known| known.first);
            let renewed = seen.lapses.is_none() || seen.revision != first || known.is_some_and(|known| known.renewed);
            let peer = Peer { name: seen.holder.clone(), partitions, shards };
            self.heard.insert(seen.session.clone(), Heard { peer, first, renewed, lapses: seen.lapses });
        }
        let differing: BTreeMap<Session, Peer> = self.differing(now).collect();
        self.told.retain(|session| differing.contains_key(session));
        differing.into_iter().filter_map(|(session, peer)| self.told.insert(session).then_some(peer)).collect()
    }

    /// Members that live and run with other counts.
    pub(crate) fn differing(&self, now: Mono) -> impl Iterator<Item = (Session, Peer)> + '_ {
        let others = self.heard.iter().filter(|(_, heard)| heard.counts() != self.own);
        let live = others.filter(move |(_, heard)| heard.renewed && heard.is_live(now));
        live.map(|(session, heard)| (session.clone(), heard.peer.clone()))
    }

    /// Whether a member with other counts may live or not: it was not seen to renew yet, and has not lapsed.
    pub(crate) fn in_doubt(&self, now: Mono) -> bool {
        self.heard.values().any(|heard| heard.counts() != self.own && !heard.renewed && heard.is_live(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use wh_types::{Clock, SystemClock};

    const OWN: Counts = Counts { partitions: 4, shards: 8 };

    fn seen(name: &str, note: &str, revision: u64, lapses: Mono) -> Seen {
        Seen {
            holder: name.to_owned(),
            session: Session::from(name),
            duration: Duration::from_secs(15),
            note: note.to_owned(),
            over: None,
            revision,
            lapses: Some(lapses),
        }
    }

    #[test]
    fn counts_stand_behind_a_note_and_an_old_note_has_none() {
        assert_eq!(OWN.said_with("own 0:0-7 parting"), "own 0:0-7 parting counts 4x8");
        assert_eq!(OWN.said_with(""), "counts 4x8");
        for note in ["own 0:0-7 parting counts 4x8", "counts 4x8", "counts 4x8 more 1x1"] {
            assert_eq!(Counts::read(note), Some(OWN), "{note}");
        }
        for note in ["", "own 0:0-7", "counts", "counts 4", "counts x8", "counts 4x8x1", "counts -4x8", "counts4x8"] {
            assert_eq!(Counts::read(note), None, "{note}");
        }
    }

    #[test]
    fn one_that_differs_counts_once_it_was_seen_alive_and_until_it_lapses() {
        let (now, own) = (SystemClock.now(), Session::from("me"));
        let (soon, later) = (now + Duration::from_secs(1), now + Duration::from_secs(2));
        let mut peers = Peers::new(OWN);
        let same = seen("same", "counts 4x8", 1, soon);
        let old = seen("old", "own 0:1", 1, soon);
        let mine = seen("me", "counts 2x8", 1, soon);
        let other = |revision, lapses| seen("other", "own 0:1 counts 2x8", revision, lapses);
        let all = |other: Seen| [same.clone(), old.clone(), mine.clone(), other];
        let peer = Peer { name: "other".to_owned(), partitions: 2, shards: 8 };

        assert!(peers.read(all(other(5, soon)).iter(), &own, now).is_empty(), "it may be dead");
        assert!(peers.in_doubt(now) && !peers.in_doubt(soon), "and is, once it lapsed");
        let given = |peers: Vec<Peer>| peers.into_iter().map(|peer| peer.name).collect::<String>();
        assert_eq!(peers.read(all(other(6, later)).iter(), &own, now), [peer]);
        assert!(!peers.in_doubt(now));
        assert!(peers.read(all(other(6, later)).iter(), &own, now).is_empty(), "it was told of");
        assert_eq!(given(peers.differing(soon).map(|(_, peer)| peer).collect()), "other");
        assert_eq!(peers.differing(later).count(), 0, "it lapsed");
        assert!(peers.read([same].iter(), &own, now).is_empty());
        assert_eq!(peers.differing(now).count(), 0, "it left");
        assert!(peers.read([other(7, later)].iter(), &own, now).is_empty(), "and is in doubt when it is seen anew");
        assert_eq!(given(peers.read([other(8, later)].iter(), &own, now)), "other");
    }
}
