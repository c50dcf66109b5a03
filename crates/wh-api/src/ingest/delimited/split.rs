//! The cells of one record, by reference to the body where they stand in it as they are.

use memchr::memchr3;
use std::ops::Range;

/// How far one looks for a cell's end eight bytes at a time.
const NEAR: usize = 32;

/// The first byte at or after `at` that is one of `ends`; the length of `text` where none is.
///
/// Most cells are shorter than what a search for long texts needs to be set up. `flags` has the high bit of each byte set
/// that is one of them (a byte above a set one may be wrong, the lowest never is).
#[inline]
pub(super) fn until(text: &[u8], mut at: usize, ends: [u8; 3]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let far = at + NEAR;
    while at < far
        && let Some(chunk) = text.get(at..).and_then(|rest| rest.first_chunk::<8>())
    {
        let word = u64::from_le_bytes(*chunk);
        let is = |end: u8| {
            let zero = word ^ (ONES * u64::from(end));
            zero.wrapping_sub(ONES) & !zero
        };
        let flags = (is(ends[0]) | is(ends[1]) | is(ends[2])) & HIGHS;
        if flags != 0 {
            return at + (flags.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    memchr3(ends[0], ends[1], ends[2], rest).map_or(text.len(), |found| at + found)
}

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

    /// The kept cells: how each was written, its text, and whether that is the body's own.
    pub(super) fn iter<'a>(&'a self, body: &'a [u8]) -> impl Iterator<Item = (Form, &'a [u8], bool)> {
        let text = move |cell: &'a Cell| &(if cell.own { &self.own } else { body })[cell.span.clone()];
        self.cells.iter().map(move |cell| (cell.form, text(cell), !cell.own))
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cells_end_is_the_first_of_its_three(
            text in proptest::collection::vec(prop_oneof![12 => any::<u8>(), 1 => Just(b','), 1 => Just(b'\n')], 0..120),
            at in 0_usize..40
        ) {
            let ends = [b',', b'\n', b'\r'];
            let at = at.min(text.len());
            let first = text[at..].iter().position(|byte| ends.contains(byte)).map_or(text.len(), |found| at + found);
            prop_assert_eq!(until(&text, at, ends), first);
        }
    }
}
