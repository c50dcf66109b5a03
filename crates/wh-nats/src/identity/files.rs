//! The files of an identity, and whether they changed.

use crate::options::{Credentials, Options};
use std::path::{Path, PathBuf};

/// Larger than any credential or chain of certificates.
const MAX_BYTES: u64 = 1024 * 1024;

/// What the files held.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Seen(Vec<Option<Vec<u8>>>);

impl Seen {
    pub(super) fn of(files: &[PathBuf]) -> Self {
        Self(files.iter().map(|file| read(file).ok()).collect())
    }
}

/// All files that the options name.
pub(super) fn of(options: &Options) -> Vec<PathBuf> {
    let credentials = match &options.credentials {
        Credentials::CredsFile(file) | Credentials::NkeySeedFile(file) | Credentials::TokenFile(file) => Some(file),
        Credentials::PasswordFile { file, .. } => Some(file),
        Credentials::None | Credentials::Password { .. } => None,
    };
    let tls = &options.tls;
    [credentials, tls.ca_file.as_ref(), tls.cert_file.as_ref(), tls.key_file.as_ref()]
        .into_iter()
        .flatten()
        .cloned()
        .collect()
}

/// A file's bytes.
pub(super) fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    if std::fs::metadata(file)?.len() > MAX_BYTES {
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "more than 1 MiB"));
    }
    std::fs::read(file)
}
