//! The names in the store. Versions of a tenant share a hash tag, so that a cluster keeps them together and one request
//! reads them all; answers have none and spread.

use crate::name::Name;
use std::fmt::Write as _;
use wh_types::Tenant;

/// The name of a version.
pub(super) fn version(prefix: &str, name: &Name) -> String {
    match name {
        Name::Tenant(tenant) => format!("{prefix}:{{{tenant}}}:T"),
        Name::Table(tenant, table) => format!("{prefix}:{{{tenant}}}:B:{}", escape(table.as_str())),
        Name::Scope(tenant, table, scope) => {
            format!("{prefix}:{{{tenant}}}:S:{}:{}", escape(table.as_str()), escape(scope.as_str()))
        }
    }
}

/// The name of an answer.
pub(super) fn answer(prefix: &str, tenant: &Tenant, slot: &[u8; 32]) -> String {
    let mut name = format!("{prefix}:q:{tenant}:");
    hex(&mut name, slot);
    name
}

/// The name of what a member writes to see whether it can.
pub(crate) fn probe(prefix: &str) -> String {
    format!("{prefix}:probe")
}

fn hex(to: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // writing to a string does not fail
        _ = write!(to, "{byte:02x}");
    }
}

/// Keeps letters, digits, `_` and `-`; every other byte is `%XX`.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => escaped.push(char::from(byte)),
            other => _ = write!(escaped, "%{other:02X}"),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;
    use wh_types::Table;

    #[test]
    fn names_are_escaped_and_versions_of_a_tenant_share_a_tag() {
        let (tenant, table) = (Tenant::new("acme-1").unwrap(), Table::new("a{b}:ü").unwrap());
        let scope = Scope::new("x:y").unwrap();
        assert_eq!(version("wh", &Name::Tenant(tenant.clone())), "wh:{acme-1}:T");
        assert_eq!(version("wh", &Name::Table(tenant.clone(), table.clone())), "wh:{acme-1}:B:a%7Bb%7D%3A%C3%BC");
        let whole = Name::Scope(tenant.clone(), table.clone(), Scope::default());
        assert_eq!(version("wh", &whole), "wh:{acme-1}:S:a%7Bb%7D%3A%C3%BC:");
        let part = Name::Scope(tenant.clone(), table, scope);
        assert_eq!(version("wh", &part), "wh:{acme-1}:S:a%7Bb%7D%3A%C3%BC:x%3Ay");
        let name = answer("wh", &tenant, &[0xab; 32]);
        assert_eq!(name, format!("wh:q:acme-1:{}", "ab".repeat(32)));
    }
}
