//! The names of the files in a log's folder.

use std::path::{Path, PathBuf};

pub(crate) const LOCK: &str = "LOCK";
pub(crate) const IDENTITY: &str = "identity";
pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const EXTENT: &str = "extent";
pub(crate) const RESERVE: &str = "reserve";

/// What a file in the folder is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// A segment that was being written: where its groups end is found by reading it.
    Open(u64),
    /// A segment that is written no more, and where its groups end.
    Sealed(u64, u32),
    /// A retired segment that waits to be overwritten.
    Free(u64),
    /// A retired segment with damage in it, kept for inspection.
    Bad(u64),
    /// Left over from a replacement that was cut short.
    Temp,
}

impl Name {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (stem, extension) = name.rsplit_once('.')?;
        let number = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| text.parse::<u64>().ok()).flatten().filter(|&n| n > 0)
        };
        match extension {
            "open" => number(stem).map(Self::Open),
            "seal" => {
                let (segment, end) = stem.split_once('-')?;
                Some(Self::Sealed(number(segment)?, u32::try_from(number(end)?).ok()?))
            }
            "free" => number(stem).map(Self::Free),
            "bad" => number(stem).map(Self::Bad),
            "tmp" => Some(Self::Temp),
            _ => None,
        }
    }

    pub(crate) fn path(self, dir: &Path) -> PathBuf {
        dir.join(match self {
            Self::Open(segment) => format!("{segment:012}.open"),
            Self::Sealed(segment, end) => format!("{segment:012}-{end:010}.seal"),
            Self::Free(segment) => format!("{segment:012}.free"),
            Self::Bad(segment) => format!("{segment:012}.bad"),
            Self::Temp => "replaced.tmp".into(),
        })
    }

    /// The segment's number.
    pub(crate) fn segment(self) -> Option<u64> {
        match self {
            Self::Open(n) | Self::Sealed(n, _) | Self::Free(n) | Self::Bad(n) => Some(n),
            Self::Temp => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_left_alone() {
        for name in [Name::Open(1), Name::Sealed(12, 64), Name::Free(u64::MAX), Name::Bad(3)] {
            let path = name.path(Path::new("/x"));
            assert_eq!(Name::parse(path.file_name().unwrap().to_str().unwrap()), Some(name));
        }
        for other in ["", "a.open", "1", "1.log", "+1.open", "1-.seal", "1-99999999999.seal", "0.open", ".open"] {
            assert_eq!(Name::parse(other), None, "{other:?}");
        }
    }
}
