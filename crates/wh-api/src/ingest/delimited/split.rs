//! The cells of one record, by reference to the body where they stand in it as they are.

use std::ops::Range;

/// The cells of the record last read. Made once for a body.
#[derive(Debug)]
pub(super) struct Cells {
    /// Texts that are not the body's own: escapes resolved.
    own: Vec<u8>,
    cells: Vec<Cell>,
    /// How many there were; of those beyond `most` nothing is kept.
    count: usize,
    most: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cell {
    span: Range<usize>,
    own: bool,
    form: Form,
}

/// How a cell was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `\N` without quotes.
    Null,
    /// Nothing, without quotes.
    Empty,
    Bare,
    Quoted,
}

impl Cells {
    pub(super) fn new(most: usize) -> Self {
        Self { own: Vec::new(), cells: Vec::new(), count: 0, most }
    }

    pub(super) fn clear(&mut self) {
        self.own.clear();
        self.cells.clear();
        self.count = 0;
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The kept cells: how each was written, and its text.
    pub(super) fn iter<'a>(&'a self, body: &'a [u8]) -> impl Iterator<Item = (Form, &'a [u8])> {
        self.cells.iter().map(move |cell| (cell.form, &(if cell.own { &self.own } else { body })[cell.span.clone()]))
    }

    /// A cell that stands in the body as it is.
    #[inline]
    pub(super) fn push(&mut self, span: Range<usize>, form: Form) {
        self.count += 1;
        if self.count <= self.most {
            self.cells.push(Cell { span, own: false, form });
        }
    }

    /// A cell whose text `write` makes.
    #[inline]
    pub(super) fn push_own(&mut self, form: Form, write: impl FnOnce(&mut Vec<u8>)) {
        self.count += 1;
        if self.count <= self.most {
            let start = self.own.len();
            write(&mut self.own);
            self.cells.push(Cell { span: start..self.own.len(), own: true, form });
        }
    }
}
