//! The log's errors as the store's. The one file that knows both.

use crate::{Error, Kind};
use std::time::Duration;

/// What a failed append or other call on an open log means.
pub(super) fn kind_of(error: &wh_log::Error) -> Kind {
    let exhausted =
        |seconds| Kind::Exhausted { why: error.to_string().into(), retry_after: Duration::from_secs(seconds) };
    match error.kind() {
        wh_log::Kind::NoSpace => exhausted(30),
        wh_log::Kind::QueueFull => exhausted(1),
        wh_log::Kind::Sync => Kind::Unknown,
        wh_log::Kind::Closed => Kind::Stopping,
        wh_log::Kind::Corrupt => Kind::Corrupt(error.to_string().into()),
        wh_log::Kind::Invalid => Kind::Bug(error.to_string().into()),
        wh_log::Kind::Held => Kind::Held(error.to_string().into()),
        wh_log::Kind::Version => Kind::Unsupported(error.to_string().into()),
        wh_log::Kind::Path => Kind::Denied(error.to_string().into()),
        // and kinds that the log may learn
        wh_log::Kind::Write | wh_log::Kind::Io | wh_log::Kind::Retired | _ => Kind::Unavailable,
    }
}

pub(super) fn of(op: &'static str, error: &wh_log::Error) -> Error {
    Error::new(op, kind_of(error)).with_source(error.clone())
}
