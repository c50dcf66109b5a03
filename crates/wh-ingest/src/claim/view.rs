//! What a step looks at: the members as they were last read, and the own term.

use super::note::Note;
use std::collections::BTreeMap;
use wh_coord::{Key, Seen, Session};
use wh_types::Mono;

/// Most membership slots, whatever the number of units.
pub(crate) const MOST_SLOTS: u32 = 64;

/// What the leases of members stand below: `ingest.m0` and on.
pub const MEMBERS: &str = "ingest";

/// One member's lease as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) session: Session,
    pub(crate) note: Note,
    /// When it lapses unless it is renewed. `None`: not by time.
    pub(crate) lapses: Option<Mono>,
    /// Whose lapsed lease it took over.
    pub(crate) over: Option<Session>,
}

impl Member {
    pub(super) fn is_live(&self, now: Mono) -> bool {
        self.lapses.is_none_or(|lapses| now < lapses)
    }
}

impl From<Seen> for Member {
    fn from(seen: Seen) -> Self {
        Self { note: Note::read(&seen.note), session: seen.session, lapses: seen.lapses, over: seen.over }
    }
}

/// The members by slot.
pub(crate) type Members = BTreeMap<u32, Member>;

/// Reads the slots out of what was observed.
pub(super) fn members(seen: BTreeMap<Key, Seen>, prefix: &Key) -> Members {
    let slot = |key: &Key| slot_of(key.below(prefix)?);
    seen.into_iter().filter_map(|(key, seen)| Some((slot(&key)?, Member::from(seen)))).collect()
}

/// `m3` is slot 3; `m03` and `m99` are no slots.
fn slot_of(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('m')?;
    let slot = digits.parse().ok().filter(|slot| *slot < MOST_SLOTS)?;
    (digits == u32::to_string(&slot)).then_some(slot)
}

/// The key of a slot.
pub(super) fn key(slot: u32) -> wh_coord::Result<Key> {
    Key::new(&format!("{MEMBERS}.m{slot}"))
}

/// What a step looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The members, unless the last read is too old to act on.
    pub(crate) members: Option<&'a Members>,
    /// The slot of our own term, while it is live.
    pub(crate) slot: Option<u32>,
    /// Whether we are stopping.
    pub(crate) stopping: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_read_from_keys() {
        let of = |text| slot_of(text);
        assert_eq!((of("m0"), of("m63"), of("m7")), (Some(0), Some(63), Some(7)));
        for bad in ["m", "m64", "m07", "m+1", "x1", "m1x", "m99999999999"] {
            assert_eq!(of(bad), None, "{bad}");
        }
        assert_eq!(key(7).unwrap().as_str(), "ingest.m7");
    }
}
