//! The topic key: tenant and table as subject tokens, the same in the queue, the history and the dead letters.

use crate::{Table, Tenant};
use std::{fmt, fmt::Write};

/// `<tenant>.<escaped table>[.<scope>]`, the tail of every subject of a table.
///
/// Escaping keeps `[A-Za-z0-9_-]` and writes every other byte as `%XX` (upper hex); reading accepts either hex case
/// and passes any other byte through. The scope is reserved and empty today. Source: `spec` 1.1 of the queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicKey {
    tenant: Tenant,
    table: Table,
    scope: Option<String>,
}

impl TopicKey {
    /// The key of a table without a scope.
    #[must_use]
    pub fn new(tenant: Tenant, table: Table) -> Self {
        Self { tenant, table, scope: None }
    }

    /// Whose table it is.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The scope, where a subject had one.
    #[must_use]
    pub fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// Reads the tail of a subject.
    ///
    /// Two or three tokens are tenant, table and optional scope; one token is a table of the default tenant (from
    /// before there were tenants). Anything else is a table of no tenant and gives `None`: no row of ours has it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut tokens = text.split('.');
        let (first, second, third, rest) = (tokens.next()?, tokens.next(), tokens.next(), tokens.next());
        if rest.is_some() {
            return None;
        }
        let Some(second) = second else {
            return Some(Self::new(Tenant::default(), Table::new(&unescape(first)?).ok()?));
        };
        let scope = match third {
            Some(scope) if !scope.is_empty() => Some(unescape(scope)?),
            _ => None,
        };
        Some(Self { tenant: Tenant::new(first).ok()?, table: Table::new(&unescape(second)?).ok()?, scope })
    }
}

impl fmt::Display for TopicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.tenant)?;
        escape_into(f, self.table.as_str())?;
        if let Some(scope) = &self.scope {
            f.write_char('.')?;
            escape_into(f, scope)?;
        }
        Ok(())
    }
}

fn escape_into(out: &mut impl Write, text: &str) -> fmt::Result {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            out.write_char(char::from(byte))?;
        } else {
            write!(out, "%{byte:02X}")?;
        }
    }
    Ok(())
}

/// `None` where the bytes are not UTF-8, which no escaped name of ours is.
fn unescape(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |i: usize| bytes.get(i).and_then(|b| char::from(*b).to_digit(16));
        match (bytes[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 3;
            }
            (other, _, _) => {
                out.push(other);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(tenant: &str, table: &str) -> TopicKey {
        TopicKey::new(Tenant::new(tenant).unwrap(), Table::new(table).unwrap())
    }

    #[test]
    fn names_are_escaped_as_the_reference_says() {
        assert_eq!(key("0", "clicks").to_string(), "0.clicks");
        assert_eq!(key("acme", "a.b*c> d%e").to_string(), "acme.a%2Eb%2Ac%3E%20d%25e");
        assert_eq!(key("tenant-1", "événements").to_string(), "tenant-1.%C3%A9v%C3%A9nements");
    }

    #[test]
    fn subjects_are_read_back() {
        assert_eq!(TopicKey::parse("acme.a%2eb%2Ac"), Some(key("acme", "a.b*c")), "either hex case");
        assert_eq!(TopicKey::parse("clicks"), Some(key("0", "clicks")), "before there were tenants");
        assert_eq!(TopicKey::parse("acme.t.s%20x").unwrap().scope(), Some("s x"));
        assert_eq!(TopicKey::parse("acme.100%").unwrap().table().as_str(), "100%", "other bytes pass through");
        for bad in ["", "a.b.c.d", "a b.t", "acme.", "acme.%FF"] {
            assert_eq!(TopicKey::parse(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn every_key_survives_the_round_trip(tenant in "[A-Za-z0-9_-]{1,64}", table in "[^\0]{1,60}") {
            let key = key(&tenant, &table);
            let text = key.to_string();
            prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.%".contains(&b)));
            prop_assert_eq!(TopicKey::parse(&text), Some(key));
        }
    }
}
