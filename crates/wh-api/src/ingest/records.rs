//! From a body to its records: the shape of the body, one verdict for each record, rows by reference.
//!
//! A single object and an array are judged as a whole before anything is published; in NDJSON a bad line is one
//! refused record.

use super::{
    coalesce::Fresh,
    delimited::{Dialect, Header, Syntax},
    judge::{Judge, Judged, Refusal},
};
use crate::{
    codes,
    json::{Scanner, push_compact},
};
use std::{collections::BTreeMap, ops::Range};

/// Most records judged in one step.
pub(crate) const WINDOW: usize = 256;
/// Most refusals whose reason is kept; all are counted.
pub(crate) const MAX_RESULTS: usize = 10_000;

/// What the `Content-Type` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One object, or an array of objects.
    Document,
    /// One object a line.
    Lines,
    /// Cells.
    Delimited(Dialect),
}

impl Form {
    /// Its name where bodies are compared: what is kept of them outlives this process.
    pub(crate) fn tag(self) -> &'static [u8] {
        match self {
            Self::Document => b"json\n",
            Self::Lines => b"ndjson\n",
            Self::Delimited(Dialect { syntax, header }) => match (syntax, header) {
                (Syntax::Csv, Header::Present) => b"csv present\n",
                (Syntax::Csv, Header::Absent) => b"csv absent\n",
                (Syntax::Csv, Header::Unsaid) => b"csv\n",
                (Syntax::Tsv, Header::Present) => b"tsv present\n",
                (Syntax::Tsv, Header::Absent) => b"tsv absent\n",
                (Syntax::Tsv, Header::Unsaid) => b"tsv\n",
            },
        }
    }
}

/// A record that is not stored.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) index: u32,
    /// Where it begins in the decoded body.
    pub(crate) offset: usize,
    pub(crate) refusal: Refusal,
}

/// Most records of one request: what is kept of each is larger than the smallest record.
const MAX_RECORDS: u32 = 1_000_000;

/// An accepted record: where its text is, and the record's number. Small, because there are many.
#[derive(Clone, Copy, Debug)]
struct RowRef {
    start: u32,
    end: u32,
    index: u32,
    /// Of JSON: in `side` rather than in the body. Of cells, which are always in the body: edited once they are JSON.
    side: bool,
}

impl RowRef {
    fn new(span: Range<usize>, index: u32, side: bool) -> Option<Self> {
        Some(Self { start: span.start.try_into().ok()?, end: span.end.try_into().ok()?, index, side })
    }

    fn of(self, text: &[u8]) -> &[u8] {
        &text[self.start as usize..self.end as usize]
    }
}

/// The verdicts on a body so far.
#[derive(Debug, Default)]
pub(crate) struct Records {
    rows: Vec<RowRef>,
    /// Texts that are not the body's own: white space removed, values edited.
    side: Vec<u8>,
    /// Where each accepted record's id stands in the body, where records are told apart by one.
    ids: Vec<(u32, u32)>,
    /// The first [`MAX_RESULTS`], by record.
    pub(crate) refusals: Vec<Refused>,
    /// Records in all.
    pub(crate) total: u32,
    /// How many were refused, by code.
    by_code: BTreeMap<&'static str, u64>,
}

impl Records {
    pub(crate) fn accepted(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn rejected(&self) -> u32 {
        self.total - u32::try_from(self.rows.len()).unwrap_or(u32::MAX)
    }

    /// The accepted rows' texts, in order.
    pub(crate) fn rows<'a>(&'a self, body: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.rows.iter().map(move |row| row.of(if row.side { &self.side } else { body }))
    }

    /// The accepted rows as they are handed over, in order.
    pub(crate) fn fresh<'a>(&'a self, body: &'a [u8]) -> impl Iterator<Item = Fresh<'a>> {
        let id = |place: &(u32, u32)| Some(&body[place.0 as usize..place.1 as usize]).filter(|id| !id.is_empty());
        let ids = self.ids.iter().map(id).chain(std::iter::repeat(None));
        let rows = self.rows(body).zip(self.indexes());
        rows.zip(ids).map(|((text, index), id)| Fresh { text, id, index })
    }

    /// The record numbers of the accepted rows, in order.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().map(|row| row.index)
    }

    /// How many were refused, by code.
    pub(crate) fn refused_by_code(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.by_code.iter().map(|(code, count)| (*code, *count))
    }

    /// The accepted records' places in the body, in order, and whether their JSON is edited. Of a body of cells.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Range<usize>, bool)> {
        self.rows.iter().map(|row| (row.start as usize..row.end as usize, row.side))
    }

    /// Whether there are no more records than there may be.
    ///
    /// # Errors
    /// The whole body is refused.
    pub(super) fn bounded(&self) -> Result<(), Refusal> {
        if self.total > MAX_RECORDS {
            let reason = format!("a request has at most {MAX_RECORDS} records");
            return Err(Refusal::new(&codes::TOO_MANY_RECORDS, reason));
        }
        Ok(())
    }

    pub(super) fn refuse(&mut self, offset: usize, refusal: Refusal) {
        *self.by_code.entry(refusal.code.name).or_default() += 1;
        if self.refusals.len() < MAX_RESULTS {
            self.refusals.push(Refused { index: self.total, offset, refusal });
        }
        self.total += 1;
    }

    /// Takes a record by its place, if its row of `size` bytes is not too large.
    pub(super) fn accept_place(&mut self, place: Range<usize>, edited: bool, size: usize, most: usize) -> bool {
        let offset = place.start;
        match RowRef::new(place, self.total, edited) {
            Some(row) if size <= most => {
                self.rows.push(row);
                self.total += 1;
                true
            }
            _ => {
                self.refuse(offset, too_large(size, most));
                false
            }
        }
    }

    fn accept(&mut self, body: &[u8], span: Range<usize>, compact: bool, judge: &Judge<'_>, most: usize) {
        let (own, edits) = (self.side.len(), &judge.edits);
        let side = compact || !edits.is_empty();
        let offset = span.start;
        let mut place = span.clone();
        if side {
            push_compact(&mut self.side, body, span, edits);
            place = own..self.side.len();
        }
        let size = place.len();
        match RowRef::new(place, self.total, side) {
            Some(row) if size <= most => {
                self.rows.push(row);
                self.total += 1;
                if judge.identifies() {
                    let id = judge.id();
                    let place = |at| u32::try_from(at).unwrap_or_default();
                    self.ids.push((place(id.start), place(id.end)));
                }
            }
            _ => {
                self.side.truncate(own);
                self.refuse(offset, too_large(size, most));
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Object,
    Array { first: bool },
    Lines { checked: bool },
    Done,
}

/// A walk over a body, a window at a time.
#[derive(Debug)]
pub(crate) struct Walk<'b> {
    body: &'b [u8],
    at: usize,
    shape: Shape,
    max_row: usize,
}

impl<'b> Walk<'b> {
    /// Looks at the shape of a body.
    ///
    /// # Errors
    /// The whole body is refused.
    pub(crate) fn begin(form: Form, body: &'b [u8], max_row: usize) -> Result<Self, Refusal> {
        let at = if body.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let utf8 = std::str::from_utf8(body).map(drop);
        if body[at..].iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
            return Err(Refusal::new(&codes::BODY_EMPTY, "the body is empty"));
        }
        let shape = match (form, utf8) {
            (Form::Lines | Form::Delimited(_), utf8) => Shape::Lines { checked: utf8.is_ok() },
            (Form::Document, Err(error)) => return Err(not_utf8(error.valid_up_to())),
            (Form::Document, Ok(())) => match Scanner::new(body, at).peek() {
                Some(b'[') => Shape::Array { first: true },
                Some(b'{') => Shape::Object,
                _ => {
                    Scanner::new(body, at).value(0)?;
                    let reason = "the body must be a JSON object or an array of objects";
                    return Err(Refusal::new(&codes::JSON_NOT_OBJECT, reason));
                }
            },
        };
        Ok(Self { body, at, shape, max_row })
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
        match self.shape {
            Shape::Done => Ok(false),
            Shape::Object => self.object(judge, records),
            Shape::Array { first } => self.array(first, judge, records),
            Shape::Lines { checked } => {
                for _ in 0..WINDOW {
                    if !self.line(checked, judge, records) {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    fn object(&mut self, judge: &mut Judge<'_>, records: &mut Records) -> Result<bool, Refusal> {
        let mut json = Scanner::new(self.body, self.at);
        json.peek();
        self.shape = Shape::Done;
        let judged = judge.record(&mut json)?;
        self.keep(judged, judge, records);
        self.end(json, "the object")
    }

    fn array(&mut self, mut first: bool, judge: &mut Judge<'_>, records: &mut Records) -> Result<bool, Refusal> {
        let mut json = Scanner::new(self.body, self.at);
        if first {
            json.take(b'[');
        }
        for _ in 0..WINDOW {
            if !json.element(first)? {
                self.shape = Shape::Done;
                return self.end(json, "the array");
            }
            first = false;
            if json.peek() == Some(b'{') {
                let judged = judge.record(&mut json)?;
                self.keep(judged, judge, records);
            } else {
                let value = json.value(1)?;
                records.refuse(value.span.start, not_object());
            }
        }
        self.at = json.at();
        self.shape = Shape::Array { first };
        Ok(true)
    }

    /// Reads one line; says whether there was one.
    fn line(&mut self, checked: bool, judge: &mut Judge<'_>, records: &mut Records) -> bool {
        if self.at >= self.body.len() {
            return false;
        }
        let end = memchr::memchr(b'\n', &self.body[self.at..]).map_or(self.body.len(), |found| self.at + found);
        let start = std::mem::replace(&mut self.at, end + 1);
        let utf8 = if checked { Ok("") } else { std::str::from_utf8(&self.body[start..end]) };
        let mut json = Scanner::new(&self.body[..end], start);
        let judged = match (utf8, json.peek()) {
            (Err(error), _) => Err(not_utf8(start + error.valid_up_to())),
            (Ok(_), None) => return true,
            (Ok(_), Some(b'{')) => judge.record(&mut json).map_err(Into::into),
            (Ok(_), Some(_)) => json.value(1).map_err(Into::into).and_then(|_| Err(not_object())),
        };
        match judged {
            // a line is one record or none: what its first object got does not count
            Ok(_) if json.peek().is_some() => records.refuse(start, trailing("the record", json.at())),
            Ok(judged) => self.keep(judged, judge, records),
            Err(refusal) => records.refuse(start, refusal),
        }
        true
    }

    fn keep(&self, judged: Judged, judge: &Judge<'_>, records: &mut Records) {
        match judged.refusal {
            Some(refusal) => records.refuse(judged.span.start, refusal),
            None => records.accept(self.body, judged.span, judged.spaced, judge, self.max_row),
        }
    }

    fn end(&self, mut json: Scanner<'_>, what: &str) -> Result<bool, Refusal> {
        if json.peek().is_some() { Err(trailing(what, json.at())) } else { Ok(false) }
    }
}

fn too_large(size: usize, most: usize) -> Refusal {
    Refusal::new(&codes::ROW_TOO_LARGE, format!("the record has {size} bytes, more than {most}"))
}

fn not_object() -> Refusal {
    Refusal::new(&codes::JSON_NOT_OBJECT, "a record must be a JSON object")
}

fn trailing(what: &str, at: usize) -> Refusal {
    Refusal::new(&codes::JSON_TRAILING, format!("something follows {what} at byte {at}"))
}

fn not_utf8(at: usize) -> Refusal {
    Refusal::new(&codes::JSON_UTF8, format!("the body is not UTF-8 at byte {at}"))
}
