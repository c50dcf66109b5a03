//! The tables that are more than their own rows, as `system.tables` has them. Pure.

use super::{
    TableRef,
    definition::{Made, Said},
};
use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

/// One table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) made: Made,
    /// What an insert into it is pushed on to.
    pub(super) dependents: Vec<TableRef>,
}

/// Entries by their tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Catalogue(HashMap<TableRef, Entry>);

/// The columns that are asked for. Texts that are not UTF-8 would break the JSON.
pub(super) const COLUMNS: &str = "toValidUTF8(database), toValidUTF8(name), engine, toValidUTF8(engine_full), \
    toValidUTF8(create_table_query), toValidUTF8(as_select), arrayMap(x -> toValidUTF8(x), dependencies_database), \
    arrayMap(x -> toValidUTF8(x), dependencies_table)";

type Row<'a> = (
    Cow<'a, str>,
    Cow<'a, str>,
    Cow<'a, str>,
    Cow<'a, str>,
    Cow<'a, str>,
    Cow<'a, str>,
    Vec<Cow<'a, str>>,
    Vec<Cow<'a, str>>,
);

impl Catalogue {
    /// Reads an answer of [`COLUMNS`] in `JSONCompactEachRow`.
    pub(super) fn parse(answer: &[u8]) -> Result<Self, String> {
        let mut all = HashMap::new();
        for line in answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let row: Row<'_> =
                serde_json::from_slice(line).map_err(|cause| format!("a row of system.tables: {cause}"))?;
            let (database, name, engine, engine_full, create, select, databases, tables) = row;
            let made = Made::of(Said {
                database: &database,
                engine: &engine,
                engine_full: &engine_full,
                create: &create,
                select: &select,
            });
            let dependents = databases.iter().zip(&tables).map(|(database, name)| TableRef::new(&**database, &**name));
            let dependents = dependents.collect();
            all.insert(TableRef::new(database, name), Entry { made, dependents });
        }
        Ok(Self(all))
    }

    pub(super) fn get(&self, table: &TableRef) -> Option<&Entry> {
        self.0.get(table)
    }

    /// The tables that rows reach some time after the insert that brought them: behind a buffer, and where a view is made
    /// anew now and then. And the clusters that distributed tables are on, with what they write to.
    pub(super) fn late(&self) -> (BTreeSet<TableRef>, Vec<(String, TableRef)>) {
        let (mut late, mut distributed) = (BTreeSet::new(), Vec::new());
        for (own, entry) in &self.0 {
            match &entry.made {
                Made::Buffer(target) => drop(late.insert(target.clone())),
                Made::Materialized { target, refreshed: true } => {
                    late.extend([own.clone()].into_iter().chain(target.clone()));
                }
                Made::Distributed { cluster, table } => distributed.push((cluster.clone(), table.clone())),
                Made::Plain | Made::View(_) | Made::Materialized { .. } | Made::Merge { .. } | Made::Foreign => {}
            }
        }
        (late, distributed)
    }

    /// Every table that an insert into these changes, as far as it is known here.
    pub(super) fn pushed_on(&self, tables: BTreeSet<TableRef>) -> BTreeSet<TableRef> {
        let mut next: Vec<TableRef> = tables.iter().cloned().collect();
        let mut all = tables;
        while let Some(table) = next.pop() {
            let entry = self.0.get(&table);
            let new = entry.into_iter().flat_map(Entry::pushes).filter(|table| all.insert(table.clone()));
            next.extend(new.collect::<Vec<_>>());
        }
        all
    }
}

impl Entry {
    /// What an insert into it changes next.
    pub(super) fn pushes(&self) -> impl Iterator<Item = TableRef> + '_ {
        let target = match &self.made {
            Made::Materialized { target, .. } => target.as_ref(),
            Made::Buffer(target) | Made::Distributed { table: target, .. } => Some(target),
            Made::Plain | Made::View(_) | Made::Merge { .. } | Made::Foreign => None,
        };
        self.dependents.iter().chain(target).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_entries_and_what_comes_late_is_named() {
        let rows = r#"["d","b","Buffer","Buffer('d', 't', 16)","","",[],[]]
["d","s","MergeTree","MergeTree","","",["d","e"],["v","w"]]
["d","x","Distributed","Distributed('c', 'd', 'u')","","",[],[]]
["d","r","MaterializedView","","CREATE MATERIALIZED VIEW d.r REFRESH EVERY 1 HOUR TO d.q AS SELECT 1","",[],[]]
"#;
        let catalogue = Catalogue::parse(rows.as_bytes()).unwrap();
        let of = |name: &str| TableRef::new("d", name);
        assert_eq!(catalogue.get(&of("s")).unwrap().dependents, [of("v"), TableRef::new("e", "w")]);
        let (late, distributed) = catalogue.late();
        assert_eq!(late.into_iter().map(|table| table.name).collect::<Vec<_>>(), ["q", "r", "t"]);
        assert_eq!(distributed, [("c".to_owned(), of("u"))]);
        let pushed = catalogue.pushed_on(BTreeSet::from([of("r")]));
        assert_eq!(pushed.into_iter().map(|table| table.name).collect::<Vec<_>>(), ["q", "r"]);
        assert!(Catalogue::parse(b"[1]").is_err());
    }
}
