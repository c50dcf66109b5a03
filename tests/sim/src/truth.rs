//! What really happened, as no process sees it: what was accepted, what was stored by whom, and what was against the
//! rules.

use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};
use wh_coord::Term;
use wh_mq::Unit;
use wh_types::{Clock, Mono, SimClock, Table};

/// The record. Cloning gives another handle.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) clock: Arc<SimClock>,
    pub(crate) began: Mono,
    /// Whether each row must come once and in order.
    exactly: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Rows accepted of each table: numbers from 0.
    accepted: BTreeMap<Table, u64>,
    stored: BTreeMap<Table, Vec<u64>>,
    /// Each row once.
    distinct: BTreeSet<(Table, u64)>,
    tokens: BTreeSet<String>,
    /// Inserts under way, with the term that they began under.
    inserting: BTreeMap<Table, Vec<(u64, u64, Term)>>,
    inserts: u64,
    holders: BTreeMap<Unit, u64>,
    /// Units whose owner was gone and whose blocks nobody has made due.
    orphans: BTreeSet<Unit>,
    wrong: Vec<String>,
    trace: DefaultHasher,
    log: Vec<String>,
}

impl Truth {
    pub(crate) fn new(clock: Arc<SimClock>, exactly: bool) -> Self {
        let began = clock.now();
        Self { clock, began, exactly, state: Arc::default() }
    }

    /// Milliseconds since the beginning.
    pub(crate) fn millis(&self) -> u128 {
        self.clock.now().saturating_duration_since(self.began).as_millis()
    }

    /// Notes what happened, for whoever reads of a failure, and for telling two runs apart.
    pub(crate) fn note(&self, what: impl Into<String>) {
        let line = format!("{:>7} {}", self.millis(), what.into());
        let mut state = self.state.lock();
        line.hash(&mut state.trace);
        state.log.push(line);
    }

    pub(crate) fn wrong(&self, what: impl Into<String>) {
        let what = what.into();
        self.note(format!("WRONG: {what}"));
        self.state.lock().wrong.push(what);
    }

    /// The numbers of the next rows of a table.
    pub(crate) fn next_rows(&self, table: &Table, rows: u64) -> std::ops::Range<u64> {
        let mut state = self.state.lock();
        let next = state.accepted.entry(table.clone()).or_default();
        let first = *next;
        *next += rows;
        first..*next
    }

    /// An insert begins. Nobody may begin one without a live term, or while a member inserts into the same table.
    pub(crate) fn begins(&self, process: u64, table: &Table, term: Option<Term>) -> u64 {
        let now = self.clock.now();
        let Some(term) = term.filter(|term| term.is_live(now)) else {
            self.wrong(format!("process {process} began an insert into {table} after its term"));
            return 0;
        };
        let others: Vec<u64> = {
            let mut state = self.state.lock();
            state.inserts += 1;
            let insert = state.inserts;
            let running = state.inserting.entry(table.clone()).or_default();
            let others = running.iter().filter(|(_, other, term)| *other != process && term.is_live(now));
            let others = others.map(|(_, other, _)| *other).collect();
            running.push((insert, process, term));
            others
        };
        for other in others {
            self.wrong(format!(
                "process {process} inserts into {table} while process {other} does, and both are members"
            ));
        }
        self.state.lock().inserts
    }

    pub(crate) fn ends(&self, table: &Table, insert: u64) {
        if let Some(running) = self.state.lock().inserting.get_mut(table) {
            running.retain(|(other, _, _)| *other != insert);
        }
    }

    /// Rows arrive in the sink. A token that was seen stores nothing where the table keeps tokens.
    pub(crate) fn store(&self, process: u64, table: &Table, rows: Vec<u64>, token: &str, keeps: bool) {
        let new = self.state.lock().tokens.insert(token.to_owned());
        let again = if new { "" } else { " again" };
        self.note(format!("process {process} stores {}.. ({}) in {table}{again}", rows[0], rows.len()));
        if new || !keeps {
            let mut state = self.state.lock();
            state.distinct.extend(rows.iter().map(|row| (table.clone(), *row)));
            let stored = state.stored.entry(table.clone()).or_default();
            let next = stored.len() as u64;
            let in_turn = rows.iter().copied().eq(next..next + rows.len() as u64);
            let first = rows[0];
            stored.extend(rows);
            drop(state);
            if self.exactly && !in_turn {
                self.wrong(format!("row {first} of {table} came when row {next} was due"));
            }
        }
    }

    /// Rows that were accepted, and how many of them the sink has.
    pub(crate) fn arrived(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.accepted.values().sum(), state.distinct.len() as u64)
    }

    /// A unit has an owner. Whoever takes it after a silent one must have made its blocks due.
    pub(crate) fn holds(&self, unit: Unit, process: u64) {
        self.note(format!("process {process} has {unit}"));
        let orphan = {
            let mut state = self.state.lock();
            state.holders.insert(unit, process);
            state.orphans.remove(&unit)
        };
        if orphan {
            self.wrong(format!("process {process} took {unit} and left it what its owner before had"));
        }
    }

    /// An owner was silent for too long.
    pub(crate) fn orphaned(&self, unit: Unit, process: u64) {
        self.frees(unit, process, "loses");
        self.state.lock().orphans.insert(unit);
    }

    /// The blocks of a unit were made due.
    pub(crate) fn reset(&self, unit: Unit) {
        self.state.lock().orphans.remove(&unit);
    }

    pub(crate) fn frees(&self, unit: Unit, process: u64, how: &str) {
        self.note(format!("process {process} {how} {unit}"));
        let mut state = self.state.lock();
        if state.holders.get(&unit) == Some(&process) {
            state.holders.remove(&unit);
        }
    }

    /// How many units each of these processes has.
    pub(crate) fn loads(&self, processes: &[u64]) -> Vec<usize> {
        let state = self.state.lock();
        processes.iter().map(|process| state.holders.values().filter(|holder| *holder == process).count()).collect()
    }

    /// Compares what was stored with what was accepted.
    pub(crate) fn compare(&self) {
        let (accepted, stored) = {
            let state = self.state.lock();
            (state.accepted.clone(), state.stored.clone())
        };
        for (table, count) in accepted {
            let rows = stored.get(&table).map(Vec::as_slice).unwrap_or_default();
            let seen: BTreeSet<u64> = rows.iter().copied().collect();
            let missing: Vec<u64> = (0..count).filter(|row| !seen.contains(row)).take(5).collect();
            if !missing.is_empty() {
                self.wrong(format!("rows {missing:?} … of {count} are lost in {table}"));
            }
            if self.exactly && rows.len() as u64 != count {
                self.wrong(format!("{} rows instead of {count} in {table}", rows.len()));
            }
        }
    }

    pub(crate) fn rows(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.accepted.values().sum(), state.stored.values().map(|rows| rows.len() as u64).sum())
    }

    pub(crate) fn trace(&self) -> u64 {
        self.state.lock().trace.finish()
    }

    /// Everything that was noted.
    pub(crate) fn told(&self) -> Vec<String> {
        self.state.lock().log.clone()
    }

    /// What was wrong, with the last of what happened.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        let state = self.state.lock();
        if state.wrong.is_empty() {
            return Ok(());
        }
        let last = state.log.len().saturating_sub(400);
        Err(format!("{}\n{}", state.log[last..].join("\n"), state.wrong.join("\n")))
    }
}
