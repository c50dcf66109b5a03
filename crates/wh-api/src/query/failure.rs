//! What a failure of ClickHouse means to who sent a structured query: a code, and a text with nothing of ours in it.
//!
//! A refusal of the query is told in ClickHouse's words, without its version, our statement and our database. Of anything
//! that is not the asker's to mend the text is ours; ClickHouse's stands in the log.

use super::value::in_askers_words;
use crate::{
    codes::{self, Code},
    error::ApiError,
};
use std::time::Duration;
use wh_clickhouse::{Error, Kind, QueryFailure, READ_ONLY_USER, RoleCaps};

/// Longest text of ClickHouse's that is told, in bytes.
const MAX_TOLD: usize = 1_000;
/// What stands between a reason and what only we can use.
const BEHIND_THE_REASON: &[&str] = &[
    " (version ",
    ": In scope ",
    " In scope ",
    " in scope ",
    ": While processing",
    ": while executing",
    ": While executing",
];

/// What is known of a failed query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) columns: &'a [String],
    pub(crate) database: &'a str,
    pub(crate) request_id: &'a str,
    /// Most rows there may be, where more are an error.
    pub(crate) most: Option<u64>,
    pub(crate) limits: Limits,
}

/// The bounds that were sent along, and whose they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) time: Duration,
    /// The time is one that the asker or the pipe chose, shorter than the tenant's.
    pub(crate) own_time: bool,
}

/// The answer to a failed query.
pub(super) fn failed(error: &Error, asked: Asked<'_>) -> ApiError {
    failed_under(error, asked, false)
}

/// The same where a bound on memory may have been sent along that is not the server's.
pub(crate) fn failed_under(error: &Error, asked: Asked<'_>, own_memory: bool) -> ApiError {
    let Asked { request_id, limits, .. } = asked;
    let failure = error.query_failure(RoleCaps { time: limits.own_time, memory: own_memory });
    let (code, text) = match failure {
        QueryFailure::Limit => (&codes::CLICKHOUSE_LIMIT, limit(error, asked)),
        QueryFailure::Rejected => (&codes::CLICKHOUSE_REJECTED, told(error.message(), asked)),
        // a missing grant is the operator's to give (decision D25), and so is a user that may change no setting
        QueryFailure::AccessDenied | QueryFailure::Misconfigured if error.read_only_user() => {
            (&codes::CLICKHOUSE_MISCONFIGURED, READ_ONLY_USER.to_owned())
        }
        QueryFailure::AccessDenied | QueryFailure::Misconfigured => {
            let text =
                "this server's access to ClickHouse is not set up for the query; the server's log says what is missing";
            (&codes::CLICKHOUSE_MISCONFIGURED, text.to_owned())
        }
        QueryFailure::Unavailable => (&codes::CLICKHOUSE_UNAVAILABLE, unavailable(error, limits)),
        QueryFailure::TooLarge => {
            (&codes::CLICKHOUSE_TOO_LARGE, "the answer is larger than this server holds".to_owned())
        }
        QueryFailure::Unknown => {
            (&codes::CLICKHOUSE_UNKNOWN, "ClickHouse failed in a way that is not recognised".to_owned())
        }
    };
    log(error, code, request_id);
    ApiError::new(code, text)
}

fn log(error: &Error, code: &Code, request_id: &str) {
    if matches!(code.status, 403 | 500 | 502) {
        tracing::warn!(%error, code = code.name, request_id, "a query failed, {}: {error}", code.name);
    } else {
        tracing::debug!(%error, code = code.name, request_id, "a query failed: {error}");
    }
}

fn limit(error: &Error, asked: Asked<'_>) -> String {
    match (error.code(), asked.most) {
        (Some(396), Some(most)) => {
            format!(
                "the answer has more than {most} rows, and this form is never cut: ask for a \"limit\" or for pages"
            )
        }
        (Some(241), _) => "the query needs more memory than it may use".to_owned(),
        (Some(159 | 160), _) => format!("the query took longer than its own timeout of {:?}", asked.limits.time),
        _ => told(error.message(), asked),
    }
}

fn unavailable(error: &Error, limits: Limits) -> String {
    match (error.kind(), error.code()) {
        (Kind::Busy, _) => "all of this server's connections to ClickHouse are in use".to_owned(),
        (Kind::Timeout, _) | (_, Some(159 | 160)) => format!("the query took longer than {:?}", limits.time),
        (_, Some(241)) => "ClickHouse has not the memory for the query now".to_owned(),
        (_, Some(202)) => "ClickHouse runs as many queries as it may".to_owned(),
        _ => "ClickHouse cannot be reached or cannot answer now".to_owned(),
    }
}

/// ClickHouse's reason and nothing else.
fn told(message: &str, asked: Asked<'_>) -> String {
    let reason = message.split_once("DB::Exception: ").map_or(message, |(_, reason)| reason);
    let ends = BEHIND_THE_REASON.iter().filter_map(|mark| reason.find(mark));
    let reason = &reason[..ends.min().unwrap_or(reason.len())];
    let mut reason = reason.trim_end_matches([' ', '.', ':']).to_owned();
    for ours in [format!("`{}`.", asked.database), format!("{}.", asked.database)] {
        reason = reason.replace(&ours, "");
    }
    let mut reason = in_askers_words(&reason, asked.columns);
    if reason.len() > MAX_TOLD {
        let cut = (0..=MAX_TOLD).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or(0);
        reason.truncate(cut);
        reason.push('…');
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(columns: &[String]) -> Asked<'_> {
        let limits = Limits { time: Duration::from_secs(3), own_time: false };
        Asked { columns, database: "prod_db", request_id: "r", most: None, limits }
    }

    #[test]
    fn a_reason_is_told_without_what_is_ours() {
        for (message, reason) in [
            (
                "Code: 47. DB::Exception: Unknown expression identifier `x` in prod_db.t: In scope SELECT x FROM t. (UNKNOWN_IDENTIFIER) (version 26.7.2.1 (official build))",
                "Unknown expression identifier `x` in t",
            ),
            (
                "Code: 43. DB::Exception: Illegal type String of argument. (X) (version 26.7)",
                "Illegal type String of argument. (X)",
            ),
            ("Code: 6. DB::Exception: bad `prod_db`.`t` for query parameter 'p0'", "bad `t` for column \"c\""),
            ("no exception", "no exception"),
        ] {
            assert_eq!(told(message, asked(&["c".to_owned()])), reason);
        }
        assert!(told(&"é".repeat(5_000), asked(&[])).len() <= MAX_TOLD + 3);
    }
}
