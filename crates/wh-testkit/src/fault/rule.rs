//! Which request meets which fault. Pure: no sockets here.

use std::{collections::BTreeMap, time::Duration};

/// What a request is, told by its statement (the `query` parameter, else the start of the body).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A statement that begins with INSERT.
    Insert,
    /// Any other statement. One in a compressed body cannot be read and counts here.
    Select,
    /// `/ping`.
    Ping,
}

/// What is done to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A ClickHouse exception; the upstream is not asked.
    Error {
        /// The exception's code.
        code: u32,
        /// Its name, such as `TOO_MANY_PARTS`.
        name: String,
        /// The HTTP status it comes with.
        status: u16,
        /// Its text.
        message: String,
    },
    /// A load balancer's answer, without ClickHouse's headers; the upstream is not asked.
    Status {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: String,
    },
    /// Exactly this answer; the upstream is not asked.
    Reply {
        /// The HTTP status.
        status: u16,
        /// Its headers; the length is added.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
        /// Whether the connection is cut behind the body, as if more had been due.
        cut: bool,
    },
    /// Waits, then forwards.
    Delay(Duration),
    /// Reads the request and never answers; the upstream is not asked.
    Hang,
    /// Reads the request and resets the connection; the upstream is not asked.
    Reset,
    /// Forwards, lets the upstream answer, then resets the connection: done, and the answer lost.
    DropReply,
    /// Forwards, passes the answer's head and that many bytes of its body, then cuts the connection.
    Truncate {
        /// How much of the body passes.
        bytes: usize,
    },
    /// Forwards, passes that many bytes of the answer's body under its 200, then writes ClickHouse's in-band exception
    /// block and cuts the connection.
    MidException {
        /// The exception's code.
        code: u32,
        /// Its name, such as `MEMORY_LIMIT_EXCEEDED`.
        name: String,
        /// How much of the body passes.
        bytes: usize,
    },
}

impl Action {
    /// An exception with status 500 and a text of our own.
    pub fn error(code: u32, name: impl Into<String>) -> Self {
        Self::Error { code, name: name.into(), status: 500, message: "injected fault".into() }
    }

    /// The name that [`Stats`] counts it under.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Error { .. } => "error",
            Self::Status { .. } => "status",
            Self::Reply { .. } => "reply",
            Self::Delay(_) => "delay",
            Self::Hang => "hang",
            Self::Reset => "reset",
            Self::DropReply => "drop_reply",
            Self::Truncate { .. } => "truncate",
            Self::MidException { .. } => "mid_exception",
        }
    }
}

/// An action and when it is due: of the requests that match, the first `skip` pass, then every `every`th is met, up to
/// `times`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    kind: Option<Kind>,
    contains: String,
    skip: u64,
    every: u64,
    times: Option<u64>,
    action: Action,
}

impl Rule {
    /// On requests of every kind.
    #[must_use]
    pub fn any(action: Action) -> Self {
        Self { kind: None, contains: String::new(), skip: 0, every: 1, times: None, action }
    }

    /// On requests of one kind.
    #[must_use]
    pub fn on(kind: Kind, action: Action) -> Self {
        Self { kind: Some(kind), ..Self::any(action) }
    }

    /// On inserts.
    #[must_use]
    pub fn insert(action: Action) -> Self {
        Self::on(Kind::Insert, action)
    }

    /// On every other statement.
    #[must_use]
    pub fn select(action: Action) -> Self {
        Self::on(Kind::Select, action)
    }

    /// Only on statements with this text in them.
    #[must_use]
    pub fn contains(mut self, text: impl Into<String>) -> Self {
        self.contains = text.into();
        self
    }

    /// Lets the first matching requests pass.
    #[must_use]
    pub fn skip(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    /// Meets only each nth of the rest; 0 counts as 1.
    #[must_use]
    pub fn every(mut self, nth: u64) -> Self {
        self.every = nth.max(1);
        self
    }

    /// Ends after that many.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    fn matches(&self, kind: Kind, statement: &str) -> bool {
        self.kind.is_none_or(|own| own == kind) && statement.contains(&self.contains)
    }
}

/// Names a rule that was added to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId(usize);

/// What came and what was done to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    requests: BTreeMap<Kind, u64>,
    fired: BTreeMap<&'static str, u64>,
}

impl Stats {
    /// How many requests of a kind came.
    #[must_use]
    pub fn requests(&self, kind: Kind) -> u64 {
        self.requests.get(&kind).copied().unwrap_or(0)
    }

    /// How often an action was taken, by its [`Action::name`].
    #[must_use]
    pub fn fired(&self, action: &str) -> u64 {
        self.fired.get(action).copied().unwrap_or(0)
    }
}

#[derive(Debug)]
struct Entry {
    rule: Rule,
    removed: bool,
    seen: u64,
    fired: u64,
}

impl Entry {
    /// Counts a matching request and says whether the rule acts on it.
    fn due(&mut self) -> bool {
        self.seen += 1;
        let due = self.seen > self.rule.skip
            && (self.seen - self.rule.skip - 1).is_multiple_of(self.rule.every)
            && self.rule.times.is_none_or(|times| self.fired < times);
        self.fired += u64::from(due);
        due
    }
}

/// The rules of one proxy, in order, with their counts.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    stats: Stats,
}

impl Table {
    pub(super) fn add(&mut self, rule: Rule) -> RuleId {
        self.entries.push(Entry { rule, removed: false, seen: 0, fired: 0 });
        RuleId(self.entries.len() - 1)
    }

    pub(super) fn remove(&mut self, id: RuleId) {
        if let Some(entry) = self.entries.get_mut(id.0) {
            entry.removed = true;
        }
    }

    pub(super) fn clear(&mut self) {
        for entry in &mut self.entries {
            entry.removed = true;
        }
    }

    pub(super) fn fired(&self, id: RuleId) -> u64 {
        self.entries.get(id.0).map_or(0, |entry| entry.fired)
    }

    pub(super) fn stats(&self) -> Stats {
        self.stats.clone()
    }

    /// What to do to this request. Rules after the one that acts do not count it.
    pub(super) fn pick(&mut self, kind: Kind, statement: &str) -> Option<Action> {
        *self.stats.requests.entry(kind).or_default() += 1;
        for entry in &mut self.entries {
            if !entry.removed && entry.rule.matches(kind, statement) && entry.due() {
                *self.stats.fired.entry(entry.rule.action.name()).or_default() += 1;
                return Some(entry.rule.action.clone());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(table: &mut Table, kind: Kind, requests: u64) -> Vec<u64> {
        (1..=requests).filter(|_| table.pick(kind, "INSERT INTO a").is_some()).collect()
    }

    #[test]
    fn skip_every_and_times_choose_the_requests() {
        let mut table = Table::default();
        let rule = table.add(Rule::insert(Action::Hang).skip(2).every(3).times(2));
        assert_eq!(met(&mut table, Kind::Insert, 20), [3, 6]);
        assert_eq!((table.fired(rule), table.stats().fired("hang")), (2, 2));
        assert_eq!(table.stats().requests(Kind::Insert), 20);
    }

    #[test]
    fn kind_and_text_must_match() {
        let mut table = Table::default();
        table.add(Rule::insert(Action::Reset).contains("INTO a"));
        table.add(Rule::select(Action::DropReply));
        assert_eq!(table.pick(Kind::Insert, "INSERT INTO b"), None);
        assert_eq!(table.pick(Kind::Insert, "INSERT INTO a"), Some(Action::Reset));
        assert_eq!(table.pick(Kind::Select, "SELECT 1"), Some(Action::DropReply));
        assert_eq!(table.pick(Kind::Ping, ""), None);
    }

    #[test]
    fn the_first_rule_that_is_due_acts_and_a_removed_one_does_not() {
        let mut table = Table::default();
        let first = table.add(Rule::any(Action::Reset).times(1));
        let second = table.add(Rule::any(Action::Hang));
        assert_eq!(table.pick(Kind::Ping, ""), Some(Action::Reset));
        assert_eq!(table.pick(Kind::Ping, ""), Some(Action::Hang));
        table.remove(second);
        assert_eq!(table.pick(Kind::Ping, ""), None);
        table.add(Rule::any(Action::DropReply));
        table.clear();
        assert_eq!(table.pick(Kind::Ping, ""), None);
        assert_eq!((table.fired(first), table.fired(second)), (1, 1));
    }
}
