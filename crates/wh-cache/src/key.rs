//! What an answer is kept under, and for how long.

use sha2::{Digest as _, Sha256};
use std::{fmt, time::Duration};

/// What distinguishes one answer from every other of its tenant: a digest of everything it depends on but the data.
///
/// SQL text, typed parameters, format: whatever changes the bytes of the answer goes in. A role does not when its filters
/// are in the SQL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// Of parts in order. Each is framed by its length, so that no two lists of parts are the same key.
    #[must_use]
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self(digest(parts))
    }

    /// The digest itself.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// How long an answer may live that took so long to compute: a thousand times as long, 10 s at least, 1 h at most.
#[must_use]
pub fn ttl_for(took: Duration) -> Duration {
    took.saturating_mul(1_000).clamp(Duration::from_secs(10), Duration::from_secs(3_600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_framed() {
        let key = |parts: &[&str]| Key::of(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
        for other in [&["a", "bc"][..], &["abc"], &["ab", "c", ""], &[]] {
            assert_ne!(key(&["ab", "c"]), key(other), "{other:?}");
        }
    }

    #[test]
    fn dear_answers_live_longer_within_bounds() {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        assert_eq!([ms(0), ms(10), ms(90), s(2), s(9_000)].map(ttl_for), [s(10), s(10), s(90), s(2_000), s(3_600)]);
    }
}
