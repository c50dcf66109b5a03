//! What can go wrong in the log, and which class it is.

use std::{fmt, io, path::Path, sync::Arc, time::Duration};
use wh_types::Class;

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An option or a record cannot work.
    Invalid,
    /// Another process has the folder; the text names it.
    Held,
    /// The folder cannot be used: no folder, no rights, another file system error on opening.
    Path,
    /// The files were written by a version of the format that this one does not read.
    Version,
    /// The disk is full. Nothing of the append was stored, and nothing of it ever will be.
    NoSpace,
    /// As many bytes wait for the disk as may. Nothing was stored.
    QueueFull,
    /// The bytes could not be written. Nothing of the append was stored.
    Write,
    /// The bytes were written, but whether they are durable is not known: a crash may show them or not.
    Sync,
    /// Reading failed, or another operation on the file system did.
    Io,
    /// What stands at a place is not what was stored there.
    Corrupt,
    /// The segment is not in the log, or no longer.
    Retired,
    /// The log is closed or closing. Nothing was stored.
    Closed,
}

/// A failure of the log. Cheap to clone: all who wait for a group that failed are told the same.
#[derive(Clone, Debug)]
pub struct Error {
    kind: Kind,
    op: &'static str,
    detail: Arc<str>,
    source: Option<Arc<io::Error>>,
}

impl Error {
    pub(crate) fn new(kind: Kind, op: &'static str, detail: impl Into<Arc<str>>) -> Self {
        Self { kind, op, detail: detail.into(), source: None }
    }

    /// A failed operation on a path. The text has both the path and the cause, because it is what an operator reads.
    pub(crate) fn path(kind: Kind, op: &'static str, path: &Path, source: io::Error) -> Self {
        let kind = if is_full(&source) && kind != Kind::Sync { Kind::NoSpace } else { kind };
        Self { kind, op, detail: format!("{}: {source}", path.display()).into(), source: Some(Arc::new(source)) }
    }

    pub(crate) fn closed(op: &'static str) -> Self {
        Self::new(Kind::Closed, op, "the log is closed")
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Which operation failed.
    #[must_use]
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// What a caller may do about it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self.kind {
            Kind::Invalid => Class::Invalid,
            Kind::Held => Class::Conflict,
            Kind::Path => Class::Denied,
            Kind::Version => Class::Unsupported,
            Kind::NoSpace => Class::Exhausted { retry_after: Duration::from_secs(30) },
            Kind::QueueFull => Class::Exhausted { retry_after: Duration::from_secs(1) },
            Kind::Write | Kind::Io => Class::Unavailable,
            Kind::Sync => Class::Unknown,
            Kind::Corrupt => Class::Corrupt,
            Kind::Retired => Class::NotFound,
            Kind::Closed => Class::Stopping,
        }
    }
}

/// Whether the file system said that there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            Kind::NoSpace => "the disk is full: ",
            Kind::Sync => "the outcome is unknown: ",
            Kind::Corrupt => "damaged: ",
            Kind::Invalid
            | Kind::Held
            | Kind::Path
            | Kind::Version
            | Kind::QueueFull
            | Kind::Write
            | Kind::Io
            | Kind::Retired
            | Kind::Closed => "",
        };
        write!(f, "{}: {what}{}", self.op, self.detail)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_as_such_and_an_unknown_outcome_stays_unknown() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let error = Error::path(Kind::Write, "append", Path::new("/data/1.open"), full());
        assert_eq!(error.kind(), Kind::NoSpace);
        assert!(matches!(error.class(), Class::Exhausted { .. }));
        assert!(error.to_string().starts_with("append: the disk is full: /data/1.open: "), "{error}");
        let error = Error::path(Kind::Sync, "append", Path::new("/data/1.open"), full());
        assert_eq!(error.class(), Class::Unknown);
    }
}
