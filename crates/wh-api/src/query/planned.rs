//! Queries that were planned before: whoever asks the same again, word by word, spares us reading, checking and hashing
//! it. Kept is only what follows from the text and the schema; answers are kept elsewhere.

use super::{
    build::{Built, End},
    failure::Limits,
    format::{Form, Format, Numbers},
    run::{GRACE, settings},
};
use crate::served::TenantState;
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use wh_cache::Key;
use wh_clickhouse::{Query, ServerSettings, TableSchema};

/// The setting that bounds a query's time.
const MAX_TIME: &str = "max_execution_time";
/// Most plans of a generation, of which there are two.
const PLANS: usize = 512;
/// The longest text of a query that is kept, in bytes: with what is made of it, all are some 10 MB at most.
const LONGEST: usize = 4 << 10;

/// A query, ready to be asked.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) tenant: Arc<TenantState>,
    pub(super) built: Built,
    pub(super) form: Form,
    pub(super) limits: Limits,
    pub(super) known: Arc<ServerSettings>,
    /// What it reads.
    pub(super) table: Arc<TableSchema>,
    /// What distinguishes its answer from every other of its tenant.
    pub(super) key: Key,
}

impl Planned {
    pub(super) fn new(
        tenant: &Arc<TenantState>,
        built: Built,
        form: Form,
        limits: Limits,
        known: &Arc<ServerSettings>,
        table: &Arc<TableSchema>,
    ) -> Self {
        let (tenant, known, table) = (Arc::clone(tenant), Arc::clone(known), Arc::clone(table));
        let mut plan = Self { tenant, built, form, limits, known, table, key: Key::of([]) };
        plan.key = plan.distinguished();
        plan
    }

    /// Whether its answer is passed on as it comes. A page is held whole: its end is found in it.
    pub(super) fn streams(&self) -> bool {
        self.form.format != Format::Json && !matches!(self.built.end, End::Page(_))
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = settings(self.form, &self.known);
        settings.push((MAX_TIME, self.limits.time.as_secs_f64().to_string()));
        if let Some(most) = self.most() {
            settings.push(("max_result_rows", most.to_string()));
            settings.push(("result_overflow_mode", "throw".to_owned()));
        }
        settings
    }

    /// Most rows ClickHouse may give, where more are an error.
    pub(super) fn most(&self) -> Option<u64> {
        let (most, bound) = (self.built.most, self.tenant.runtime.limits.max_result_rows);
        match &self.built.end {
            // rows that are equal in order stay together, within reason
            End::Page(_) => Some(most.saturating_add(bound)),
            End::Probed if self.form.format != Format::Json => Some(most),
            End::Probed | End::Asked => None,
        }
    }

    fn distinguished(&self) -> Key {
        let Built { sql, params, most, end, .. } = &self.built;
        let end = match end {
            End::Asked => "asked",
            End::Probed => "probed",
            End::Page(_) => "page",
        };
        // the time it may take is no part of what it says
        let settings: Vec<_> = self.settings().into_iter().filter(|(name, _)| *name != MAX_TIME).collect();
        let most = most.to_string();
        // a store may be shared by servers of other databases
        let pool = self.tenant.runtime.clickhouse.pool_key();
        let first = ["query", pool, sql, self.form.format.media(), end, &most];
        let settings = settings.iter().flat_map(|(name, value)| [*name, value.as_str()]);
        let params = params.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        Key::of(first.into_iter().chain(settings).chain(["params"]).chain(params).map(str::as_bytes))
    }

    /// The statement with everything that is sent along.
    pub(super) fn query(&self) -> Query {
        let mut query = Query::read(self.built.sql.as_str())
            .format(self.form.format.clickhouse())
            .timeout(self.limits.time.saturating_add(GRACE));
        for (name, value) in self.settings() {
            query = query.setting(name, value);
        }
        for (name, value) in &self.built.params {
            query = query.param(name.as_str(), value);
        }
        query
    }
}

/// What a query is called here: who asks, of what, in which form, and its text.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Name(Box<[u8]>);

impl Name {
    /// `None`: it is too long to be kept.
    pub(super) fn of(tenant: &TenantState, table: &TableSchema, form: Form, text: &[u8]) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let form = match form.format {
            Format::Json => 0,
            Format::Ndjson => 1,
            Format::Csv => 2,
            Format::Arrow => 3,
        } | match form.numbers {
            Numbers::Number => 0,
            Numbers::String => 4,
        };
        // a table with a zero in its name is another table: what is found is held against it
        let parts = [&[form], tenant.runtime.tenant.as_str().as_bytes(), &[0], table.name.as_bytes(), &[0], text];
        Some(Self(parts.concat().into()))
    }
}

/// Those of two generations: when the younger one is full it becomes the older one, and what nobody asked for since goes.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<Generations<Arc<Planned>>>);

#[derive(Debug)]
struct Generations<P> {
    young: HashMap<Name, P>,
    old: HashMap<Name, P>,
}

impl<P> Default for Generations<P> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

impl Plans {
    /// A plan that was made under the same schema for the same tenant.
    pub(super) fn find(
        &self,
        name: &Name,
        tenant: &Arc<TenantState>,
        table: &Arc<TableSchema>,
        known: &Arc<ServerSettings>,
    ) -> Option<Arc<Planned>> {
        let found = self.0.lock().find(name)?;
        let same =
            Arc::ptr_eq(&found.tenant, tenant) && Arc::ptr_eq(&found.table, table) && Arc::ptr_eq(&found.known, known);
        same.then_some(found)
    }

    pub(super) fn keep(&self, name: Name, plan: Arc<Planned>) {
        self.0.lock().keep(name, plan);
    }
}

impl<P: Clone> Generations<P> {
    fn find(&mut self, name: &Name) -> Option<P> {
        if let Some(found) = self.young.get(name) {
            return Some(found.clone());
        }
        let (name, found) = self.old.remove_entry(name)?;
        self.keep(name, found.clone());
        Some(found)
    }

    fn keep(&mut self, name: Name, plan: P) {
        if self.young.len() >= PLANS && !self.young.contains_key(&name) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(name, plan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: usize) -> Name {
        Name(n.to_le_bytes().into())
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let mut generations = Generations::default();
        for n in 0..10 * PLANS {
            generations.keep(name(n), n);
            assert_eq!(generations.find(&name(0)), Some(0), "asked for all the time, {n}");
            assert_eq!(generations.find(&name(n)), Some(n));
            assert!(generations.young.len() + generations.old.len() <= 2 * PLANS);
        }
        assert_eq!(generations.find(&name(1)), None);
        generations.keep(name(0), 7);
        assert_eq!(generations.find(&name(0)), Some(7), "made anew");
    }
}
