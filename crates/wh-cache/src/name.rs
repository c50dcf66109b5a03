//! The names that have a version: what ties a read to the writes that end it.

use crate::{Change, Key, Read, Scope, View, What, key};
use wh_types::{Table, Tenant};

/// Something that has a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Name {
    Tenant(Tenant),
    Table(Tenant, Table),
    Scope(Tenant, Table, Scope),
}

#[cfg(any(feature = "redis", feature = "sim"))]
impl Name {
    pub(crate) fn tenant(&self) -> &Tenant {
        match self {
            Self::Tenant(tenant) | Self::Table(tenant, _) | Self::Scope(tenant, ..) => tenant,
        }
    }
}

impl View {
    /// Everything whose version it depends on, in an order that the view fixes.
    pub(crate) fn names(&self) -> Vec<Name> {
        let mut names = vec![Name::Tenant(self.tenant().clone())];
        let mut last = None;
        for Read { table, scope } in self.reads() {
            if last != Some(table) {
                names.push(Name::Table(self.tenant().clone(), table.clone()));
            }
            names.push(Name::Scope(self.tenant().clone(), table.clone(), scope.clone()));
            last = Some(table);
        }
        names
    }

    /// What the answer of a key is kept under.
    pub(crate) fn slot(&self, key: &Key) -> [u8; 32] {
        let reads =
            self.reads().iter().flat_map(|read| [read.table.as_str().as_bytes(), read.scope.as_str().as_bytes()]);
        key::digest([self.tenant().as_str().as_bytes(), key.as_bytes()].into_iter().chain(reads))
    }
}

impl Change {
    /// Everything whose version it ends.
    pub(crate) fn names(&self) -> Vec<Name> {
        let tenant = self.tenant.clone();
        match &self.what {
            What::Tenant => vec![Name::Tenant(tenant)],
            What::Table(table) => vec![Name::Table(tenant, table.clone())],
            What::Scope(table, scope) => {
                let mut names = vec![Name::Scope(tenant.clone(), table.clone(), scope.clone())];
                if !scope.as_str().is_empty() {
                    names.push(Name::Scope(tenant, table.clone(), Scope::default()));
                }
                names
            }
        }
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
    fn order_and_repetition_do_not_matter_and_a_table_is_named_once() {
        let one = View::new(tenant(), [read("b", ""), read("a", "x"), read("a", ""), read("b", "")]).unwrap();
        let other = View::new(tenant(), [read("a", ""), read("a", "x"), read("b", "")]).unwrap();
        let key = Key::of([&b"q"[..]]);
        assert_eq!((&one, one.slot(&key)), (&other, other.slot(&key)));
        let names = one.names();
        assert_eq!(names.len(), 6, "{names:?}");
        assert_eq!(names.iter().filter(|name| matches!(name, Name::Table(..))).count(), 2);
    }

    #[test]
    fn what_a_write_changes_meets_what_depends_on_it() {
        let table = Table::new("a").unwrap();
        let depends = |reads: Vec<Read>, change: &Change| {
            let names = View::new(tenant(), reads).unwrap().names();
            change.names().iter().any(|name| names.contains(name))
        };
        let x = Change::scope(tenant(), table.clone(), Scope::new("x").unwrap());
        assert!(depends(vec![read("a", "x")], &x) && depends(vec![read("a", "")], &x));
        assert!(!depends(vec![read("a", "y")], &x) && !depends(vec![read("b", "x")], &x) && !depends(vec![], &x));
        let all = Change::table(tenant(), table);
        assert!(depends(vec![read("a", "x")], &all) && depends(vec![read("a", "")], &all));
        assert!(depends(vec![], &Change::tenant(tenant())));
    }
}
