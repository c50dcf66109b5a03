//! The pipes of a tenant: read whole, replaced whole.

use super::{document::Document, file, finding::PipeFinding, pipe::Pipe};
use arc_swap::ArcSwap;
use std::{collections::BTreeMap, sync::Arc};

/// The pipes of one file. Immutable.
#[derive(Debug, Default)]
pub struct PipeSet(BTreeMap<String, Arc<Pipe>>);

impl PipeSet {
    /// Largest file, in bytes. A larger one is refused unread.
    pub const MAX_BYTES: usize = 8 << 20;
    /// Most pipes of one file.
    pub const MAX_PIPES: usize = 1_000;

    /// Reads the text of a `pipes.json`. With a set come the warnings there are.
    ///
    /// # Errors
    /// The file cannot be used: everything that is wrong with it, each with its place.
    pub fn parse(text: &[u8]) -> Result<(Self, Vec<PipeFinding>), Vec<PipeFinding>> {
        if text.len() > Self::MAX_BYTES {
            let problem = format!("the file is larger than {} MiB", Self::MAX_BYTES >> 20);
            return Err(vec![PipeFinding { place: String::new(), line: 1, problem, warning: false }]);
        }
        let (mut document, root) = Document::read(text).map_err(|fault| vec![fault])?;
        let pipes = file::pipes(&mut document, &root);
        match document.findings.finish() {
            (findings, true) => Err(findings),
            (warnings, false) => Ok((Self(pipes), warnings)),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<Pipe>> {
        self.0.get(name)
    }

    /// In the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Pipe>> {
        self.0.values()
    }
}

/// The pipes of a tenant as they are now. Cloning shares them; they can be replaced while running, from the next request on.
#[derive(Clone, Debug, Default)]
pub struct Pipes(Arc<ArcSwap<PipeSet>>);

impl Pipes {
    /// These.
    #[must_use]
    pub fn new(set: PipeSet) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(set)))
    }

    /// Replaces them. A call that is at work goes on with what it began.
    pub fn set(&self, set: PipeSet) {
        self.0.store(Arc::new(set));
    }

    /// How many there are now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.load().len()
    }

    /// Whether there is none now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.load().is_empty()
    }

    pub(super) fn load(&self) -> Arc<PipeSet> {
        self.0.load_full()
    }
}
