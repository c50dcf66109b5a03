//! A topology seen in answers that were kept as text. Reading the files is the caller's.

use super::{ObserveError, Observed, Observer};
use crate::{Role, Spec};
use async_trait::async_trait;
use wh_types::Class;

/// Answers, each with the name of where it was kept.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    texts: Vec<(String, String)>,
}

/// A kept answer cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} {problem}")]
pub struct CapturedError {
    /// Where it was kept.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Captured {
    /// Takes texts with the names of where they were kept.
    #[must_use]
    pub fn new(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { texts: texts.into_iter().collect() }
    }

    /// What all of them say together.
    ///
    /// # Errors
    /// [`CapturedError`]: the first that cannot be read.
    pub fn read(&self) -> Result<Observed, CapturedError> {
        let mut observed = Observed::default();
        for (name, text) in &self.texts {
            observed.read(text).map_err(|problem| CapturedError { name: name.clone(), problem })?;
        }
        match observed.missing_pages() {
            Some(problem) => Err(CapturedError { name: "the answers together".to_owned(), problem }),
            None => Ok(observed),
        }
    }
}

#[async_trait]
impl Observer for Captured {
    async fn observe(&self, _spec: &Spec, _role: Role) -> Result<Observed, ObserveError> {
        self.read().map_err(|error| ObserveError {
            class: Class::Invalid,
            what: "the kept answers cannot be read".to_owned(),
            source: Some(Box::new(error)),
        })
    }
}
