//! One record against its table: one pass over its text, the first thing wrong with it as its refusal.
//!
//! What a value becomes in its column is said by `wh_clickhouse::types::judge`; here is what that means for the record
//! (decision D6).

use super::plan::{ColumnPlan, Plan};
use crate::{
    codes::{self, Code},
    error::shown,
    json::{Fault, Scanner, Text, Value, What, has_half_a_pair, unescape},
    tenant::Mode,
};
use std::{cmp::Ordering, ops::Range};
use wh_clickhouse::{
    ColumnKind,
    types::{self, Edited, JsonKind, Verdict},
};

/// Most bytes of a value that its refusal quotes.
const SHOWN: usize = 64;

/// Why a record is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: &'static Code,
    pub(crate) column: Option<Box<str>>,
    pub(crate) reason: Box<str>,
}

impl Refusal {
    pub(crate) fn new(code: &'static Code, reason: impl Into<Box<str>>) -> Self {
        Self { code, column: None, reason: reason.into() }
    }

    fn of_column(code: &'static Code, column: &ColumnPlan, reason: String) -> Self {
        Self { code, column: Some(column.name.clone()), reason: reason.into() }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let code = match fault.what {
            What::TooDeep => &codes::JSON_DEPTH,
            What::Truncated => &codes::JSON_TRUNCATED,
            What::Expected(_) | What::Control | What::Escape => &codes::JSON_MALFORMED,
        };
        Self::new(code, fault.to_string())
    }
}

/// A record that is well-formed JSON.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) span: Range<usize>,
    /// Whether there is white space between its tokens.
    pub(crate) spaced: bool,
    pub(crate) refusal: Option<Refusal>,
}

/// Judges the records of one request.
#[derive(Debug)]
pub(crate) struct Judge<'p> {
    plan: &'p Plan,
    /// By column: the number of the record that last gave it a value.
    seen: Vec<u32>,
    record: u32,
    /// Which column the nth key of the record before was: mostly it is again, and the name need only be compared.
    guesses: Vec<usize>,
    /// Values of the record last judged that are not sent as they came.
    pub(crate) edits: Vec<Edited>,
    /// By column: values that are left to ClickHouse.
    pub(crate) undecided: Vec<u32>,
    /// By column: how many elements its array in this record has. Kept only for parts of a `Nested`.
    lengths: Vec<usize>,
    /// The column of ids; none has that number where there is no such column.
    id_column: usize,
    /// The id of the record last judged, as it stands in the text.
    id: Option<(Range<usize>, JsonKind)>,
    /// Records that have no id although they are told apart by one.
    pub(crate) without_id: u64,
    /// Values of the record so far that a strict one must give.
    given: usize,
}

impl<'p> Judge<'p> {
    pub(crate) fn new(plan: &'p Plan) -> Self {
        let columns = plan.columns.len();
        Self {
            plan,
            seen: vec![0; columns],
            record: 0,
            guesses: Vec::with_capacity(columns),
            edits: Vec::new(),
            undecided: vec![0; columns],
            lengths: vec![0; if plan.nested.is_empty() { 0 } else { columns }],
            id_column: plan.id.as_ref().and_then(|id| id.column).unwrap_or(usize::MAX),
            id: None,
            without_id: 0,
            given: 0,
        }
    }

    /// Whether records are told apart by an id.
    pub(crate) fn identifies(&self) -> bool {
        self.plan.id.is_some()
    }

    /// Where the id of the accepted record last judged stands in its text; empty where it has none.
    pub(crate) fn id(&self) -> Range<usize> {
        self.id.as_ref().map(|(span, _)| span.clone()).unwrap_or_default()
    }

    /// Reads one object, whose brace is next.
    pub(crate) fn record(&mut self, json: &mut Scanner<'_>) -> Result<Judged, Fault> {
        self.begin();
        let start = json.at();
        let _outside = json.take_spaced();
        if !json.take(b'{') {
            return Err(json.expected("'{'"));
        }
        let (mut refusal, mut place) = (None, 0);
        while let Some(key) = json.key(place == 0)? {
            let value = json.value(1)?;
            if refusal.is_none() {
                refusal = self.member(json.text(), place, &key, value).err();
            }
            place += 1;
        }
        let refusal = refusal.or_else(|| self.end(json.text()));
        Ok(Judged { span: start..json.at(), spaced: json.take_spaced(), refusal })
    }

    /// Begins with a record whose values are given one by one.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.record += 1;
        self.given = 0;
        self.edits.clear();
        self.id = None;
    }

    /// Judges a record all of whose values were taken.
    #[inline]
    pub(crate) fn end(&mut self, text: &[u8]) -> Option<Refusal> {
        let mut refusal = if self.given < self.plan.required { self.missing() } else { None };
        if refusal.is_none() && !self.plan.nested.is_empty() {
            refusal = self.unequal();
        }
        if refusal.is_none() && self.plan.id.is_some() {
            refusal = self.identify(text);
        }
        refusal
    }

    #[inline]
    fn member(&mut self, text: &[u8], place: usize, key: &Text, value: Value) -> Result<(), Refusal> {
        let at = self.find(&text[key.span.clone()], key.escaped, place)?;
        self.value(text, at, value)
    }

    /// Judges the value of a column.
    #[inline]
    pub(crate) fn value(&mut self, text: &[u8], at: usize, value: Value) -> Result<(), Refusal> {
        let column = &self.plan.columns[at];
        if std::mem::replace(&mut self.seen[at], self.record) == self.record {
            let reason = format!("the key {} occurs twice in the record", shown(column.name.as_bytes()));
            return Err(Refusal::of_column(&codes::JSON_DUPLICATE_KEY, column, reason));
        }
        if let Some(kind) = column.computed {
            let reason = format!("column {} is {kind}: its value is computed", shown(column.name.as_bytes()));
            return Err(Refusal::of_column(&codes::COLUMN_NOT_WRITABLE, column, reason));
        }
        if value.kind == JsonKind::Null && column.required {
            let reason = format!(
                "column {} ({}) has neither NULL nor a default, and the record gives null",
                shown(column.name.as_bytes()),
                column.type_text
            );
            return Err(Refusal::of_column(&codes::COLUMN_REQUIRED, column, reason));
        }
        let Value { kind, span } = value;
        match types::judge(&column.ty, text, span.clone(), kind, &mut self.edits) {
            Verdict::Takes => {}
            Verdict::CannotTell => self.undecided[at] += 1,
            Verdict::Alters(_) if self.plan.mode == Mode::Lenient => {}
            Verdict::Alters(why) => return Err(bad_value(&codes::COLUMN_RANGE, column, &text[span], &why)),
            Verdict::Refuses(why) => return Err(bad_value(&codes::COLUMN_VALUE, column, &text[span], &why)),
            Verdict::WrongKind(wants) => return Err(wrong_kind(column, kind, wants)),
        }
        if !self.lengths.is_empty() {
            self.lengths[at] = if kind == JsonKind::Array { types::elements(text, &span) } else { 0 };
        }
        self.given += usize::from(column.required);
        if at == self.id_column {
            self.id = Some((span, kind));
        }
        Ok(())
    }

    #[inline]
    fn find(&mut self, key: &[u8], escaped: bool, place: usize) -> Result<usize, Refusal> {
        if let Some(guess) = self.guesses.get(place)
            && !escaped
            && self.plan.columns[*guess].name.as_bytes() == key
        {
            return Ok(*guess);
        }
        let name = unescape(key, escaped);
        let Some(at) = self.plan.column(&name) else {
            let mut refusal = Refusal::new(&codes::COLUMN_NOT_FOUND, format!("column {} does not exist", shown(&name)));
            refusal.column = std::str::from_utf8(&name).ok().filter(|name| name.len() <= 256).map(Into::into);
            return Err(refusal);
        };
        match place.cmp(&self.guesses.len()) {
            Ordering::Less => self.guesses[place] = at,
            Ordering::Equal => self.guesses.push(at),
            Ordering::Greater => {}
        }
        Ok(at)
    }

    /// Whether the record's id is one. Null and the empty text are none.
    fn identify(&mut self, text: &[u8]) -> Option<Refusal> {
        let invalid = |reason: &str| {
            let column = &self.plan.columns[self.id_column];
            Some(Refusal::of_column(&codes::DEDUPE_ID_INVALID, column, reason.into()))
        };
        let given = match &self.id {
            Some((_, JsonKind::Null)) | None => false,
            Some((_, JsonKind::Array | JsonKind::Object)) => {
                return invalid("an id must be text, a number or a boolean");
            }
            Some((span, JsonKind::String)) if has_half_a_pair(&text[span.clone()]) => {
                return invalid("an id must be text, and half of a surrogate pair is none");
            }
            Some((span, _)) => text[span.clone()] != *b"\"\"",
        };
        if given {
            return None;
        }
        self.id = None;
        self.without_id += 1;
        self.plan.id.as_ref().filter(|id| id.required).map(|id| {
            let reason = format!("column {} is the id of events, and the record gives none", shown(id.name.as_bytes()));
            let mut refusal = Refusal::new(&codes::DEDUPE_ID_MISSING, reason);
            refusal.column = Some(id.name.clone());
            refusal
        })
    }

    #[cold]
    fn missing(&self) -> Option<Refusal> {
        let missing = |(at, column): &(usize, &ColumnPlan)| column.required && self.seen[*at] != self.record;
        let (_, column) = self.plan.columns.iter().enumerate().find(missing)?;
        let reason = format!(
            "column {} ({}) has neither NULL nor a default, and the record leaves it out",
            shown(column.name.as_bytes()),
            column.type_text
        );
        Some(Refusal::of_column(&codes::COLUMN_REQUIRED, column, reason))
    }

    /// Arrays that must be as long as each other and are not. One that is left out is empty, unless its column has a
    /// default of its own.
    #[cold]
    fn unequal(&self) -> Option<Refusal> {
        let length = |at: usize| match self.seen[at] == self.record {
            true => Some(self.lengths[at]),
            false => (self.plan.schema.columns()[at].kind == ColumnKind::Ordinary).then_some(0),
        };
        self.plan.nested.iter().find_map(|group| {
            let mut known = group.iter().filter_map(|at| Some((*at, length(*at)?)));
            let (first, elements) = known.next()?;
            let (other, others) = known.find(|(_, others)| *others != elements)?;
            let (column, name) = (&self.plan.columns[other], &self.plan.columns[first].name);
            let reason = format!(
                "column {} has {others} elements and column {} has {elements}: they belong together and must have as many",
                shown(column.name.as_bytes()),
                shown(name.as_bytes())
            );
            Some(Refusal::of_column(&codes::COLUMN_VALUE, column, reason))
        })
    }
}

#[cold]
fn bad_value(code: &'static Code, column: &ColumnPlan, value: &[u8], why: &str) -> Refusal {
    let cut = if value.len() > SHOWN { "…" } else { "" };
    let value = String::from_utf8_lossy(&value[..value.len().min(SHOWN)]);
    let reason = format!("column {} ({}): {value}{cut} {why}", shown(column.name.as_bytes()), column.type_text);
    Refusal::of_column(code, column, reason)
}

#[cold]
fn wrong_kind(column: &ColumnPlan, kind: JsonKind, wants: &str) -> Refusal {
    let reason = format!(
        "column {} ({}) does not take {}: it wants {wants}",
        shown(column.name.as_bytes()),
        column.type_text,
        kind.name()
    );
    Refusal::of_column(&codes::COLUMN_TYPE, column, reason)
}
