//! What a table is made of, from its engine and its definition as ClickHouse writes them. Pure.

use super::{
    TableRef,
    token::{Token, Tokens},
};

/// How a table comes by its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It holds them itself.
    Plain,
    /// A query over others, run when it is read.
    View(String),
    /// Pushed by inserts into others, or made anew now and then; into a table of its own or into another.
    Materialized { target: Option<TableRef>, refreshed: bool },
    /// The tables of a database whose names match an expression.
    Merge { database: String, expression: String },
    /// Held for a while, then written to another.
    Buffer(TableRef),
    /// Parts of a table on the servers of a cluster.
    Distributed { cluster: String, table: TableRef },
    /// Anything else: nobody tells when it changes.
    Foreign,
}

/// Engines that hold rows themselves, beside those of the `MergeTree` family.
const PLAIN: &[&str] = &["Memory", "Log", "TinyLog", "StripeLog", "Null", "Set", "Join", "EmbeddedRocksDB"];

/// Whether an engine holds its rows itself.
pub(super) fn is_plain(engine: &str) -> bool {
    engine.ends_with("MergeTree") || PLAIN.contains(&engine)
}

/// What `system.tables` says of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    pub(super) database: &'a str,
    pub(super) engine: &'a str,
    pub(super) engine_full: &'a str,
    pub(super) create: &'a str,
    pub(super) select: &'a str,
}

impl Made {
    pub(super) fn of(said: Said<'_>) -> Self {
        let made = match said.engine {
            engine if is_plain(engine) => Some(Self::Plain),
            "View" => Some(said.select.to_owned()).filter(|select| !select.is_empty()).map(Self::View),
            "MaterializedView" => materialized(said),
            "Merge" => merge(said),
            "Buffer" => table(said, 0).map(Self::Buffer),
            "Distributed" => distributed(said),
            _ => None,
        };
        made.unwrap_or(Self::Foreign)
    }
}

/// Where a materialized view writes stands before its columns, its engine and its query.
fn materialized(said: Said<'_>) -> Option<Made> {
    let mut tokens = Tokens::of(said.create).peekable();
    let mut refreshed = false;
    let mut target = None;
    // CREATE MATERIALIZED VIEW, and its own name
    let mut words = 0;
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => match word.as_str() {
                "REFRESH" if words >= 3 => refreshed = true,
                "TO" if words >= 3 => {
                    let first = name(tokens.next()?)?;
                    target = Some(if tokens.next_if_eq(&Token::Sign('.')).is_some() {
                        TableRef::new(first, name(tokens.next()?)?)
                    } else {
                        TableRef::new(said.database, first)
                    });
                    break;
                }
                "AS" | "ENGINE" if words >= 4 => break,
                _ => words += 1,
            },
            Token::Name(_) => words += 1,
            Token::Sign('(') => break,
            Token::Text(_) | Token::Sign(_) => {}
        }
    }
    (words >= 3).then_some(Made::Materialized { target, refreshed })
}

fn name(token: Token) -> Option<String> {
    match token {
        Token::Word(name) | Token::Name(name) => Some(name),
        Token::Text(_) | Token::Sign(_) => None,
    }
}

/// The arguments of an engine, each a text or a name; `None` for one that is neither.
fn arguments(engine_full: &str) -> Vec<Option<String>> {
    let mut tokens = Tokens::of(engine_full).skip_while(|token| *token != Token::Sign('(')).skip(1);
    let (mut all, mut one, mut depth) = (Vec::new(), Vec::new(), 0);
    let plain = |one: &mut Vec<Token>| match std::mem::take(one).as_slice() {
        [Token::Text(text) | Token::Name(text) | Token::Word(text)] => Some(text.clone()),
        _ => None,
    };
    loop {
        match tokens.next() {
            None => return all,
            Some(Token::Sign(',')) if depth == 0 => all.push(plain(&mut one)),
            Some(Token::Sign(')')) if depth == 0 => {
                all.push(plain(&mut one));
                return all;
            }
            Some(token) => {
                match token {
                    Token::Sign('(') => depth += 1,
                    Token::Sign(')') => depth -= 1,
                    Token::Word(_) | Token::Name(_) | Token::Text(_) | Token::Sign(_) => {}
                }
                one.push(token);
            }
        }
    }
}

/// A table that two arguments name, from this one on. An empty database is the table's own.
fn table(said: Said<'_>, at: usize) -> Option<TableRef> {
    let mut arguments = arguments(said.engine_full).into_iter().skip(at);
    let (database, name) = (arguments.next()??, arguments.next()??);
    let database = if database.is_empty() { said.database.to_owned() } else { database };
    Some(TableRef::new(database, name))
}

fn merge(said: Said<'_>) -> Option<Made> {
    let TableRef { database, name } = table(said, 0)?;
    Some(Made::Merge { database, expression: name })
}

fn distributed(said: Said<'_>) -> Option<Made> {
    let cluster = arguments(said.engine_full).into_iter().next()??;
    Some(Made::Distributed { cluster, table: table(said, 1)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(engine: &str, engine_full: &str, create: &str, select: &str) -> Made {
        Made::of(Said { database: "d", engine, engine_full, create, select })
    }

    #[test]
    fn each_engine_is_made_of_what_its_arguments_say() {
        let other = |name: &str| TableRef::new("o", name);
        for (engine, full, expected) in [
            ("ReplicatedMergeTree", "ReplicatedMergeTree('/x', 'r') ORDER BY a", Made::Plain),
            ("Memory", "Memory", Made::Plain),
            ("Buffer", "Buffer('o', 't', 16, 10, 100)", Made::Buffer(other("t"))),
            ("Buffer", "Buffer('', 't', 16)", Made::Buffer(TableRef::new("d", "t"))),
            ("Buffer", "Buffer(currentDatabase(), 't', 16)", Made::Foreign),
            ("Merge", "Merge('o', '^t(a|b)')", Made::Merge { database: "o".into(), expression: "^t(a|b)".into() }),
            ("Merge", "Merge(REGEXP('o'), '^t')", Made::Foreign),
            (
                "Distributed",
                "Distributed('c', 'o', 't', rand())",
                Made::Distributed { cluster: "c".into(), table: other("t") },
            ),
            ("Kafka", "Kafka('x')", Made::Foreign),
            ("View", "", Made::Foreign),
        ] {
            assert_eq!(made(engine, full, "", ""), expected, "{engine} {full}");
        }
        assert_eq!(made("View", "", "", "SELECT 1"), Made::View("SELECT 1".into()));
    }

    #[test]
    fn the_target_of_a_materialized_view_stands_behind_to() {
        let of = |create: &str| {
            let made = made("MaterializedView", "", create, "SELECT 1");
            let Made::Materialized { target, refreshed } = made else { panic!("{made:?}") };
            (target.map(|table| table.to_string()), refreshed)
        };
        let to = |table: &str| Some(table.to_owned());
        for (create, expected) in [
            ("CREATE MATERIALIZED VIEW d.v TO o.t (`a` UInt8) AS SELECT a FROM d.s", (to("o.t"), false)),
            ("CREATE MATERIALIZED VIEW d.v TO `o p`.`t.u` (`a` UInt8) AS SELECT a", (to("o p.t.u"), false)),
            ("CREATE MATERIALIZED VIEW d.v (`TO` UInt8) ENGINE = Memory AS SELECT 1 AS `TO`", (None, false)),
            ("CREATE MATERIALIZED VIEW d.`TO` REFRESH EVERY 1 HOUR TO d.t (`a` UInt8) AS SELECT 1", (to("d.t"), true)),
            ("CREATE MATERIALIZED VIEW d.v UUID '1-2' TO t AS SELECT 1", (to("d.t"), false)),
        ] {
            assert_eq!(of(create), expected, "{create}");
        }
        assert_eq!(made("MaterializedView", "", "", ""), Made::Foreign);
    }
}
