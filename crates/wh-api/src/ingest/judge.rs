//! One record against its table: one pass over its text, the first thing wrong with it as its refusal.
//!
//! Judges top-level members only, by kind; what a value's text means is ClickHouse's to say (decision D6).

use super::plan::{ColumnPlan, Plan};
use crate::{
    codes::{self, Code},
    error::shown,
    json::{Fault, Scanner, Text, Value, What, unescape},
    tenant::Mode,
};
use std::{cmp::Ordering, ops::Range};
use wh_clickhouse::types::{Accept, JsonKind};

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
    /// Spans of the numbers of the record last judged that go into quotes.
    pub(crate) quotes: Vec<Range<usize>>,
    /// By column: values whose kind does not decide.
    pub(crate) undecided: Vec<u32>,
}

impl<'p> Judge<'p> {
    pub(crate) fn new(plan: &'p Plan) -> Self {
        let columns = plan.columns.len();
        Self {
            plan,
            seen: vec![0; columns],
            record: 0,
            guesses: Vec::with_capacity(columns),
            quotes: Vec::new(),
            undecided: vec![0; columns],
        }
    }

    /// Reads one object, whose brace is next.
    pub(crate) fn record(&mut self, json: &mut Scanner<'_>) -> Result<Judged, Fault> {
        self.record += 1;
        self.quotes.clear();
        let start = json.at();
        let _outside = json.take_spaced();
        if !json.take(b'{') {
            return Err(json.expected("'{'"));
        }
        let (mut refusal, mut given, mut place) = (None, 0, 0);
        while let Some(key) = json.key(place == 0)? {
            let value = json.value(1)?;
            if refusal.is_none() {
                match self.member(json.text(), place, &key, &value) {
                    Ok(required) => given += usize::from(required),
                    Err(why) => refusal = Some(why),
                }
            }
            place += 1;
        }
        if refusal.is_none() && given < self.plan.required {
            refusal = self.missing();
        }
        Ok(Judged { span: start..json.at(), spaced: json.take_spaced(), refusal })
    }

    /// Judges one member; says whether it was a value that a strict record must give.
    #[inline]
    fn member(&mut self, text: &[u8], place: usize, key: &Text, value: &Value) -> Result<bool, Refusal> {
        let at = self.find(&text[key.span.clone()], key.escaped, place)?;
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
        if column.quote_numbers && matches!(value.kind, JsonKind::Integer | JsonKind::Float) {
            if self.plan.mode == Mode::Strict {
                seconds(column, &text[value.span.clone()])?;
            }
            self.quotes.push(value.span.clone());
            return Ok(column.required);
        }
        match column.verdict(value.kind) {
            Accept::Yes => {}
            Accept::CannotTell => self.undecided[at] += 1,
            Accept::No(why) => {
                let reason = format!(
                    "column {} ({}) does not take {}: it wants {why}",
                    shown(column.name.as_bytes()),
                    column.type_text,
                    value.kind.name()
                );
                return Err(Refusal::of_column(&codes::COLUMN_TYPE, column, reason));
            }
        }
        Ok(column.required)
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
}

/// Whether a bare number is plainly Unix seconds, which is what it will be read as.
fn seconds(column: &ColumnPlan, number: &[u8]) -> Result<(), Refusal> {
    let why = if number.starts_with(b"-") {
        "a negative number"
    } else if number.iter().any(|b| matches!(b, b'e' | b'E')) {
        "a number with an exponent"
    } else if number.iter().take_while(|b| b.is_ascii_digit()).count() > 10 {
        "a number of more than 10 digits before its point"
    } else {
        return Ok(());
    };
    let reason = format!(
        "column {} ({}) reads bare numbers as Unix seconds and does not take {why}; send the time as a string",
        shown(column.name.as_bytes()),
        column.type_text
    );
    Err(Refusal::of_column(&codes::COLUMN_RANGE, column, reason))
}
