//! Where a secret comes from. The file is read by whoever uses it, so that a changed file is seen (decision D18).

use std::path::{Path, PathBuf};
use wh_types::{Secret, SecretFileError};

/// Where a secret comes from.
#[derive(Clone, Debug, Default)]
pub enum SecretSource {
    /// There is none.
    #[default]
    Absent,
    /// It was given itself.
    Given(Secret),
    /// It is in this file.
    File(PathBuf),
}

impl SecretSource {
    /// The secret as it is now. `None` when there is none, or when its file is empty.
    ///
    /// # Errors
    /// The file cannot be read; the error names it.
    pub fn read(&self) -> Result<Option<Secret>, SecretFileError> {
        let secret = match self {
            Self::Absent => return Ok(None),
            Self::Given(secret) => secret.clone(),
            Self::File(path) => Secret::read(path)?,
        };
        Ok((!secret.is_empty()).then_some(secret))
    }

    /// The file to watch for changes.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Absent | Self::Given(_) => None,
        }
    }
}
