//! What a failure of ClickHouse means to who asked.

use crate::{codes, error::ApiError};
use wh_clickhouse::{Error, QueryFailure, RoleCaps};

/// The answer to a failed query. `caps`: those that were sent for the asker's role.
pub(crate) fn error(error: &Error, caps: RoleCaps) -> ApiError {
    let code = match error.query_failure(caps) {
        QueryFailure::Limit => &codes::CLICKHOUSE_LIMIT,
        QueryFailure::Rejected => &codes::CLICKHOUSE_REJECTED,
        QueryFailure::AccessDenied => &codes::CLICKHOUSE_DENIED,
        QueryFailure::Misconfigured => &codes::CLICKHOUSE_MISCONFIGURED,
        QueryFailure::Unavailable => &codes::CLICKHOUSE_UNAVAILABLE,
        QueryFailure::TooLarge => &codes::CLICKHOUSE_TOO_LARGE,
        QueryFailure::Unknown => &codes::CLICKHOUSE_UNKNOWN,
    };
    if matches!(code.status, 403 | 500 | 502) {
        tracing::warn!(%error, code = code.name, "ClickHouse refuses us or fails in an unknown way: {error}");
    }
    ApiError::new(code, error.message())
}

pub(crate) fn too_large(limit: usize) -> ApiError {
    ApiError::new(&codes::CLICKHOUSE_TOO_LARGE, format!("the answer is larger than {limit} bytes"))
}
