//! A password, key or token. Never shown.

use secrecy::{ExposeSecret, SecretString};
use std::{fmt, io, path::Path};

/// A secret text. `Debug` shows nothing; memory is wiped when it is dropped.
#[derive(Clone, Default, serde::Deserialize)]
pub struct Secret(SecretString);

/// A secret's file could not be used. Says which file and why, never what was in it.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}")]
pub struct SecretFileError {
    path: String,
    source: io::Error,
}

impl Secret {
    /// Longest secret, in bytes: a secret file that is larger is some other file.
    pub const MAX_BYTES: u64 = 64 * 1024;

    /// Reads a secret from a file; line ends at its end are cut.
    ///
    /// # Errors
    /// A [`SecretFileError`] naming the file.
    pub fn read(path: &Path) -> Result<Self, SecretFileError> {
        let fail = |source| SecretFileError { path: path.display().to_string(), source };
        if std::fs::metadata(path).map_err(fail)?.len() > Self::MAX_BYTES {
            return Err(fail(io::Error::new(io::ErrorKind::FileTooLarge, "a secret has at most 64 KiB")));
        }
        let text = std::fs::read_to_string(path).map_err(fail)?;
        Ok(Self::from(text.trim_end_matches(['\r', '\n'])))
    }

    /// The text itself. Give it to the wire, never to a log.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether there is nothing in it. An empty secret never matches anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(SecretString::from(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_shown_and_line_ends_are_cut() {
        let file = std::env::temp_dir().join(format!("wh-secret-{}", std::process::id()));
        std::fs::write(&file, "hush\r\n").unwrap();
        let secret = Secret::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(secret.expose(), "hush");
        assert_eq!(format!("{secret:?}"), "***");
        let missing = Secret::read(&file).unwrap_err().to_string();
        assert!(missing.contains("wh-secret-"), "{missing}");
    }
}
