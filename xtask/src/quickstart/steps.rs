//! The steps of the tour: a table, a stream, the flights, a query.

use super::system::System;
use crate::tell::Teller;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wh_testkit::{http, until, workspace};

const FLIGHTS: &str = "examples/data/flights.ndjson";
/// Rows in one request.
const REQUEST_ROWS: usize = 500;

const TABLE: &str = "CREATE TABLE flights (date DateTime, delay Int32, distance UInt32, origin LowCardinality(String), \
                     destination LowCardinality(String)) ENGINE = MergeTree ORDER BY (origin, date)";

/// Runs all of them.
#[expect(clippy::disallowed_methods, reason = "a tool measures with the machine's clock")]
pub(crate) async fn all(system: &System, teller: &mut Teller) -> Result<()> {
    teller.step("creating the table flights");
    system.sql(TABLE).await?;
    teller.done("table flights created over POST /v1/ops/query");

    teller.step("opening a live stream");
    let mut stream = http::get(format!("{}/v1/stream?table=flights", system.url)).events().await?;
    let ready = stream.next(Duration::from_secs(10)).await?.context("the stream ended at once")?;
    ensure!(ready.kind == "ready", "the stream began with {ready:?}");
    teller.done("a live stream is open: GET /v1/stream?table=flights");

    let text = std::fs::read_to_string(workspace::root()?.join(FLIGHTS)).with_context(|| FLIGHTS.to_owned())?;
    let lines = text.lines().collect::<Vec<_>>();
    teller.step(&format!("ingesting {} flights", lines.len()));
    let began = Instant::now();
    let (mut accepted, streamed) = (0, tokio::spawn(first_rows(stream, 3, lines.len())));
    for rows in lines.chunks(REQUEST_ROWS) {
        let reply = http::post(format!("{}/v1/ingest?table=flights", system.url), rows.join("\n"))
            .header("content-type", "application/x-ndjson")
            .send()
            .await?;
        ensure!(reply.status.is_success(), "ingest: {} {}", reply.status, reply.text());
        accepted += reply.json()?["accepted"].as_u64().unwrap_or(0);
        teller.progress(&format!("{accepted} of {}", lines.len()));
    }
    ensure!(accepted == lines.len() as u64, "{accepted} of {} rows were accepted", lines.len());
    let rate = per_second(lines.len(), began.elapsed());
    let build = if system.optimised { "" } else { " (an unoptimised build)" };
    teller.done(&format!("{accepted} flights accepted and durable in the queue: {rate} rows/s from one client{build}"));

    teller.step("waiting until every row is in ClickHouse");
    let expected = accepted;
    until(Duration::from_secs(60), "every flight to be in ClickHouse", || async move {
        let count = system.sql("SELECT toUInt32(count()) AS n FROM flights").await?[0]["n"].as_u64();
        if count == Some(expected) { Ok(()) } else { bail!("{count:?} of {expected} rows") }
    })
    .await?;
    let all = began.elapsed().as_secs_f64();
    teller.done(&format!("all {expected} rows are in ClickHouse, {all:.1} s after the first request"));

    let (rows, seen) = streamed.await?.context("the live stream")?;
    teller.say(&format!("✓ the live stream showed {seen} rows meanwhile; the first:"));
    rows.iter().for_each(|row| teller.say(&format!("    {row}")));

    let began = Instant::now();
    let reply = http::post(format!("{}/v1/query?table=flights", system.url), top_routes().to_string())
        .header("content-type", "application/json")
        .send()
        .await?;
    ensure!(reply.status.is_success(), "query: {} {}", reply.status, reply.text());
    let millis = began.elapsed().as_secs_f64() * 1_000.0;
    teller.say(&format!("✓ routes with the most delay, over POST /v1/query ({millis:.1} ms):"));
    teller.say(&format!("    {:<12} {:>8} {:>14} {:>12}", "route", "flights", "delay (min)", "mean"));
    let table = reply.json()?;
    let routes = table.as_array().context("the query's answer is no array")?;
    ensure!(!routes.is_empty(), "the query found no route");
    for row in routes {
        let text = |key: &str| row[key].as_str().map_or_else(|| row[key].to_string(), str::to_owned);
        let mean = row["mean"].as_f64().unwrap_or_default();
        let route = format!("{} → {}", text("origin"), text("destination"));
        teller.say(&format!("    {route:<12} {:>8} {:>14} {mean:>12.1}", text("flights"), text("minutes")));
    }
    Ok(())
}

fn top_routes() -> Value {
    json!({
        "columns": ["origin", "destination"],
        "aggregations": [
            { "fn": "count", "column": "*", "alias": "flights" },
            { "fn": "sum", "column": "delay", "alias": "minutes" },
            { "fn": "avg", "column": "delay", "alias": "mean" },
        ],
        "group_by": ["origin", "destination"],
        "order_by": [{ "column": "minutes", "dir": "desc" }],
        "limit": 5,
    })
}

/// Follows the stream until it has shown `all` rows; gives the first few.
async fn first_rows(mut stream: http::Events, few: usize, all: usize) -> Result<(Vec<String>, usize)> {
    let (mut rows, mut seen) = (Vec::new(), 0);
    while seen < all {
        let event = stream.next(Duration::from_secs(60)).await?.context("it ended")?;
        match event.kind.as_str() {
            "row" if rows.len() < few => {
                rows.push(event.data);
                seen += 1;
            }
            "row" => seen += 1,
            "gap" => bail!("it missed rows: {}", event.data),
            _ => {}
        }
    }
    Ok((rows, seen))
}

fn per_second(rows: usize, took: Duration) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "shown only"
    )]
    let rate = (rows as f64 / took.as_secs_f64().max(1e-9)) as u64;
    rate
}

/// What to try by hand, with this run's addresses.
pub(crate) fn what_next(system: &System, teller: &mut Teller) {
    let System { url, key_file, .. } = system;
    teller.say(&format!(
        r#"
Try next:

  # one event; the answer is 200 once it is on disk
  curl -s '{url}/v1/ingest?table=flights' -H 'content-type: application/json' \
    -d '{{"date":"2001-09-01 12:00:00","delay":7,"distance":337,"origin":"SFO","destination":"LAX"}}'

  # watch rows come in (leave it running and post the event again)
  curl -sN '{url}/v1/stream?table=flights'

  # ask: the latest delays out of San Francisco
  curl -s '{url}/v1/query?table=flights' -H 'content-type: application/json' \
    -d '{{"columns":["date","destination","delay"],"filters":[{{"column":"origin","op":"eq","value":"SFO"}}],"order_by":[{{"column":"date","dir":"desc"}}],"limit":5}}'

  # a bad record is refused by name, the good one beside it is kept
  curl -s '{url}/v1/ingest?table=flights' -H 'content-type: application/x-ndjson' \
    --data-binary $'{{"date":"2001-09-01 12:01:00","delay":1,"distance":1,"origin":"SFO","destination":"OAK"}}\n{{"date":"2001-09-01 12:02:00","dely":1}}\n'

  # SQL, for the operator
  curl -s '{url}/v1/ops/query' -H "authorization: Operator $(cat {key_file})" \
    -H 'content-type: application/json' -d '{{"sql":"SELECT origin, count() AS n FROM flights GROUP BY origin ORDER BY n DESC LIMIT 3"}}'

  curl -s {url}/readyz; echo; curl -s {url}/metrics | grep wavehouse_ | head"#
    ));
}
