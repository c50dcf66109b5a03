//! A tenant's id. Not its settings.

use std::{fmt, str::FromStr, sync::Arc};

/// A tenant: 1–64 of `[A-Za-z0-9_-]`, so that it is its own escaped form in subjects and keys. Default `0`.
///
/// Cloning is cheap (a reference count).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(Arc<str>);

/// Why a text is no tenant id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TenantError {
    /// The text is empty.
    #[error("a tenant id must not be empty")]
    Empty,
    /// The text has more than 64 bytes.
    #[error("a tenant id has at most 64 characters, this one has {0}")]
    TooLong(usize),
    /// The text has a character outside the grammar.
    #[error("a tenant id may hold letters, digits, '_' and '-', not {0:?}")]
    Character(char),
}

impl Tenant {
    /// Longest tenant id, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Checks the grammar.
    ///
    /// # Errors
    /// A [`TenantError`] that names what is wrong.
    pub fn new(text: &str) -> Result<Self, TenantError> {
        if text.is_empty() {
            return Err(TenantError::Empty);
        }
        if let Some(bad) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))) {
            return Err(TenantError::Character(bad));
        }
        if text.len() > Self::MAX_BYTES {
            return Err(TenantError::TooLong(text.len()));
        }
        Ok(Self(text.into()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Self("0".into())
    }
}

impl FromStr for Tenant {
    type Err = TenantError;
    fn from_str(text: &str) -> Result<Self, TenantError> {
        Self::new(text)
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_checked_and_the_reason_named() {
        assert_eq!(Tenant::new("acme_1-X").unwrap().as_str(), "acme_1-X");
        assert_eq!(Tenant::new(""), Err(TenantError::Empty));
        assert_eq!(Tenant::new("a.b"), Err(TenantError::Character('.')));
        assert_eq!(Tenant::new(&"x".repeat(65)), Err(TenantError::TooLong(65)));
        assert!(Tenant::new(&"x".repeat(64)).is_ok());
        assert_eq!(Tenant::default().as_str(), "0");
    }
}
