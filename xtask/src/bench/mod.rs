//! `cargo xtask bench …`: figures, each as a ratio to a limit measured in the same run. Never a pass mark.

mod api;
mod cache;
mod dedupe;
mod failover;
mod ingest;
mod load;
mod machine;
mod nats;
mod query;
mod queue;
mod rows;
mod stream;
mod worker;

use anyhow::Result;

/// Which figures.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Bench {
    /// Requests of one event, of 500 and of 10,000: rates, times, processor time a row; reading and judging alone
    Api(api::Args),
    /// Rows from HTTP to the queue and to ClickHouse; single events from many connections
    Ingest(ingest::Args),
    /// The embedded queue and the log under it, against the disk's own limit
    Queue(queue::Args),
    /// Answers kept in memory and on Redis: hits, puts and invalidations beside a locked map and the bare client
    Cache(cache::Args),
    /// Structured queries: kept, computed and shared answers, beside a direct query and a handler that does nothing
    Query(query::Args),
    /// The embedded dedupe store, beside the disk's own limit
    Dedupe(dedupe::Args),
    /// The queue on NATS beside a bare client: rates, handovers, idle units
    Nats(nats::Args),
    /// How soon rows flow again when processes come, stop and crash
    Failover(failover::Args),
    /// Live streams: 10,000 and 100 subscribers, how late rows come and what they cost; a replay
    Stream(stream::Args),
    /// The worker: CPU a row, rows into ClickHouse beside a plain client, a bad row, many tables
    Worker,
}

/// Builds what is measured, with optimisation, and measures it.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Api(args) => api::run(args),
        Bench::Ingest(args) => ingest::run(args),
        Bench::Queue(args) => queue::run(args),
        Bench::Cache(args) => cache::run(args),
        Bench::Query(args) => query::run(args),
        Bench::Dedupe(args) => dedupe::run(args),
        Bench::Nats(args) => nats::run(args),
        Bench::Failover(args) => failover::run(args),
        Bench::Stream(args) => stream::run(args),
        Bench::Worker => worker::run(),
    }
}
