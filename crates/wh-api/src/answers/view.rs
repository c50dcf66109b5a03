//! What an answer depends on, in the names of the cache. Pure.

use wh_cache::{MAX_READS, Read, View};
use wh_clickhouse::{Reads, TableRef, sql::quoted};
use wh_types::{Table, Tenant};

/// A table in the names of a tenant: its own by its name, another database's by both. `None`: it has no name that fits.
pub(super) fn name(own: &str, table: &TableRef) -> Option<Table> {
    if table.database == own {
        return Table::new(&table.name).ok();
    }
    Table::new(&format!("{}.{}", quoted(&table.database), quoted(&table.name))).ok()
}

/// What an answer depends on, and whether that is all that it reads.
pub(super) fn of(tenant: &Tenant, own: &str, reads: &Reads) -> Option<(View, bool)> {
    let mut all = reads.tables.len() <= MAX_READS;
    let names = reads.tables.iter().take(MAX_READS).filter_map(|table| {
        let name = name(own, table);
        all &= name.is_some();
        name
    });
    let names: Vec<Read> = names.map(Read::from).collect();
    View::new(tenant.clone(), names).ok().map(|view| (view, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_other_databases_have_names_of_their_own() {
        let named =
            |database: &str, table: &str| name("own", &TableRef::new(database, table)).map(|name| name.to_string());
        assert_eq!(named("own", "o.t").as_deref(), Some("o.t"));
        assert_eq!(named("o", "t").as_deref(), Some("`o`.`t`"));
        assert_eq!(named(&"o".repeat(200), &"t".repeat(200)), None);
        let reads = |tables: Vec<TableRef>| Reads { tables: tables.into_iter().collect(), tracked: true, steady: true };
        let of = |tables| of(&Tenant::default(), "own", &reads(tables)).map(|(view, all)| (view.reads().len(), all));
        assert_eq!(of(vec![TableRef::new("own", "a"), TableRef::new("o", "a")]), Some((2, true)));
        assert_eq!(of(vec![TableRef::new("o".repeat(300), "a")]), Some((0, false)));
        let many = (0..=MAX_READS).map(|n| TableRef::new("own", format!("t{n}")));
        assert_eq!(of(many.collect()), Some((MAX_READS, false)));
    }
}
