//! Which dead letters a request is about: parsed, and bounded. Pure.

use crate::{codes, error::ApiError, error::shown, params::Params};
use serde::Deserialize;
use std::{collections::HashSet, str::FromStr};
use wh_mq::{DeadLetterCursor, DeadLetterFilter, DeadLetterId, DeadLetterQuery};
use wh_types::{Table, Timestamp};

/// Most letters of one request, and as many as are taken where it does not say.
const MOST: usize = 10_000;
const USUAL: usize = 1_000;
/// Longest code and longest part of a reason that is looked for.
const MAX_CODE: usize = 256;
const MAX_PART: usize = 1_024;

/// A filter as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilterText {
    table: Option<String>,
    code: Option<String>,
    reason: Option<String>,
    from: Option<String>,
    until: Option<String>,
    #[serde(default)]
    held: bool,
}

impl FilterText {
    /// From a query string.
    pub(super) fn of(params: &Params<'_>) -> Result<Self, ApiError> {
        let text = |name| Ok::<_, ApiError>(params.get(name)?.map(std::borrow::Cow::into_owned));
        let held = match params.get("held")?.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(invalid("\"held\" is \"true\" or \"false\"")),
        };
        let (table, code, reason) = (text("table")?, text("code")?, text("reason")?);
        Ok(Self { table, code, reason, from: text("from")?, until: text("until")?, held })
    }

    /// Whether it leaves nothing out.
    pub(super) fn is_empty(&self) -> bool {
        let Self { table, code, reason, from, until, held } = self;
        [table, code, reason, from, until].iter().all(|member| member.is_none()) && !held
    }

    /// The filter, as of `now`.
    pub(super) fn read(&self, now: Timestamp) -> Result<DeadLetterFilter, ApiError> {
        let table = self.table.as_deref().map(Table::new).transpose();
        let bounded = |name: &str, text: &Option<String>, most: usize| match text {
            Some(text) if text.len() > most || text.is_empty() => {
                Err(invalid(format!("{name:?} has between 1 and {most} bytes")))
            }
            text => Ok(text.clone()),
        };
        Ok(DeadLetterFilter {
            table: table.map_err(|why| invalid(format!("\"table\": {why}")))?,
            code: bounded("code", &self.code, MAX_CODE)?,
            reason: bounded("reason", &self.reason, MAX_PART)?,
            from: time("from", self.from.as_deref())?,
            until: time("until", self.until.as_deref())?,
            held_at: self.held.then_some(now),
        })
    }
}

/// What a body says about which letters are meant.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    pub(super) ids: Option<Vec<String>>,
    pub(super) filter: Option<FilterText>,
    pub(super) all: bool,
    pub(super) limit: Option<usize>,
    pub(super) cursor: Option<String>,
}

/// Letters, and how many of them at most.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub(super) query: DeadLetterQuery,
    pub(super) most: usize,
}

impl Chosen {
    /// Ids, a filter that leaves something out, or everything in so many words: nothing is meant by mistake.
    pub(super) fn read(&self, now: Timestamp) -> Result<Selection, ApiError> {
        let filter = self.filter.clone().unwrap_or_default();
        let named = [self.ids.is_some(), !filter.is_empty(), self.all].into_iter().filter(|given| *given).count();
        if named != 1 {
            let text = "give \"ids\", or a \"filter\" with at least one member, or \"all\": true; and only one of them";
            return Err(invalid(text));
        }
        let ids = self.ids.as_ref().map(|ids| {
            if ids.len() > MOST {
                return Err(invalid(format!("\"ids\" has {} members, at most {MOST} are allowed", ids.len())));
            }
            let mut ids = ids.iter().map(|text| id(text)).collect::<Result<Vec<_>, _>>()?;
            let mut seen = HashSet::with_capacity(ids.len());
            ids.retain(|id| seen.insert(*id));
            Ok(ids)
        });
        let most = limit(self.limit, USUAL, MOST)?;
        let cursor = cursor(self.cursor.as_deref())?;
        let query = DeadLetterQuery { ids: ids.transpose()?, filter: filter.read(now)?, cursor, limit: most };
        Ok(Selection { query, most })
    }
}

/// An id as it is shown.
pub(super) fn id(text: &str) -> Result<DeadLetterId, ApiError> {
    DeadLetterId::from_str(text).map_err(|_| invalid(format!("{} is no dead letter's id", shown(text.as_bytes()))))
}

pub(super) fn cursor(text: Option<&str>) -> Result<Option<DeadLetterCursor>, ApiError> {
    text.map(str::parse).transpose().map_err(|why| invalid(format!("\"cursor\": {why}")))
}

/// How many at most: `usual` where it is not said.
pub(super) fn limit(given: Option<usize>, usual: usize, most: usize) -> Result<usize, ApiError> {
    match given {
        None => Ok(usual),
        Some(given) if (1..=most).contains(&given) => Ok(given),
        Some(_) => Err(invalid(format!("\"limit\" is between 1 and {most}"))),
    }
}

fn time(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let why = |_| invalid(format!("{name:?} is a time like 2026-01-31T12:00:00Z"));
    text.map(str::parse).transpose().map_err(why)
}

pub(super) fn invalid(text: impl Into<String>) -> ApiError {
    ApiError::new(&codes::REQUEST_INVALID, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(table: &str) -> FilterText {
        FilterText { table: Some(table.to_owned()), ..FilterText::default() }
    }

    #[test]
    fn everything_is_meant_only_when_it_is_said() {
        let now = Timestamp::default();
        let some = |ids: Option<&str>, filter: Option<FilterText>, all| Chosen {
            ids: ids.map(|id| vec![id.to_owned()]),
            filter,
            all,
            ..Chosen::default()
        };
        let id = "0000000e-7.3";
        assert!(some(None, None, true).read(now).is_ok());
        assert!(some(Some(id), None, false).read(now).is_ok());
        assert!(some(None, Some(filter("t")), false).read(now).is_ok());
        for bad in [
            some(None, None, false),
            some(None, Some(FilterText::default()), false),
            some(Some(id), None, true),
            some(Some(id), Some(filter("t")), false),
            some(Some("7"), None, false),
            Chosen { limit: Some(0), all: true, ..Chosen::default() },
            Chosen { cursor: Some("x".into()), all: true, ..Chosen::default() },
        ] {
            assert_eq!(bad.read(now).unwrap_err().code(), &codes::REQUEST_INVALID, "{bad:?}");
        }
    }

    #[test]
    fn a_filter_is_read_and_bounded() {
        let now = Timestamp::from_millis(5);
        let text = FilterText { from: Some("2026-01-01T00:00:00Z".into()), held: true, ..filter("t") };
        let read = text.read(now).unwrap();
        assert_eq!((read.held_at, read.from.is_some()), (Some(now), true));
        for bad in [
            filter(""),
            FilterText { reason: Some("x".repeat(2_000)), ..FilterText::default() },
            FilterText { code: Some(String::new()), ..FilterText::default() },
            FilterText { until: Some("yesterday".into()), ..FilterText::default() },
        ] {
            assert!(bad.read(now).is_err(), "{bad:?}");
        }
    }
}
