//! sled's errors as the store's. The one file that knows both.

use crate::{Error, Kind};
use std::{io, time::Duration};

/// What sled says when another process has its file; it has no kind of its own for that.
const LOCKED: &str = "could not acquire lock";

fn kind_of(error: &::sled::Error) -> Kind {
    match error {
        ::sled::Error::Io(error) if error.to_string().contains(LOCKED) => {
            Kind::Held("another process has the folder of the dedupe store".into())
        }
        ::sled::Error::Io(error) => of_io(error),
        ::sled::Error::Corruption { .. } => Kind::Corrupt(error.to_string().into()),
        ::sled::Error::Unsupported(why) => Kind::Unsupported(why.clone().into()),
        ::sled::Error::CollectionNotFound(_) | ::sled::Error::ReportableBug(_) => Kind::Bug(error.to_string().into()),
    }
}

fn of_io(error: &io::Error) -> Kind {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    if matches!(error.kind(), StorageFull | QuotaExceeded) {
        return Kind::Exhausted { why: "the disk is full".into(), retry_after: Duration::from_secs(30) };
    }
    if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) {
        return Kind::Denied(error.to_string().into());
    }
    Kind::Unavailable
}

pub(super) fn of(op: &'static str, error: ::sled::Error) -> Error {
    Error::new(op, kind_of(&error)).with_source(error)
}

pub(super) fn io(op: &'static str, error: io::Error) -> Error {
    Error::new(op, of_io(&error)).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::Class;

    #[test]
    fn errors_say_what_to_do() {
        let io = |kind, text: &str| ::sled::Error::Io(io::Error::new(kind, text));
        let rows = [
            (io(io::ErrorKind::Other, "could not acquire lock on \"db\": x"), Class::Conflict),
            (io(io::ErrorKind::PermissionDenied, "x"), Class::Denied),
            (io(io::ErrorKind::Other, "x"), Class::Unavailable),
            (::sled::Error::Corruption { at: None, bt: () }, Class::Corrupt),
            (::sled::Error::Unsupported("x".into()), Class::Unsupported),
            (::sled::Error::ReportableBug("x".into()), Class::Bug),
        ];
        for (error, class) in rows {
            assert_eq!(of("open", error).class(), class);
        }
        let full = of("open", io(io::ErrorKind::StorageFull, "x"));
        assert!(matches!(full.class(), Class::Exhausted { .. }));
    }
}
