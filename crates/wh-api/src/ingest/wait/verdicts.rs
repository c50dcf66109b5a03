//! What is known of rows after a wait. Pure.

use std::collections::{BTreeMap, BTreeSet};
use wh_mq::Progress;
use wh_types::{Epoch, RowCursor};

/// What became of a durable row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    /// A query sees it.
    Committed,
    /// ClickHouse refused it, with this code.
    Parked(&'a str),
    /// Not known yet.
    Open,
}

/// The verdicts on the rows of a request. The default: nothing is known.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    epoch: Option<Epoch>,
    committed: u64,
    /// Of blocks beyond this one every parked row is in `parked`.
    named_after: u64,
    parked: BTreeMap<RowCursor, Box<str>>,
    /// Rows of the blocks before that were looked for.
    sought: BTreeSet<RowCursor>,
}

impl Verdicts {
    /// By a table's progress.
    pub(super) fn new(known: &Progress) -> Self {
        let place = |sequence, row| RowCursor { block: wh_types::Cursor { epoch: known.epoch, sequence }, row };
        let parked = known.parked.iter().map(|row| (place(row.sequence, row.row), row.code.clone()));
        Self {
            epoch: Some(known.epoch),
            committed: known.committed,
            named_after: known.named_after,
            parked: parked.collect(),
            sought: BTreeSet::new(),
        }
    }

    /// Rows were looked for in the dead letters, and these are there.
    pub(super) fn looked_for(&mut self, rows: &[RowCursor], parked: BTreeMap<RowCursor, Box<str>>) {
        self.sought.extend(rows);
        self.parked.extend(parked);
    }

    /// The verdict on a row.
    pub(crate) fn of(&self, row: RowCursor) -> Verdict<'_> {
        if let Some(code) = self.parked.get(&row) {
            return Verdict::Parked(code);
        }
        let done = self.epoch == Some(row.block.epoch) && row.block.sequence <= self.committed;
        let named = row.block.sequence > self.named_after || self.sought.contains(&row);
        if done && named { Verdict::Committed } else { Verdict::Open }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_mq::ParkedRow;
    use wh_types::{Cursor, Table, Tenant};

    fn row(epoch: u32, sequence: u64, row: u32) -> RowCursor {
        RowCursor { block: Cursor { epoch: Epoch(epoch), sequence }, row }
    }

    #[test]
    fn a_row_is_committed_only_where_its_parking_would_be_known() {
        let parked = vec![ParkedRow { sequence: 8, row: 1, code: "27".into() }];
        let mut verdicts = Verdicts::new(&Progress {
            tenant: Tenant::default(),
            table: Table::new("t").unwrap(),
            epoch: Epoch(1),
            committed: 9,
            inserting: 12,
            parked,
            named_after: 5,
            owner: 1,
            number: 1,
        });
        assert_eq!(verdicts.of(row(1, 8, 1)), Verdict::Parked("27"));
        assert_eq!(verdicts.of(row(1, 8, 0)), Verdict::Committed);
        assert_eq!(verdicts.of(row(1, 9, 7)), Verdict::Committed);
        assert_eq!(verdicts.of(row(1, 10, 0)), Verdict::Open, "not done with");
        assert_eq!(verdicts.of(row(2, 8, 0)), Verdict::Open, "another history");
        assert_eq!(verdicts.of(row(1, 5, 0)), Verdict::Open, "it may be parked");
        verdicts.looked_for(&[row(1, 5, 0), row(1, 5, 1)], BTreeMap::from([(row(1, 5, 1), "60".into())]));
        assert_eq!(verdicts.of(row(1, 5, 0)), Verdict::Committed);
        assert_eq!(verdicts.of(row(1, 5, 1)), Verdict::Parked("60"));
        assert_eq!(verdicts.of(row(1, 5, 2)), Verdict::Open);
        assert_eq!(Verdicts::default().of(row(1, 0, 0)), Verdict::Open);
    }
}
