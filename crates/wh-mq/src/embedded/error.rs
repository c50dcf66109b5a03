//! The log's errors as the queue's. The one file that knows both.

use crate::{Error, Kind};

/// What a failed append, read or other call on an open log means.
pub(super) fn kind_of(error: &wh_log::Error) -> Kind {
    match error.kind() {
        wh_log::Kind::NoSpace => Kind::NoSpace,
        wh_log::Kind::Sync => Kind::Unknown,
        wh_log::Kind::Write | wh_log::Kind::QueueFull | wh_log::Kind::Io | wh_log::Kind::Path => Kind::Unavailable,
        wh_log::Kind::Closed => Kind::Stopping,
        wh_log::Kind::Corrupt => Kind::Corrupt(error.to_string().into()),
        wh_log::Kind::Retired => Kind::NotFound(error.to_string().into()),
        wh_log::Kind::Invalid => Kind::BadBlock(error.to_string().into()),
        wh_log::Kind::Held | wh_log::Kind::Version => Kind::Folder(error.to_string()),
        // the log may learn new kinds; what is not known is no reason to lose anything
        _ => Kind::Unavailable,
    }
}

/// Why a folder could not be opened as a queue. The text names the path, the cause, and the owner where it is locked.
pub(super) fn open_failed(error: wh_log::Error) -> Error {
    folder_failed("open queue", error)
}

/// Why something could not be done with a folder.
pub(super) fn folder_failed(op: &'static str, error: wh_log::Error) -> Error {
    let full = error.kind() == wh_log::Kind::NoSpace;
    let kind = if full { Kind::NoSpace } else { Kind::Folder(error.to_string()) };
    Error::new(op, kind).with_source(error)
}
