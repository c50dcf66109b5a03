//! The questions to ClickHouse. Each is a read with a bound on its time and its answer.

use super::{TableRef, catalogue, catalogue::Catalogue, tree::Tree};
use crate::{Client, Error, Kind, Query, Result, error::Purpose, sql};
use std::{collections::BTreeSet, time::Duration};

/// Most time for one question.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of an answer.
const LIMIT: usize = 64 << 20;
pub(super) const PURPOSE: Purpose = Purpose { op: "relations", effect: false };
/// What is asked with a setting cannot be asked by the strictest users; without it, it may run for longer.
const EXPLAIN_TIME: (&str, &str) = ("max_execution_time", "10");

/// Functions whose value is another each time, where ClickHouse does not tell.
const DRIFTING: &[&str] = &[
    "generateulid",
    "generateuuidv4",
    "generateuuidv7",
    "now",
    "now64",
    "nowinblock",
    "rand",
    "rand32",
    "rand64",
    "randcanonical",
    "randomstring",
    "randuniform",
    "rownumberinallblocks",
    "serveruuid",
    "sleep",
    "today",
    "uptime",
    "utctimestamp",
    "yesterday",
];

/// Functions that ClickHouse counts among these, and whose value only changes with a server's setup or its internals.
const STEADY: &[&str] = &[
    "arrayjoin",
    "arraypartialreversesort",
    "arraypartialsort",
    "current_database",
    "currentdatabase",
    "database",
    "schema",
    "servertimezone",
    "timezone",
    "tocolumntypename",
    "unnest",
];

async fn lines(client: &Client, query: Query) -> Result<Vec<u8>> {
    let query = query.format("JSONCompactEachRow").timeout(PATIENCE);
    client.ask(PURPOSE, query).await?.bytes(LIMIT).await.map(Vec::from)
}

fn malformed(reason: impl Into<String>) -> Error {
    Error::new(Kind::Malformed, PURPOSE, reason.into())
}

/// The tables of the client's database that are more than their own rows.
pub(super) async fn special(client: &Client) -> Result<Catalogue> {
    let plain = "(engine LIKE '%MergeTree' OR engine IN ('Memory', 'Log', 'TinyLog', 'StripeLog'))";
    let sql = format!(
        "SELECT {} FROM system.tables WHERE database = currentDatabase() AND (NOT {plain} OR \
         notEmpty(dependencies_table))",
        catalogue::COLUMNS
    );
    Catalogue::parse(&lines(client, Query::read(sql)).await?).map_err(malformed)
}

/// These tables, as far as there are any.
pub(super) async fn named(client: &Client, tables: &BTreeSet<TableRef>) -> Result<Catalogue> {
    let pairs: Vec<String> = (0..tables.len()).map(|at| format!("({{d{at}:String}}, {{n{at}:String}})")).collect();
    // the databases stand alone, too, so that no other one is looked into
    let databases: Vec<String> = (0..tables.len()).map(|at| format!("{{d{at}:String}}")).collect();
    let sql = format!(
        "SELECT {} FROM system.tables WHERE database IN ({}) AND (database, name) IN ({})",
        catalogue::COLUMNS,
        databases.join(", "),
        pairs.join(", ")
    );
    let mut query = Query::read(sql);
    for (at, table) in tables.iter().enumerate() {
        query = query.param(format!("d{at}"), &table.database).param(format!("n{at}"), &table.name);
    }
    Catalogue::parse(&lines(client, query).await?).map_err(malformed)
}

fn texts(answer: &[u8]) -> Result<Vec<String>> {
    let rows = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let text = |line| serde_json::from_slice::<[String; 1]>(line).map(|[text]| text);
    rows.map(|line| text(line).map_err(|cause| malformed(format!("a row of names: {cause}")))).collect()
}

/// What a statement names, by its text and the wire forms of its parameters.
pub(super) async fn tree(client: &Client, statement: &str, params: &[(String, String)]) -> Result<Tree> {
    let mut query = Query::read(format!("EXPLAIN QUERY TREE\n{statement}")).setting(EXPLAIN_TIME.0, EXPLAIN_TIME.1);
    query.params = params.to_vec();
    // a statement with a format of its own is answered in that, and then is no tree
    Ok(texts(&lines(client, query).await?)
        .map(|lines| Tree::parse(&lines.join("\n")))
        .unwrap_or(Tree { unknown: true, ..Tree::default() }))
}

/// What `EXPLAIN AST` prints of a statement.
pub(super) async fn syntax(client: &Client, statement: &str) -> Result<Vec<String>> {
    texts(&lines(client, Query::read(format!("EXPLAIN AST\n{statement}"))).await?)
}

/// The tables of a database whose names match.
pub(super) async fn matching(client: &Client, database: &str, expression: &str) -> Result<Vec<TableRef>> {
    let sql = "SELECT toValidUTF8(name) FROM system.tables WHERE database = {d:String} AND match(name, {e:String})";
    let names = texts(&lines(client, Query::read(sql).param("d", database).param("e", expression)).await?)?;
    Ok(names.into_iter().map(|name| TableRef::new(database, name)).collect())
}

/// Whether every server of a cluster is this one.
pub(super) async fn is_local(client: &Client, cluster: &str) -> Result<bool> {
    let sql = "SELECT toString(count() > 0 AND min(is_local) = 1) FROM system.clusters WHERE cluster = {c:String}";
    let answer = texts(&lines(client, Query::read(sql).param("c", cluster)).await?)?;
    Ok(answer.first().is_some_and(|text| text == "1"))
}

/// Functions whose value is another each time, in lower case.
pub(super) async fn drifting(client: &Client) -> Result<BTreeSet<String>> {
    // the column has had two names
    for column in ["deterministic", "is_deterministic"] {
        let sql = format!("SELECT lower(name) FROM system.functions WHERE {column} = 0 OR origin != 'System'");
        match lines(client, Query::read(sql)).await {
            Ok(answer) => {
                let mut names: BTreeSet<String> = texts(&answer)?.into_iter().collect();
                names.retain(|name| !STEADY.contains(&name.as_str()));
                return Ok(names);
            }
            Err(error) if error.code().is_some() => tracing::debug!(%error, "system.functions has no {column}"),
            Err(error) => return Err(error),
        }
    }
    Ok(DRIFTING.iter().map(|name| (*name).to_owned()).collect())
}

/// The statement that reads every column of a table that can be read.
pub(super) fn whole(table: &TableRef, columns: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let columns: Vec<String> = columns.into_iter().map(|name| sql::quoted(name.as_ref())).collect();
    format!("SELECT {} FROM {}.{}", columns.join(", "), sql::quoted(&table.database), sql::quoted(&table.name))
}
