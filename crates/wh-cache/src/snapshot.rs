//! How things stood when a query began to read.

use crate::View;
use std::sync::Arc;

/// The versions of everything that a view depends on, at one moment before its tables are read.
///
/// What is put under it is never served once one of the versions has moved. One that could not be taken is *blind*:
/// nothing can be put under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    view: View,
    versions: Option<Arc<[u64]>>,
}

impl Snapshot {
    /// A snapshot under which nothing is kept and nothing found.
    #[must_use]
    pub fn blind(view: &View) -> Self {
        Self { view: view.clone(), versions: None }
    }

    /// Of versions in the order of the view's names.
    #[cfg(any(feature = "memory", feature = "redis", feature = "sim"))]
    pub(crate) fn new(view: &View, versions: Vec<u64>) -> Self {
        Self { view: view.clone(), versions: Some(versions.into()) }
    }

    /// What it is of.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether nothing can be put under it.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.versions.is_none()
    }

    #[cfg(any(feature = "memory", feature = "redis", feature = "sim"))]
    pub(crate) fn versions(&self) -> Option<&Arc<[u64]>> {
        self.versions.as_ref()
    }
}
