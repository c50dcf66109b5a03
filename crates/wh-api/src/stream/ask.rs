//! What a client asks of a stream: tables, where to begin in each, and what to do when it is too slow. Pure.

use super::{latest::Key, position::Origin, wish::Slow};
use crate::{
    codes,
    error::{ApiError, shown},
    params::Params,
    query,
};
use http::HeaderMap;
use std::borrow::Cow;
use wh_types::{Table, Timestamp};

/// Most tables of one stream.
const MAX_TABLES: usize = 16;
/// Most columns of a key.
const MAX_KEY: usize = 8;

/// The tables of a stream, in the order of the request.
pub(super) fn tables(params: &Params<'_>) -> Result<Vec<Table>, ApiError> {
    let names = params.all("table").take(MAX_TABLES + 1).collect::<Vec<_>>();
    if names.len() > MAX_TABLES {
        let text = format!("a stream has at most {MAX_TABLES} tables");
        return Err(ApiError::new(&codes::REQUEST_INVALID, text));
    }
    if names.is_empty() || names.iter().any(|name| name.is_empty()) {
        // with the words that every path has for it
        return Err(params.table().err().unwrap_or_else(|| twice("")));
    }
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            return Err(twice(name));
        }
    }
    let table = |name: &Cow<'_, str>| {
        Table::new(name).map_err(|why| ApiError::new(&codes::TABLE_NOT_FOUND, format!("table {name:?}: {why}")))
    };
    names.iter().map(table).collect()
}

/// Refuses parameters that a stream of these tables does not have.
pub(super) fn known(params: &Params<'_>, tables: &[Table]) -> Result<(), ApiError> {
    let mut known = ["table", "since", "columns", "filter", "slow", "key", "events"].map(Cow::Borrowed).to_vec();
    for table in tables.iter().filter(|_| tables.len() > 1) {
        known.extend([format!("columns.{}", table.as_str()), format!("filter.{}", table.as_str())].map(Cow::Owned));
    }
    params.only(&known.iter().map(|name| &**name).collect::<Vec<_>>())
}

/// What is shown of a table: columns, and the filter. What is said of one table goes before what is said of all.
pub(super) fn view<'a>(params: &Params<'a>, table: &Table) -> Result<[Option<Cow<'a, str>>; 2], ApiError> {
    let of = |what: &str| {
        let own = params.get(&format!("{what}.{}", table.as_str()))?;
        own.map_or_else(|| params.get(what), |own| Ok(Some(own)))
    };
    Ok([of("columns")?, of("filter")?])
}

/// Whether the stream tells how far the rows are on their way into ClickHouse.
pub(super) fn committed(params: &Params<'_>) -> Result<bool, ApiError> {
    match params.get("events")?.as_deref() {
        None => Ok(false),
        Some("committed") => Ok(true),
        Some(_) => Err(ApiError::new(&codes::REQUEST_INVALID, "the parameter \"events\" is committed, or left out")),
    }
}

fn twice(name: &str) -> ApiError {
    let text = format!("the table {} is named more than once, or another has no name", shown(name.as_bytes()));
    ApiError::new(&codes::REQUEST_INVALID, text)
}

/// Where a client begins in each of so many tables. `Last-Event-ID` is of a client that comes back: it goes before `since`,
/// which such a client sends again.
pub(super) fn origins(
    headers: &HeaderMap,
    params: &Params<'_>,
    tables: usize,
    now: Timestamp,
) -> Result<Vec<Origin>, ApiError> {
    let since = params.get("since")?;
    // read in any case: a mistake in it does not wait for the first time that it counts
    let since = since.map(|text| since_of(&text, tables, now)).transpose()?;
    let mut ids = headers.get_all("last-event-id").iter().filter(|id| !id.is_empty());
    let Some(id) = ids.next() else {
        return Ok(since.unwrap_or_else(|| vec![Origin::Now; tables]));
    };
    let all = id.to_str().ok().and_then(|id| Origin::parse_all(id, tables));
    all.filter(|_| ids.next().is_none()).ok_or_else(|| unreadable("Last-Event-ID", tables))
}

fn since_of(text: &str, tables: usize, now: Timestamp) -> Result<Vec<Origin>, ApiError> {
    if let Some(age) = query::age(text) {
        return Ok(vec![Origin::Since(now.saturating_sub(age)); tables]);
    }
    if let Ok(time) = text.parse() {
        return Ok(vec![Origin::Since(time); tables]);
    }
    let all = Origin::parse_all(text, tables).filter(|_| !text.is_empty());
    all.ok_or_else(|| unreadable("since", tables))
}

fn unreadable(what: &str, tables: usize) -> ApiError {
    let text = format!(
        "{what} cannot be read: it is the id of an event of a stream of {tables} table(s) in the same order{}",
        if what == "since" { ", an RFC 3339 time, or an age like 5m" } else { "" }
    );
    ApiError::new(&codes::CURSOR_INVALID, text)
}

/// What a stream that is too slow gets. The key's columns are for the caller to look at.
pub(super) fn slow(params: &Params<'_>) -> Result<Slow, ApiError> {
    let invalid = |text: &str| Err(ApiError::new(&codes::REQUEST_INVALID, text));
    let key: Vec<Box<str>> = params.all("key").take(MAX_KEY + 1).map(Into::into).collect();
    let slow = params.get("slow")?;
    match slow.as_deref() {
        Some("latest") if key.is_empty() => invalid("slow=latest needs a key: key=column, once for each column of it"),
        Some("latest") if key.len() > MAX_KEY => invalid("a key has at most 8 columns"),
        Some("latest") => Ok(Slow::Latest(Key(key.into()))),
        _ if !key.is_empty() => invalid("the parameter \"key\" is for slow=latest only"),
        None | Some("gap") => Ok(Slow::Gap),
        Some("end") => Ok(Slow::End),
        Some(_) => invalid("the parameter \"slow\" is gap, end or latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::Code;

    fn of<T>(query: &str, read: impl FnOnce(&Params<'_>) -> Result<T, ApiError>) -> Result<T, &'static Code> {
        let uri = format!("/x?{query}").parse::<http::Uri>().unwrap();
        read(&Params::new(&uri)).map_err(|error| error.code())
    }

    #[test]
    fn tables_are_named_once_and_are_so_many() {
        let names = |query: &str| {
            of(query, tables).map(|tables| tables.iter().map(|table| table.as_str().to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(names("table=b&since=5m&table=a%2Cb"), Ok(vec!["b".into(), "a,b".into()]));
        let many = |count: usize| (0..count).map(|n| format!("table=t{n}&")).collect::<String>();
        assert_eq!(names(&many(16)).map(|names| names.len()), Ok(16));
        assert_eq!(names(&many(17)), Err(&codes::REQUEST_INVALID));
        assert_eq!(names("table=a&table=a"), Err(&codes::REQUEST_INVALID));
        assert_eq!(names("table=a&table="), Err(&codes::REQUEST_INVALID));
        assert_eq!(names("table="), Err(&codes::TABLE_MISSING));
        assert_eq!(names(""), Err(&codes::TABLE_MISSING));
    }

    #[test]
    fn a_client_begins_where_it_was_or_where_it_says() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let begin = |query: &str, id: &[&str], tables| {
            let mut headers = HeaderMap::new();
            for id in id {
                headers.append("last-event-id", id.parse().unwrap());
            }
            let all = of(query, |params| origins(&headers, params, tables, now));
            all.map(|all| all.iter().map(|origin| format!("{origin:?}")).collect::<Vec<_>>())
        };
        let written = |origins: &[Origin]| Ok(origins.iter().map(|origin| format!("{origin:?}")).collect::<Vec<_>>());
        let since = |text: &str| Origin::Since(text.parse().unwrap());
        let id = Origin::After("000000ab-7.3".parse().unwrap());
        assert_eq!(begin("", &[], 2), written(&[Origin::Now, Origin::Now]));
        assert_eq!(begin("since=5m", &[], 2), written(&[since("2026-01-01T00:05:00Z"); 2]));
        assert_eq!(begin("since=2026-01-01T00:05:00%2B01:00", &[], 1), written(&[since("2025-12-31T23:05:00Z")]));
        assert_eq!(begin("since=000000ab-7.3", &[], 1), written(&[id]));
        assert_eq!(begin("since=5m", &["000000ab-7.3"], 1), written(&[id]), "it came back");
        assert_eq!(begin("since=5m", &[""], 1), written(&[since("2026-01-01T00:05:00Z")]), "no id yet");
        assert_eq!(begin("", &["000000ab-7.3,"], 2), written(&[id, Origin::Lost]));
        for (query, ids, tables) in [
            ("since=", &[][..], 1),
            ("since=yesterday", &[], 1),
            ("since=yesterday", &["000000ab-7.3"], 1),
            ("since=000000ab-7.3", &[], 2),
            ("", &["yesterday"], 1),
            ("", &["000000ab-7.3"], 2),
            ("", &["000000ab-7.3", "000000ab-8.3"], 1),
        ] {
            assert_eq!(begin(query, ids, tables), Err(&codes::CURSOR_INVALID), "{query} {ids:?}");
        }
    }

    #[test]
    fn a_slow_stream_gets_what_it_chose() {
        assert_eq!(of("", slow), Ok(Slow::Gap));
        assert_eq!(of("slow=gap", slow), Ok(Slow::Gap));
        assert_eq!(of("slow=end", slow), Ok(Slow::End));
        let key = Key(["a", "b"].map(Into::into).into());
        assert_eq!(of("key=a&slow=latest&key=b", slow), Ok(Slow::Latest(key)));
        for query in ["slow=latest", "slow=fast", "slow=", "key=a", "slow=end&key=a", "slow=gap&slow=gap"] {
            assert_eq!(of(query, slow), Err(&codes::REQUEST_INVALID), "{query}");
        }
    }
}
