//! The data folder: made and tried out before anything is opened in it, so that what is wrong with it is said plainly.
#![expect(clippy::wildcard_enum_match_arm, reason = "errors of the system that we have no words for are all alike")]

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

/// The data folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the data folder {} cannot be used: {problem}", path.display())]
pub struct DataDirError {
    path: PathBuf,
    problem: &'static str,
    source: Option<io::Error>,
}

impl DataDirError {
    fn new(path: &Path, problem: &'static str, source: io::Error) -> Self {
        Self { path: path.to_path_buf(), problem, source: Some(source) }
    }

    /// Whether room is all that is missing.
    #[must_use]
    pub fn no_space(&self) -> bool {
        self.source.as_ref().is_some_and(full)
    }
}

/// Makes the folder where it is missing and writes a file in it. A full disk is no fault of the folder.
pub(crate) fn prepare(path: &Path) -> Result<(), DataDirError> {
    match fs::metadata(path) {
        Ok(there) if !there.is_dir() => {
            return Err(DataDirError { path: path.to_path_buf(), problem: "it is a file", source: None });
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if fs::symlink_metadata(path).is_ok() {
                return Err(DataDirError::new(path, "it is a link to nothing", error));
            }
            fs::create_dir_all(path).map_err(|error| DataDirError::new(path, why_not_made(&error), error))?;
        }
        Err(error) => return Err(DataDirError::new(path, why_not_made(&error), error)),
    }
    let probe = path.join(format!(".probe-{}", std::process::id()));
    let written = OpenOptions::new().write(true).create(true).truncate(true).open(&probe).and_then(|mut file| {
        file.write_all(b"probe")?;
        file.sync_data()
    });
    // a probe that stays is overwritten by the next
    let removed = fs::remove_file(&probe);
    match written.and(removed) {
        // what is in the queue already may be delivered, and that makes room: let the queue say whether it opens
        Err(error) if full(&error) => {
            tracing::warn!(path = %path.display(), "no space is left in the data folder {}", path.display());
            Ok(())
        }
        done => done.map_err(|error| {
            let problem = match error.kind() {
                ErrorKind::PermissionDenied => "it is not writable for this user",
                ErrorKind::ReadOnlyFilesystem => "it is on a read-only file system",
                _ => "a file in it cannot be written",
            };
            DataDirError::new(path, problem, error)
        }),
    }
}

fn full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn why_not_made(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "it cannot be made or entered by this user",
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => "a part of its path is a file",
        ErrorKind::ReadOnlyFilesystem => "it is on a read-only file system",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "no space is left",
        _ => "it cannot be made",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_missing_folder_is_made_and_left_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        prepare(&path).unwrap();
        prepare(&path).unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn files_dead_links_and_places_that_take_no_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "").unwrap();
        symlink(folder.path().join("nowhere"), &link).unwrap();
        let cases = [
            (file.clone(), "it is a file"),
            (file.join("below"), "a part of its path is a file"),
            (link, "it is a link to nothing"),
            // nobody may make files there, not even root
            (PathBuf::from("/proc/wavehouse"), "it cannot be made"),
            (PathBuf::from("/proc/self"), "cannot be"),
        ];
        for (path, expected) in cases {
            let error = prepare(&path).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(expected) && text.contains(path.to_str().unwrap()), "{text}");
            assert!(!error.no_space());
        }
    }
}
