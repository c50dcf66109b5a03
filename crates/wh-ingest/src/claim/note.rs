//! What a member says with its lease, as text that an operator can read: `own 0:0-7;1:3 leaving 0:9`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};
use wh_mq::Unit;

/// More units than there can be are not read from a foreign note.
const MOST: usize = 65_536;

/// What a member says of units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// It works on them.
    pub(crate) own: BTreeSet<Unit>,
    /// Assigned to it, and not taken yet.
    pub(crate) wanted: BTreeSet<Unit>,
    /// It still has them and is giving them up: nobody takes them before they are gone from here.
    pub(crate) leaving: BTreeSet<Unit>,
    /// Their owner died and nobody has made their blocks due yet.
    pub(crate) orphans: BTreeSet<Unit>,
    /// It is stopping: it counts as no member any more.
    pub(crate) parting: bool,
}

impl Note {
    /// All units that it names as its business.
    pub(crate) fn units(&self) -> impl Iterator<Item = Unit> + '_ {
        self.own.iter().chain(&self.wanted).chain(&self.leaving).chain(&self.orphans).copied()
    }

    /// What counts for its share.
    pub(crate) fn assigned(&self) -> impl Iterator<Item = Unit> + '_ {
        self.own.iter().chain(&self.wanted).copied()
    }

    /// Whether it has a unit, or is about to.
    #[must_use]
    pub(crate) fn claims(&self, unit: Unit) -> bool {
        [&self.own, &self.wanted, &self.leaving].iter().any(|list| list.contains(&unit))
    }

    /// As it is stored.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        let lists =
            [("own", &self.own), ("wanted", &self.wanted), ("leaving", &self.leaving), ("orphans", &self.orphans)];
        let lists = lists.into_iter().filter(|(_, units)| !units.is_empty());
        let mut words: Vec<String> = lists.flat_map(|(name, units)| [name.to_owned(), ranges(units)]).collect();
        if self.parting {
            words.push("parting".to_owned());
        }
        words.join(" ")
    }

    /// Reads what is stored. What it does not understand it passes over: a newer version may say more.
    #[must_use]
    pub(crate) fn read(text: &str) -> Self {
        let (mut note, mut words) = (Self::default(), text.split(' '));
        while let Some(word) = words.next() {
            let list = match word {
                "own" => &mut note.own,
                "wanted" => &mut note.wanted,
                "leaving" => &mut note.leaving,
                "orphans" => &mut note.orphans,
                "parting" => {
                    note.parting = true;
                    continue;
                }
                _ => continue,
            };
            *list = words.next().map(units).unwrap_or_default();
        }
        note
    }
}

/// `0:0-7,9;1:3`
fn ranges(units: &BTreeSet<Unit>) -> String {
    let mut partitions = BTreeMap::<u32, Vec<(u32, u32)>>::new();
    for unit in units {
        let ranges = partitions.entry(unit.partition).or_default();
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == unit.shard => *last = unit.shard,
            _ => ranges.push((unit.shard, unit.shard)),
        }
    }
    let mut text = String::new();
    for (partition, ranges) in partitions {
        let colon = if text.is_empty() { "" } else { ";" };
        // writing to a String does not fail
        let _infallible = write!(text, "{colon}{partition}:");
        for (n, (first, last)) in ranges.into_iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let _infallible =
                if first == last { write!(text, "{comma}{first}") } else { write!(text, "{comma}{first}-{last}") };
        }
    }
    text
}

fn units(text: &str) -> BTreeSet<Unit> {
    let mut units = BTreeSet::new();
    for part in text.split(';') {
        let Some((partition, ranges)) = part.split_once(':') else { continue };
        let Ok(partition) = partition.parse() else { continue };
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { continue };
            for shard in first..=last {
                if units.len() >= MOST {
                    return units;
                }
                units.insert(Unit { partition, shard });
            }
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(partition: u32, shard: u32) -> Unit {
        Unit { partition, shard }
    }

    #[test]
    fn a_note_is_short_and_readable() {
        let own = (0..8).map(|shard| unit(0, shard)).chain([unit(0, 9), unit(3, 1)]).collect();
        let note = Note { own, leaving: [unit(1, 4)].into(), parting: true, ..Note::default() };
        assert_eq!(note.text(), "own 0:0-7,9;3:1 leaving 1:4 parting");
        assert_eq!(Note::read(&note.text()), note);
        assert_eq!((Note::default().text().as_str(), Note::read("")), ("", Note::default()));
    }

    #[test]
    fn what_cannot_be_read_is_passed_over_and_has_a_bound() {
        let one = BTreeSet::from([unit(1, 2)]);
        for text in ["own 1:2", "v2 own 1:2 more", "own x;1:2,y,3-z;:4;5", "  own 1:2  "] {
            assert_eq!(Note::read(text).own, one, "{text}");
        }
        assert_eq!(Note::read("own 0:0-4294967295").own.len(), MOST);
        assert!(Note::read("own 0:9-1").own.is_empty());
        let most: BTreeSet<_> = (0..1_024).flat_map(|p| (0..256).step_by(4).map(move |s| unit(p, s))).collect();
        assert!(Note { own: most, ..Note::default() }.text().len() < wh_coord::MAX_NOTE);
    }

    proptest! {
        #[test]
        fn a_note_comes_back_as_it_was(
            lists in proptest::array::uniform4(proptest::collection::btree_set((0_u32..20, 0_u32..256), 0..60)),
            parting: bool,
        ) {
            let [own, wanted, leaving, orphans] =
                lists.map(|list| list.into_iter().map(|(p, s)| unit(p, s)).collect::<BTreeSet<_>>());
            let note = Note { own, wanted, leaving, orphans, parting };
            prop_assert_eq!(Note::read(&note.text()), note);
        }

        #[test]
        fn any_text_can_be_read(text in ".{0,80}") {
            prop_assert!(Note::read(&text).own.len() <= MOST);
        }
    }
}
