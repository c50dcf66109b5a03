//! Following tables to what is behind them until nothing is new.

use super::{
    Reads, TableRef, ask,
    catalogue::{Catalogue, Entry},
    definition::{Made, is_plain},
    state::State,
    tree::{Tree, inserts_into},
};
use crate::{Client, Result, Schema, SchemaHandle, TableSchema};
use parking_lot::Mutex;
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};
use tokio::sync::{Mutex as Turn, OnceCell};

/// Most tables that one statement is followed to.
const MOST: usize = 1_000;

/// What stands behind the tables of one client's database. Cloning is cheap and shares what was found.
#[derive(Clone, Debug)]
pub struct Relations(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    schema: SchemaHandle,
    current: Mutex<Option<Arc<State>>>,
    /// One look-up of the catalogue at a time; the others wait for it.
    turn: Turn<()>,
    drifting: OnceCell<BTreeSet<String>>,
}

impl Relations {
    /// Asks nothing yet.
    #[must_use]
    pub fn new(client: Client, schema: SchemaHandle) -> Self {
        let inner = Inner { client, schema, current: Mutex::new(None), turn: Turn::new(()), drifting: OnceCell::new() };
        Self(Arc::new(inner))
    }

    /// What reading a table of the schema reads, whichever of its columns.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn reads_of_table(&self, table: &TableSchema) -> Reads {
        let own = TableRef::new(self.0.client.database(), &table.name);
        let readable = table.columns().iter().filter(|column| column.kind != crate::ColumnKind::Ephemeral);
        let computed = table.columns().iter().any(|column| column.kind == crate::ColumnKind::Alias);
        let simple = is_plain(&table.engine) && !computed;
        let plain = |state: &State| Reads {
            tracked: !state.late.contains(&own),
            steady: true,
            tables: BTreeSet::from([own.clone()]),
        };
        match self.state().await {
            // nothing is behind it, and nobody needs to be asked
            Ok(state) if simple => plain(&state),
            Ok(_) => {
                let statement = ask::whole(&own, readable.map(|column| &column.name));
                let mut reads = self.reads_of_statement(&statement, &[]).await;
                reads.tables.insert(own);
                reads
            }
            Err(error) => {
                tracing::debug!(%error, table = table.name, "what table {} is made of could not be asked", table.name);
                Reads { tables: BTreeSet::from([own]), tracked: false, steady: false }
            }
        }
    }

    /// What a statement reads; `params` are those of `{name:Type}` in it, in their wire form. What cannot be found out is
    /// not tracked.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn reads_of_statement(&self, statement: &str, params: &[(String, String)]) -> Reads {
        match self.find(statement, params).await {
            Ok(reads) => reads,
            Err(error) => {
                tracing::debug!(%error, "what a statement reads could not be found out");
                Reads::unknown()
            }
        }
    }

    /// Every table that an insert into one of this database changes: itself, views that it is pushed on to, and what
    /// these write to.
    ///
    /// # Errors
    /// ClickHouse could not be asked: everything may have changed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn changed_by(&self, table: &str) -> Result<Arc<BTreeSet<TableRef>>> {
        let own = TableRef::new(self.0.client.database(), table);
        let state = self.state().await?;
        if let Some(found) = state.changes(&own) {
            return Ok(found);
        }
        let mut changed = BTreeSet::from([own.clone()]);
        let mut next = VecDeque::from([own.clone()]);
        while let Some(table) = next.pop_front() {
            let Some(entry) = self.entry(&state, &table).await? else { continue };
            next.extend(entry.pushes().filter(|table| changed.insert(table.clone())).collect::<Vec<_>>());
        }
        let changed = Arc::new(changed);
        state.keep_changes(own, Arc::clone(&changed));
        Ok(changed)
    }

    /// The one table of this database that a statement inserts into, where ClickHouse reads it as that and the table holds its
    /// rows itself. `None`: it may change anything.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn inserted_by(&self, statement: &str) -> Option<String> {
        let lines = ask::syntax(&self.0.client, statement).await.ok()?;
        let (database, table) = inserts_into(&lines)?;
        let schema = self.0.schema.get()?;
        let own = database.is_none_or(|database| database == self.0.client.database());
        let table = schema.table(table).filter(|table| own && is_plain(&table.engine))?;
        Some(table.name.clone())
    }

    async fn find(&self, text: &str, params: &[(String, String)]) -> Result<Reads> {
        let state = self.state().await?;
        let cell = state.reads((text.to_owned(), params.to_vec()));
        cell.get_or_try_init(|| self.walk(&state, text, params)).await.cloned()
    }

    async fn walk(&self, state: &State, text: &str, params: &[(String, String)]) -> Result<Reads> {
        let mut walk =
            Walk { reads: Reads { tracked: true, steady: true, tables: BTreeSet::new() }, next: VecDeque::new() };
        let tree = self.tree(text, params).await?;
        self.enter(&mut walk, &tree).await?;
        while let Some(place) = walk.next.pop_front() {
            self.follow(state, &mut walk, place).await?;
            if walk.reads.tables.len() > MOST {
                walk.reads.tracked = false;
                break;
            }
        }
        Ok(walk.reads)
    }

    /// A statement that ClickHouse refuses to explain is not known, now and later.
    async fn tree(&self, statement: &str, params: &[(String, String)]) -> Result<Tree> {
        match ask::tree(&self.0.client, statement, params).await {
            Err(error) if error.code().is_some() => {
                tracing::debug!(%error, "a statement cannot be explained");
                Ok(Tree { unknown: true, ..Tree::default() })
            }
            other => other,
        }
    }

    /// Takes what a tree names.
    async fn enter(&self, walk: &mut Walk, tree: &Tree) -> Result<()> {
        walk.reads.tracked &= !tree.unknown;
        if !tree.functions.is_empty() {
            let drifting = self.0.drifting.get_or_try_init(|| ask::drifting(&self.0.client)).await?;
            walk.reads.steady &= tree.functions.is_disjoint(drifting);
        }
        walk.next.extend(tree.tables.iter().map(|name| Place::Printed(name.clone())));
        Ok(())
    }

    async fn follow(&self, state: &State, walk: &mut Walk, place: Place) -> Result<()> {
        let behind = matches!(place, Place::Behind(_));
        let found = match place {
            Place::Exact(table) | Place::Behind(table) => self.entry(state, &table).await?.map(|entry| (table, entry)),
            Place::Printed(name) => self.printed(state, &name).await?,
        };
        let Some((table, entry)) = found else {
            walk.reads.tracked = false;
            return Ok(());
        };
        walk.reads.tracked &= behind || !state.late.contains(&table);
        if !walk.reads.tables.insert(table.clone()) {
            return Ok(());
        }
        match entry.made {
            Made::Plain => {}
            Made::View(select) => {
                let tree = self.tree(&select, &[]).await?;
                self.enter(walk, &tree).await?;
            }
            Made::Materialized { target, refreshed } => {
                walk.reads.tracked &= !refreshed;
                walk.next.extend(target.map(Place::Exact));
            }
            Made::Merge { database, expression } => {
                let members = ask::matching(&self.0.client, &database, &expression).await?;
                walk.next.extend(members.into_iter().map(Place::Exact));
            }
            Made::Buffer(target) => walk.next.push_back(Place::Behind(target)),
            Made::Distributed { cluster, table } => {
                walk.reads.tracked &= ask::is_local(&self.0.client, &cluster).await?;
                walk.next.push_back(Place::Behind(table));
            }
            Made::Foreign => walk.reads.tracked = false,
        }
        Ok(())
    }

    /// What is known of a table; `None`: there is none, or our user may not see it.
    async fn entry(&self, state: &State, table: &TableRef) -> Result<Option<Entry>> {
        if table.database == self.0.client.database() {
            if let Some(entry) = state.catalogue.get(table) {
                return Ok(Some(entry.clone()));
            }
            let plain = state.schema.table(&table.name).filter(|table| is_plain(&table.engine));
            if plain.is_some() {
                return Ok(Some(Entry { made: Made::Plain, dependents: Vec::new() }));
            }
        }
        // it came or changed since, or is in another database
        state.went_elsewhere();
        let found = ask::named(&self.0.client, &BTreeSet::from([table.clone()])).await?;
        Ok(found.get(table).cloned())
    }

    /// A table whose full name is written without quotes: a point in it may part its names or belong to one.
    async fn printed(&self, state: &State, name: &str) -> Result<Option<(TableRef, Entry)>> {
        let parts = name.match_indices('.').map(|(at, _)| TableRef::new(&name[..at], &name[at + 1..]));
        let mut parts: Vec<TableRef> = parts.take(8).collect();
        if let [only] = parts.as_slice() {
            let table = only.clone();
            return Ok(self.entry(state, &table).await?.map(|entry| (table, entry)));
        }
        state.went_elsewhere();
        let found = ask::named(&self.0.client, &parts.iter().cloned().collect()).await?;
        parts.retain(|table| found.get(table).is_some());
        match parts.as_slice() {
            [only] => Ok(found.get(only).map(|entry| (only.clone(), entry.clone()))),
            _ => Ok(None),
        }
    }

    /// What is known for the schema as it is now. While it cannot be asked, what was known before.
    async fn state(&self) -> Result<Arc<State>> {
        let schema = match self.0.schema.get() {
            Some(schema) => schema,
            None => self.0.schema.refresh().await.map_err(|error| {
                crate::Error::new(crate::Kind::Connect, ask::PURPOSE, format!("the schema is not known: {error}"))
            })?,
        };
        if let Some(state) = self.known(&schema) {
            return Ok(state);
        }
        let _turn = self.0.turn.lock().await;
        if let Some(state) = self.known(&schema) {
            return Ok(state);
        }
        let before = self.0.current.lock().clone();
        match self.look(Arc::clone(&schema)).await {
            Ok(new) => {
                let new = Arc::new(match &before {
                    Some(before) => before.renewed(new),
                    None => new,
                });
                *self.0.current.lock() = Some(Arc::clone(&new));
                Ok(new)
            }
            Err(error) => {
                // what was known has to do until the schema is read again: nobody waits for each failure anew
                let Some(before) = before else { return Err(error) };
                let (catalogue, late) = (before.catalogue.clone(), before.late.clone());
                let same = Arc::new(before.renewed(State::new(schema, catalogue, late)));
                *self.0.current.lock() = Some(Arc::clone(&same));
                Ok(same)
            }
        }
    }

    fn known(&self, schema: &Arc<Schema>) -> Option<Arc<State>> {
        // by its time: a newer one in between is as good
        self.0.current.lock().clone().filter(|state| state.schema.taken_at >= schema.taken_at)
    }

    async fn look(&self, schema: Arc<Schema>) -> Result<State> {
        let catalogue: Catalogue = ask::special(&self.0.client).await?;
        let (mut late, distributed) = catalogue.late();
        for (cluster, table) in distributed {
            if !ask::is_local(&self.0.client, &cluster).await? {
                late.insert(table);
            }
        }
        let late = catalogue.pushed_on(late);
        Ok(State::new(schema, catalogue, late))
    }
}

/// Where a walk has got to.
#[derive(Debug)]
struct Walk {
    reads: Reads,
    next: VecDeque<Place>,
}

/// A table that is still to be looked at.
#[derive(Debug)]
enum Place {
    Exact(TableRef),
    /// Read through another that has what comes to it later already: when it comes changes nothing.
    Behind(TableRef),
    /// By its full name without quotes.
    Printed(String),
}
