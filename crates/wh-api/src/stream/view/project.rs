//! Rows of a block through a view, in one pass over their text. Pure.

use super::{
    filter::{Filter, Values},
    truth::Truth,
};
use crate::json::{Fault, Scanner, unescape};
use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

/// What is done with a member of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    shown: bool,
    /// Its place among the filter's fields.
    field: Option<usize>,
}

/// Where the members are that a view looks at.
#[derive(Debug)]
pub(super) struct Plan {
    uses: HashMap<Box<[u8]>, Use>,
    /// Whether only some members are shown.
    parts: bool,
}

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Shown,
    /// The filter does not hold.
    Hidden,
    /// Whether the filter holds is not known.
    Withheld,
}

/// Goes over the rows of one block.
#[derive(Debug)]
pub(super) struct Pass<'v, 't> {
    plan: &'v Plan,
    filter: Option<&'v Filter>,
    values: Values<'t>,
    /// Where the members stand that are shown.
    members: Vec<Range<usize>>,
    /// The nth key of the row before, and its use: mostly it is the same again.
    guesses: Vec<(&'t [u8], Use)>,
}

impl Plan {
    pub(super) fn new(columns: Option<&BTreeSet<Box<str>>>, filter: Option<&Filter>) -> Self {
        let mut uses: HashMap<Box<[u8]>, Use> = HashMap::new();
        for name in columns.into_iter().flatten() {
            uses.entry(name.as_bytes().into()).or_default().shown = true;
        }
        for (at, field) in filter.iter().flat_map(|filter| filter.fields.iter().enumerate()) {
            uses.entry(field.column.as_bytes().into()).or_default().field = Some(at);
        }
        Self { uses, parts: columns.is_some() }
    }
}

impl<'v, 't> Pass<'v, 't> {
    pub(super) fn new(plan: &'v Plan, filter: Option<&'v Filter>) -> Self {
        Self { plan, filter, values: Values::default(), members: Vec::new(), guesses: Vec::new() }
    }

    /// Looks at the row at `line` of `text`, the text of a block.
    pub(super) fn row(&mut self, text: &'t [u8], line: &Range<usize>) -> Fate {
        let fields = self.filter.map_or(0, |filter| filter.fields.len());
        self.values.given.clear();
        self.values.given.resize(fields, None);
        self.members.clear();
        // rows were judged before they were queued
        if self.scan(&text[..line.end], line.start).is_err() {
            return Fate::Withheld;
        }
        match self.filter.map_or(Truth::True, |filter| filter.holds(text, &mut self.values)) {
            Truth::True => Fate::Shown,
            Truth::False | Truth::Null => Fate::Hidden,
            Truth::Unknown => Fate::Withheld,
        }
    }

    /// Finds the members that count.
    fn scan(&mut self, text: &'t [u8], start: usize) -> Result<(), Fault> {
        let mut json = Scanner::new(text, start);
        if !json.take(b'{') {
            return Err(json.expected("'{'"));
        }
        let (mut left, mut place) = (self.plan.uses.len(), 0);
        while left > 0
            && let Some(key) = json.key(place == 0)?
        {
            let value = json.value(1)?;
            let used = self.used(&text[key.span.clone()], key.escaped, place);
            if used.shown {
                self.members.push(key.span.start - 1..value.span.end);
            }
            left -= usize::from(used.shown || used.field.is_some());
            if let Some(field) = used.field {
                self.values.given[field] = Some(value);
            }
            place += 1;
        }
        Ok(())
    }

    fn used(&mut self, key: &'t [u8], escaped: bool, place: usize) -> Use {
        if let Some((guess, used)) = self.guesses.get(place)
            && *guess == key
        {
            return *used;
        }
        let used = self.plan.uses.get(&*unescape(key, escaped)).copied().unwrap_or_default();
        if place < self.guesses.len() {
            self.guesses[place] = (key, used);
        } else if place == self.guesses.len() {
            self.guesses.push((key, used));
        }
        used
    }

    /// Appends the row last looked at as it is shown.
    pub(super) fn append(&self, out: &mut Vec<u8>, text: &[u8], line: &Range<usize>) {
        if !self.plan.parts {
            out.extend_from_slice(&text[line.clone()]);
            return;
        }
        out.push(b'{');
        for (at, member) in self.members.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&text[member.clone()]);
        }
        out.push(b'}');
    }
}
