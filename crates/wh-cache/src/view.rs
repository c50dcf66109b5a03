//! What a query reads and what a write changes.
//!
//! A tenant, a table and a part of a table (a *scope*) have a version each. Whoever reads a scope depends on all three;
//! the empty scope is the view of the whole table, which a write to any scope changes too.

use crate::{Error, Kind, Result};
use std::sync::Arc;
use wh_types::{Table, Tenant};

/// Most tables (with their scopes) that one answer may depend on.
pub const MAX_READS: usize = 64;
/// The longest scope, in bytes.
pub const MAX_SCOPE: usize = 256;

/// A part of a table that is read and written apart from others, by a name that the caller chooses. Empty: all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Arc<str>);

impl Scope {
    /// Takes a name of at most [`MAX_SCOPE`] bytes.
    ///
    /// # Errors
    /// Invalid: it is longer.
    pub fn new(text: &str) -> Result<Self> {
        if text.len() <= MAX_SCOPE {
            return Ok(Self(text.into()));
        }
        Err(Error::new("scope", Kind::Invalid(format!("{} bytes are over {MAX_SCOPE}", text.len()).into())))
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One table that an answer depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Read {
    /// The table.
    pub table: Table,
    /// What of it.
    pub scope: Scope,
}

impl From<Table> for Read {
    /// All of it.
    fn from(table: Table) -> Self {
        Self { table, scope: Scope::default() }
    }
}

/// Whose answer it is and everything that it depends on. Two with the same reads in another order are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    tenant: Tenant,
    reads: Arc<[Read]>,
}

impl View {
    /// What an answer of this tenant depends on: these tables, and the tenant itself. Without any table only time and
    /// the tenant's end end it.
    ///
    /// # Errors
    /// Invalid: more than [`MAX_READS`].
    pub fn new(tenant: Tenant, reads: impl IntoIterator<Item = Read>) -> Result<Self> {
        let mut reads: Vec<_> = reads.into_iter().collect();
        reads.sort_unstable();
        reads.dedup();
        if reads.len() <= MAX_READS {
            return Ok(Self { tenant, reads: reads.into() });
        }
        Err(Error::new("view", Kind::Invalid(format!("{} tables are over {MAX_READS}", reads.len()).into())))
    }

    /// Whose it is.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// What it reads, sorted, nothing twice.
    #[must_use]
    pub fn reads(&self) -> &[Read] {
        &self.reads
    }
}

/// What a write changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Change {
    /// Whose.
    pub tenant: Tenant,
    /// What of it.
    pub what: What,
}

/// How much of a tenant a write changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// All of it: also answers that read no table.
    Tenant,
    /// A table with all its scopes.
    Table(Table),
    /// A scope, and with it the view of the whole table. The empty scope is that view alone.
    Scope(Table, Scope),
}

impl Change {
    /// Everything of a tenant.
    #[must_use]
    pub fn tenant(tenant: Tenant) -> Self {
        Self { tenant, what: What::Tenant }
    }

    /// A table.
    #[must_use]
    pub fn table(tenant: Tenant, table: Table) -> Self {
        Self { tenant, what: What::Table(table) }
    }

    /// A scope of a table.
    #[must_use]
    pub fn scope(tenant: Tenant, table: Table, scope: Scope) -> Self {
        Self { tenant, what: What::Scope(table, scope) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(table: &str, scope: &str) -> Read {
        Read { table: Table::new(table).unwrap(), scope: Scope::new(scope).unwrap() }
    }

    fn tenant() -> Tenant {
        Tenant::new("t").unwrap()
    }

    #[test]
    fn bounds_are_said() {
        assert!(Scope::new(&"x".repeat(256)).is_ok());
        assert!(Scope::new(&"x".repeat(257)).unwrap_err().to_string().contains("257"));
        let many = |n: usize| View::new(tenant(), (0..n).map(|n| read(&format!("t{n}"), "")));
        assert!(many(64).is_ok());
        assert!(many(65).unwrap_err().to_string().contains("65"));
    }
}
