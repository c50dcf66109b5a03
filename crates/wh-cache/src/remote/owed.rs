//! Invalidations that are not known to have landed. Pure.
//!
//! While one is here, this process is not served what it would end. Too many are exchanged for one of each tenant.

use crate::{View, name::Name};
use std::collections::BTreeMap;

/// Most that are kept one by one.
pub(super) const MOST: usize = 100_000;

/// Which time something was owed: a later debt is not paid by an earlier write.
pub(super) type Turn = u64;

#[derive(Debug, Default)]
pub(super) struct Owed {
    names: BTreeMap<Name, Turn>,
    turn: Turn,
}

impl Owed {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Owes these; gives the turn under which they are paid.
    pub(super) fn owe(&mut self, names: impl IntoIterator<Item = Name>) -> Turn {
        self.turn += 1;
        for name in names {
            self.names.insert(name, self.turn);
        }
        if self.names.len() > MOST {
            let names = std::mem::take(&mut self.names);
            self.names.extend(names.into_keys().map(|name| (Name::Tenant(name.tenant().clone()), self.turn)));
        }
        self.turn
    }

    /// It was written by a write that was begun in this turn.
    pub(super) fn paid(&mut self, name: &Name, turn: Turn) {
        if self.names.get(name).is_some_and(|owed| *owed <= turn) {
            self.names.remove(name);
        }
    }

    /// Whether it, or all of its tenant, is owed from this turn or before.
    pub(super) fn owes(&self, name: &Name, turn: Turn) -> bool {
        let owed = |name: &Name| self.names.get(name).is_some_and(|owed| *owed <= turn);
        owed(name) || owed(&Name::Tenant(name.tenant().clone()))
    }

    /// Whether something that a view depends on is owed.
    pub(super) fn touches(&self, view: &View) -> bool {
        !self.names.is_empty() && view.names().iter().any(|name| self.names.contains_key(name))
    }

    /// Some of them, and the turn in which they are paid now.
    pub(super) fn some(&self, most: usize) -> (Vec<Name>, Turn) {
        (self.names.keys().take(most).cloned().collect(), self.turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Read;
    use wh_types::{Table, Tenant};

    fn table(tenant: &str, table: &str) -> Name {
        Name::Table(Tenant::new(tenant).unwrap(), Table::new(table).unwrap())
    }

    fn view(tenant: &str, table: &str) -> View {
        View::new(Tenant::new(tenant).unwrap(), [Read::from(Table::new(table).unwrap())]).unwrap()
    }

    #[test]
    fn a_debt_is_not_paid_by_a_write_from_before() {
        let mut owed = Owed::default();
        let first = owed.owe([table("t", "a")]);
        let second = owed.owe([table("t", "a")]);
        owed.paid(&table("t", "a"), first);
        assert!(owed.touches(&view("t", "a")) && !owed.touches(&view("t", "b")));
        owed.paid(&table("t", "a"), second);
        assert!(!owed.touches(&view("t", "a")) && owed.len() == 0);
    }

    #[test]
    fn too_many_become_one_of_each_tenant() {
        let mut owed = Owed::default();
        let names = |tenant: &'static str, count: usize| (0..count).map(move |n| table(tenant, &format!("t{n}")));
        owed.owe(names("a", MOST));
        assert_eq!(owed.len(), MOST);
        let turn = owed.owe(names("b", 1));
        assert_eq!(owed.len(), 2);
        assert!(owed.touches(&view("a", "never written")) && owed.owes(&table("b", "t0"), turn));
        let (some, _) = owed.some(10);
        some.iter().for_each(|name| owed.paid(name, turn));
        assert_eq!(owed.len(), 0);
    }
}
