//! A lease as one coordinator sees it.

use std::{fmt, sync::Arc, time::Duration};
use wh_types::{Entropy, Mono};

/// Names one coordinator's life: drawn at its start, never used again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(Arc<str>);

impl Session {
    /// A fresh one, of 64 random bits.
    #[must_use]
    pub fn draw(entropy: &dyn Entropy) -> Self {
        Self(format!("{:016x}", entropy.next_u64()).into())
    }

    /// As it is stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Session {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A lease as it is stored, and when it lapses for whoever looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Who says to hold it: a name for people.
    pub holder: String,
    /// Which life of which coordinator holds it.
    pub session: Session,
    /// How long it lasts unrenewed.
    pub duration: Duration,
    /// What the holder says with it.
    pub note: String,
    /// Whose lapsed lease it took over.
    pub over: Option<Session>,
    /// The store's count of its last change.
    pub revision: u64,
    /// When it lapses on this coordinator's clock, unless it is renewed. `None`: not by time.
    pub lapses: Option<Mono>,
}

impl Seen {
    /// Whether it counts as held at a moment.
    #[must_use]
    pub fn is_live(&self, now: Mono) -> bool {
        self.lapses.is_none_or(|lapses| now < lapses)
    }
}
