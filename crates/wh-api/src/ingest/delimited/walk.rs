//! The walk over a body of cells, a window at a time: judging first, and then making the rows.

use super::{Dialect, Header, Syntax, cell, csv, layout::Layout, split::Cells, tsv};
#[cfg(test)]
use crate::json::Scanner;
use crate::{
    codes,
    error::shown,
    ingest::{
        coalesce::Fresh,
        judge::{Judge, Refusal},
        plan::Plan,
        records::{Records, WINDOW},
    },
    json::{Value, push_compact},
};
use std::ops::Range;

/// Most bytes of one piece of rows; one row may exceed it alone.
const PIECE_BYTES: usize = 2 << 20;

/// A body of cells.
#[derive(Debug)]
pub(crate) struct Sheet<'b> {
    body: &'b [u8],
    /// Whether all of it is UTF-8, and so each cell that stands in it as it is.
    utf8: bool,
    at: usize,
    syntax: Syntax,
    layout: Layout,
    cells: Cells,
    max_row: usize,
    /// The record last read, as JSON.
    row: Vec<u8>,
    /// Its id as it was given.
    id: Vec<u8>,
    /// Bytes of all accepted rows.
    made: usize,
    /// The first piece, kept from judging; most bodies have no other.
    first: Piece,
}

/// Rows that are made, one after another in one text.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// The rows' ids, one after another, where they are told apart by one.
    ids: Vec<u8>,
    id_ends: Vec<usize>,
}

impl Piece {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn push(&mut self, row: &[u8], id: Option<&[u8]>) {
        self.text.extend_from_slice(row);
        self.ends.push(self.text.len());
        if let Some(id) = id {
            self.ids.extend_from_slice(id);
            self.id_ends.push(self.ids.len());
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.ids.clear();
        self.id_ends.clear();
    }

    fn is_full(&self) -> bool {
        self.text.len() >= PIECE_BYTES
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| &self.text[std::mem::replace(&mut start, *end)..*end])
    }

    /// The rows as they are handed over; `indexes`: of their records.
    pub(crate) fn fresh(&self, indexes: impl Iterator<Item = u32>) -> impl Iterator<Item = Fresh<'_>> {
        let mut start = 0;
        let ids = self.id_ends.iter().map(move |end| &self.ids[std::mem::replace(&mut start, *end)..*end]);
        let ids = ids.map(|id| Some(id).filter(|id| !id.is_empty())).chain(std::iter::repeat(None));
        self.rows().zip(indexes).zip(ids).map(|((text, index), id)| Fresh { text, id, index })
    }
}

impl<'b> Sheet<'b> {
    /// Looks at the first line, unless that is a record.
    ///
    /// # Errors
    /// The whole body is refused.
    pub(crate) fn begin(dialect: Dialect, body: &'b [u8], plan: &Plan, max_row: usize) -> Result<Self, Refusal> {
        let Dialect { syntax, header } = dialect;
        let at = if body.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let (layout, cells) = (Layout::positional(plan), Cells::new(plan.columns.len()));
        let mut sheet = Self {
            body,
            utf8: std::str::from_utf8(body).is_ok(),
            at,
            syntax,
            layout,
            cells,
            max_row,
            row: Vec::new(),
            id: Vec::new(),
            made: 0,
            first: Piece::default(),
        };
        let single = syntax == Syntax::Tsv && header != Header::Present && sheet.layout.len() == 1;
        if sheet.at == body.len() || (!single && sheet.skip_blank_lines()) {
            return Err(Refusal::new(&codes::BODY_EMPTY, "the body is empty"));
        }
        if header != Header::Absent {
            let first = sheet.read()?;
            match Layout::of_header(header, plan, &sheet.cells, body)? {
                Some(layout) => sheet.layout = layout,
                None => sheet.at = first.start,
            }
        }
        sheet.cells = Cells::new(sheet.layout.len());
        Ok(sheet)
    }

    /// Judges up to [`WINDOW`] records; says whether more may follow.
    ///
    /// # Errors
    /// The whole body is refused: nothing of it may be published.
    pub(crate) fn step(&mut self, judge: &mut Judge<'_>, records: &mut Records) -> Result<bool, Refusal> {
        let more = self.window(judge, records)?;
        records.bounded()?;
        Ok(more)
    }

    fn window(&mut self, judge: &mut Judge<'_>, records: &mut Records) -> Result<bool, Refusal> {
        for _ in 0..WINDOW {
            if self.at_end() {
                return Ok(false);
            }
            let span = self.read()?;
            match self.make(judge) {
                Ok(edited) => {
                    let size = self.row.len();
                    if records.accept_place(span, edited, size, self.max_row) {
                        self.made += size;
                        if !self.first.is_full() {
                            self.first.push(&self.row, judge.identifies().then_some(&*self.id));
                        }
                    }
                }
                Err(refusal) => records.refuse(span.start, refusal),
            }
        }
        Ok(true)
    }

    /// Bytes of memory that the rows take at once, as far as they are judged: a piece, and its copy in a block.
    pub(crate) fn held(&self) -> usize {
        2 * self.made.min(PIECE_BYTES + self.max_row)
    }

    /// Makes the next piece of the rows whose places these are.
    pub(crate) fn piece(
        &mut self,
        places: &mut impl Iterator<Item = (Range<usize>, bool)>,
        judge: &mut Judge<'_>,
        piece: &mut Piece,
    ) {
        piece.clear();
        std::mem::swap(piece, &mut self.first);
        if piece.len() > 0 {
            places.nth(piece.len() - 1);
            return;
        }
        while !piece.is_full() {
            let Some((span, edited)) = places.next() else { return };
            self.at = span.start;
            // it was read and judged before, and cannot fail now
            let again = edited || judge.identifies();
            let made = self.read().and_then(|_| if again { self.make(judge).map(drop) } else { self.render(None) });
            debug_assert!(made.is_ok(), "{made:?}");
            piece.push(&self.row, judge.identifies().then_some(&*self.id));
        }
    }

    /// Whether there are no more records; skips blank lines, but where a line of one empty cell is a record.
    fn at_end(&mut self) -> bool {
        if self.syntax == Syntax::Tsv && self.layout.len() == 1 {
            return self.at >= self.body.len();
        }
        self.skip_blank_lines()
    }

    fn skip_blank_lines(&mut self) -> bool {
        loop {
            match &self.body[self.at..] {
                [] => return true,
                [b'\n', ..] => self.at += 1,
                [b'\r', b'\n', ..] => self.at += 2,
                _ => return false,
            }
        }
    }

    /// Splits the next record; gives where it stands.
    fn read(&mut self) -> Result<Range<usize>, Refusal> {
        let start = self.at;
        self.at = match self.syntax {
            Syntax::Tsv => tsv::record(self.body, start, &mut self.cells),
            Syntax::Csv => csv::record(self.body, start, &mut self.cells).map_err(|broken| {
                let text = format!("{} at byte {}; the record begins at byte {start}", broken.why, broken.at);
                Refusal::new(&codes::CSV_MALFORMED, text)
            })?,
        };
        Ok(start..self.at)
    }

    /// Makes the row of the record last read and judges it; says whether it had to be edited.
    ///
    /// Values are judged as they are written: what a cell became need not be found in the row again.
    fn make(&mut self, judge: &mut Judge<'_>) -> Result<bool, Refusal> {
        judge.begin();
        self.render(Some(&mut *judge))?;
        if let Some(refusal) = judge.end(&self.row) {
            return Err(refusal);
        }
        if judge.identifies() {
            self.id.clear();
            self.id.extend_from_slice(&self.row[judge.id()]);
        }
        if judge.edits.is_empty() {
            return Ok(false);
        }
        let mut edited = Vec::with_capacity(self.row.len() + 16 * judge.edits.len());
        push_compact(&mut edited, &self.row, 0..self.row.len(), &judge.edits);
        self.row = edited;
        Ok(true)
    }

    /// Writes the record last read as a JSON object, and has its values judged.
    fn render(&mut self, mut judge: Option<&mut Judge<'_>>) -> Result<(), Refusal> {
        if self.cells.count() != self.layout.len() {
            let reason = format!("the line has {} cells, not {}", self.cells.count(), self.layout.len());
            return Err(Refusal::new(&codes::CSV_CELLS, reason));
        }
        let row = &mut self.row;
        row.clear();
        row.push(b'{');
        for (slot, (form, text, own)) in self.layout.slots().zip(self.cells.iter(self.body)) {
            if row.len() + text.len() > self.max_row {
                let reason = format!("the record has more than {} bytes as JSON", self.max_row);
                return Err(Refusal::new(&codes::ROW_TOO_LARGE, reason));
            }
            let start = row.len();
            row.extend_from_slice(&slot.key);
            match cell::push(row, slot.takes, (self.syntax, form, own && self.utf8), text) {
                Ok(Some(kind)) => {
                    if let Some(judge) = judge.as_deref_mut() {
                        let span = start + slot.key.len()..row.len();
                        judge.value(row, slot.column, Value { kind, span })?;
                    }
                    row.push(b',');
                }
                Ok(None) => row.truncate(start),
                Err(unfit) => {
                    let reason = format!("column {} ({}) {}", shown(slot.name.as_bytes()), slot.type_text, unfit.why);
                    let mut refusal = Refusal::new(unfit.code, reason);
                    refusal.column = Some(slot.name.clone());
                    return Err(refusal);
                }
            }
        }
        if row.len() > 1 {
            row.pop();
        }
        row.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
impl Sheet<'_> {
    /// Of the next record: its row before it is edited, what is said of it, and what is said of that row as JSON. Nothing
    /// where there is none, or no row.
    pub(super) fn both_ways(&mut self, one: &mut Judge<'_>, other: &mut Judge<'_>) -> Option<(String, [String; 2])> {
        if self.at_end() {
            return None;
        }
        self.read().ok()?;
        let judge = |judge: &Judge<'_>, refusal: Option<Refusal>| {
            format!("{refusal:?} {:?} {:?} {:?}", judge.edits, judge.undecided, judge.id())
        };
        self.render(None).ok()?;
        let row = String::from_utf8_lossy(&self.row).into_owned();
        one.begin();
        let said = self.render(Some(&mut *one)).err().or_else(|| one.end(&self.row));
        let json = other.record(&mut Scanner::new(row.as_bytes(), 0)).ok()?;
        Some((row.clone(), [judge(one, said), judge(other, json.refusal)]))
    }
}
