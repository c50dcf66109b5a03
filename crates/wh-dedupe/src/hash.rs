//! What a key's text is to stores with little room: sixteen uniform bytes.

use std::hash::{Hash, Hasher};

/// The first 16 bytes of the SHA-256 of a key's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyHash(pub(crate) [u8; 16]);

impl KeyHash {
    pub(crate) fn halves(self) -> (u64, u64) {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.0;
        (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes([i, j, k, l, m, n, o, p]))
    }
}

impl Hash for KeyHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (low, high) = self.halves();
        state.write_u64(low);
        state.write_u64(high);
    }
}
