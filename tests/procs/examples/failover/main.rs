//! Measures how soon rows flow again when processes come and go: `cargo xtask bench failover` builds and runs it.
//!
//! Each figure is the median of some runs on one nats-server, beside what it should be and what another gateway of this
//! kind takes for it. Two lines have no aim: they say what the same takes where nobody leaves.

#![expect(clippy::print_stdout, reason = "it prints its table")]

mod figure;
mod figures;
mod listener;
mod load;

use anyhow::{Context, Result};
use figure::{Figure, heading};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let runs: usize = args.next().map_or(Ok(10), |text| text.parse()).context("runs: a number")?;
    let (runs, only) = (runs.max(1), args.collect::<Vec<_>>());
    let chosen = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    let s = Duration::from_secs;
    heading(runs);
    if chosen("kill") {
        Figure::new("rows of 16 tables to ClickHouse, nobody leaving", "s", figures::quiet(runs).await?).print();
        let defaults = figures::kill(runs, s(15), s(10)).await?;
        Figure::new("kill -9 to all rows there: lease 15 s, pin 10 s", "s", defaults).aim(17.0).theirs(18.0).print();
        let short = figures::kill(runs, s(3), s(10)).await?;
        Figure::new("kill -9 to all rows there: lease 3 s, pin 10 s", "s", short).aim(10.5).theirs(10.1).print();
        let shortest = figures::kill(runs, s(3), s(5)).await?;
        Figure::new("kill -9 to all rows there: lease 3 s, pin 5 s", "s", shortest).aim(5.5).print();
    }
    if chosen("join") {
        let (splits, handovers) = figures::join(runs).await?;
        Figure::new("start of a third process to an even split", "s", splits).aim(2.5).theirs(3.0).print();
        Figure::new("handover of a unit with nothing in flight", "ms", handovers).aim(50.0).print();
    }
    if chosen("stop") {
        let (calm, stopped) = figures::stop(runs).await?;
        Figure::new("the slowest row of 16 tables to ClickHouse, nobody leaving", "ms", calm).print();
        Figure::new("the same around a clean stop of an owner of half", "ms", stopped).aim(90.0).theirs(90.0).print();
    }
    if chosen("restart") {
        let figure = figures::restart(runs, s(15), s(10)).await?;
        Figure::new("lone process: kill -9 and start to all rows there, defaults", "s", figure).print();
        let figure = figures::restart(runs, s(3), s(5)).await?;
        Figure::new("the same with lease 3 s, pin 5 s", "s", figure).print();
    }
    if chosen("membership") {
        for members in [8, 64] {
            let [writes, reads] = figures::membership(members).await?;
            Figure::new(format!("lease writes per process, {members} members of 64 units"), "/s", vec![writes]).print();
            Figure::new(format!("lease reads per process, {members} members of 64 units"), "/s", vec![reads]).print();
        }
    }
    Ok(())
}
