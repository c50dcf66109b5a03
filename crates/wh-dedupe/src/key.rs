//! The name of a row: tenant, table and id, in a text that no other row has.

use crate::{Error, Kind, Result, hash::KeyHash};
use sha2::{Digest as _, Sha256};
use std::{fmt, sync::Arc};
use wh_types::{Table, Tenant};

/// Most bytes of an escaped id that is kept as it is; a longer one is replaced by its hash.
pub const LONGEST_ID: usize = 1_024;
/// Most bytes of an `Idempotency-Key`.
pub const MAX_IDEMPOTENCY_KEY: usize = 255;

/// The keys of one tenant and table.
#[derive(Clone, Debug)]
pub struct Scope(String);

impl Scope {
    /// `<tenant>/<table>/`, escaped.
    #[must_use]
    pub fn new(tenant: &Tenant, table: &Table) -> Self {
        let mut prefix = format!("{tenant}/");
        escape(&mut prefix, table.as_str());
        prefix.push('/');
        Self(prefix)
    }

    /// The key of an event with this id: `<tenant>/<table>/<id>`. An id whose escaped form is longer than [`LONGEST_ID`]
    /// is stored as `#<sha256 hex>`, which no other id's escaped form can be.
    ///
    /// # Errors
    /// Invalid: the id is empty, which is no id.
    pub fn event(&self, id: &str) -> Result<Key> {
        if id.is_empty() {
            return Err(Error::new("key", Kind::Invalid("an id must not be empty".into())));
        }
        let mut text = String::with_capacity(self.0.len() + id.len() + 8);
        text.push_str(&self.0);
        // an id grows to three times its length at most: what is longer without is longer with
        if id.len() <= LONGEST_ID {
            escape(&mut text, id);
        }
        if id.len() > LONGEST_ID || text.len() - self.0.len() > LONGEST_ID {
            text.truncate(self.0.len());
            text.push('#');
            hex(&mut text, &Sha256::digest(id.as_bytes()));
        }
        Ok(Key::of(text))
    }

    /// Whether [`Scope::event`] stores the hash of this id, and not the id.
    #[must_use]
    pub fn hashes(id: &str) -> bool {
        let escaped: usize = id.bytes().map(|byte| if plain(byte) { 1 } else { 3 }).sum();
        escaped > LONGEST_ID
    }

    /// The key of the `index`th record of a request with this `Idempotency-Key`: `<tenant>/<table>/!<key>/<index>`. No
    /// event has such a key: `!` is escaped in ids.
    ///
    /// # Errors
    /// Invalid: the key is empty or has more than [`MAX_IDEMPOTENCY_KEY`] bytes.
    pub fn idempotency(&self, key: &str, index: u64) -> Result<Key> {
        if key.is_empty() || key.len() > MAX_IDEMPOTENCY_KEY {
            let why = format!("an Idempotency-Key has 1 to {MAX_IDEMPOTENCY_KEY} bytes, this one has {}", key.len());
            return Err(Error::new("key", Kind::Invalid(why.into())));
        }
        let mut text = String::with_capacity(self.0.len() + key.len() + 16);
        text.push_str(&self.0);
        text.push('!');
        escape(&mut text, key);
        text.push('/');
        text.push_str(&index.to_string());
        Ok(Key::of(text))
    }
}

/// A row's name in the store. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    text: Arc<str>,
    hash: KeyHash,
}

impl Key {
    fn of(text: String) -> Self {
        let mut hash = [0; 16];
        hash.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
        Self { text: text.into(), hash: KeyHash(hash) }
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first 16 bytes of the SHA-256 of its text: what stores with little room keep of it.
    #[must_use]
    pub fn hash(&self) -> [u8; 16] {
        self.hash.0
    }

    #[cfg(any(feature = "dynamodb", feature = "log", feature = "sim", feature = "sled"))]
    pub(crate) fn short(&self) -> KeyHash {
        self.hash
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

fn escape(out: &mut String, mut text: &str) {
    // most ids have nothing to escape
    while let Some(at) = text.bytes().position(|byte| !plain(byte)) {
        let (before, rest) = text.split_at(at);
        out.push_str(before);
        let mut characters = rest.chars();
        let first = characters.next().map_or(0, char::len_utf8);
        for byte in rest.bytes().take(first) {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        text = characters.as_str();
    }
    out.push_str(text);
}

fn hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)].to_ascii_lowercase()));
        out.push(char::from(DIGITS[usize::from(byte & 15)].to_ascii_lowercase()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scope(tenant: &str, table: &str) -> Scope {
        Scope::new(&Tenant::new(tenant).unwrap(), &Table::new(table).unwrap())
    }

    #[test]
    fn keys_are_escaped_and_long_ids_are_hashed() {
        let clicks = scope("acme", "a.b/c");
        assert_eq!(clicks.event("x-1_y").unwrap().as_str(), "acme/a%2Eb%2Fc/x-1_y");
        assert_eq!(clicks.event("ä/#!").unwrap().as_str(), "acme/a%2Eb%2Fc/%C3%A4%2F%23%21");
        assert_eq!(clicks.idempotency("a/b", 7).unwrap().as_str(), "acme/a%2Eb%2Fc/!a%2Fb/7");
        let (edge, over) = ("x".repeat(1_024), "x".repeat(1_025));
        assert!(clicks.event(&edge).unwrap().as_str().ends_with(&edge) && !Scope::hashes(&edge));
        let hashed = clicks.event(&over).unwrap();
        assert_eq!(hashed.as_str().len(), "acme/a%2Eb%2Fc/#".len() + 64);
        assert!(Scope::hashes(&over) && Scope::hashes(&"/".repeat(342)) && !Scope::hashes(&"/".repeat(341)));
        assert!(clicks.event(&"/".repeat(342)).unwrap().as_str().contains('#'));
        assert!(!clicks.event(&"/".repeat(341)).unwrap().as_str().contains('#'));
    }

    #[test]
    fn no_id_and_no_idempotency_key_is_refused() {
        assert!(scope("t", "u").event("").is_err());
        assert!(scope("t", "u").idempotency("", 0).is_err());
        assert!(scope("t", "u").idempotency(&"k".repeat(255), 0).is_ok());
        assert!(scope("t", "u").idempotency(&"k".repeat(256), 0).is_err());
    }

    #[test]
    fn the_hash_is_the_first_half_of_sha256() {
        // printf '0/t/a' | sha256sum
        let key = scope("0", "t").event("a").unwrap();
        let mut text = String::new();
        hex(&mut text, &key.hash());
        let mut whole = String::new();
        hex(&mut whole, &Sha256::digest(b"0/t/a"));
        assert_eq!(text, whole[..32]);
    }

    proptest! {
        #[test]
        fn two_rows_never_share_a_key(
            a in ("[A-Za-z0-9_-]{1,4}", "[^\0]{1,6}", "\\PC{1,6}", 0_u64..3),
            b in ("[A-Za-z0-9_-]{1,4}", "[^\0]{1,6}", "\\PC{1,6}", 0_u64..3),
        ) {
            let keys = |(tenant, table, id, n): &(String, String, String, u64)| {
                let scope = scope(tenant, table);
                [scope.event(id).unwrap(), scope.idempotency(id, *n).unwrap()]
            };
            let (one, two) = (keys(&a), keys(&b));
            prop_assert_ne!(&one[0], &one[1]);
            prop_assert_ne!(&one[0], &two[1]);
            prop_assert_eq!(one[0] == two[0], (&a.0, &a.1, &a.2) == (&b.0, &b.1, &b.2));
            prop_assert_eq!(one[1] == two[1], a == b);
        }
    }
}
