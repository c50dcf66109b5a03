//! Outages: what is asked of a sink that fails, what is held, and how it goes on.

use super::*;
use crate::{Insert, Sink, SinkError};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use std::collections::HashMap;
use wh_types::Mono;

fn recorder() -> PrometheusRecorder {
    PrometheusBuilder::new().build_recorder()
}

/// A gauge or a counter as it stands, over all its labels.
fn value(recorder: &PrometheusRecorder, name: &str) -> f64 {
    let text = recorder.handle().render();
    let of = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    text.lines().filter(of).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

fn small() -> Options {
    Options { batch_rows: 10, batch_max_rows: 10, held_rows: 0, ..Options::default() }
}

const TABLES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

#[tokio::test(start_paused = true)]
async fn an_hour_of_outage_costs_few_requests_and_leaves_no_dead_letter() {
    let recorder = recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let mut bench = Bench::new(small());
    bench.sink.fail_all(Some(Failure::Unavailable));
    for minute in 0..60 {
        for name in TABLES {
            bench.publish(name, minute * 10, minute * 10 + 10).await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    // the wait between probes grows to between 15 and 30 s
    let asked = bench.sink.asked();
    assert!(asked < 3_600 / 15 + 20, "{asked} requests in an hour");
    assert_eq!(value(&recorder, "wavehouse_ingest_units_paused"), 4.0);
    assert_eq!(value(&recorder, "wavehouse_ingest_backoffs"), 1.0);
    let held = value(&recorder, "wavehouse_ingest_rows_held");
    assert!(held > 0.0 && held <= 4.0 * 20.0, "{held} rows are held, the rest waits in the queue");
    bench.sink.fail_all(None);
    let began = SystemClock.now();
    let all = tokio::time::timeout(Duration::from_secs(35), bench.sink.wait_for(60 * 10 * TABLES.len())).await;
    assert!(all.is_ok(), "the next probe is at most 30 s away");
    assert!(began.elapsed() < Duration::from_secs(31), "and then nothing waits: {:?}", began.elapsed());
    assert_eq!(value(&recorder, "wavehouse_ingest_units_paused"), 0.0);
    assert_eq!(value(&recorder, "wavehouse_ingest_backoffs"), 0.0);
    assert!(bench.letters().await.is_empty());
    assert_eq!(bench.stopped().await, 0);
    for name in TABLES {
        assert_eq!(bench.rows(name), numbers(0..600), "{name}");
    }
    assert_eq!(value(&recorder, "wavehouse_ingest_rows_held"), 0.0);
}

#[tokio::test(start_paused = true)]
async fn the_success_of_one_probe_wakes_every_table_at_once() {
    let mut bench = Bench::new(small());
    bench.sink.fail_all(Some(Failure::Denied));
    for name in TABLES {
        bench.publish(name, 0, 10).await;
    }
    tokio::time::sleep(Duration::from_secs(100)).await;
    bench.sink.fail_all(None);
    bench.sink.wait_for(1).await;
    let first = SystemClock.now();
    bench.sink.wait_for(10 * TABLES.len()).await;
    assert!(first.elapsed() < Duration::from_millis(5), "{:?}", first.elapsed());
    assert_eq!(bench.stopped().await, 0);
}

/// Tenant `0` has one pool, everybody else another.
#[derive(Debug)]
struct Two {
    first: Arc<Memory>,
    other: Arc<Memory>,
}

impl Sinks for Two {
    fn sink(&self, tenant: &Tenant) -> Option<Arc<dyn Sink>> {
        Some(if *tenant == Tenant::default() { self.first.clone() } else { self.other.clone() })
    }

    fn beside(&self, pool: &str) -> Option<Vec<(Tenant, Arc<dyn Sink>)>> {
        let (tenant, sink) = if pool == self.first.pool() {
            (Tenant::new("second").unwrap(), self.other.clone())
        } else {
            (Tenant::default(), self.first.clone())
        };
        Some(vec![(tenant, sink)])
    }
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_others_use_goes_on_while_a_pool_fails_and_its_tables_hold_a_part() {
    let recorder = recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (first, other) = (Arc::new(Memory::named("first")), Arc::new(Memory::named("other")));
    let sinks = Arc::new(Two { first: first.clone(), other: other.clone() });
    let mut bench = Bench::over(Options { batch_rows: 100, held_rows: 0, ..small() }, first.clone(), sinks);
    first.fail_all(Some(Failure::Unavailable));
    // more than all units may hold
    for block in 0..30 {
        for name in TABLES {
            bench.publish(name, block * 10, block * 10 + 10).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    bench.tenant = Tenant::new("second").unwrap();
    for block in 0..20 {
        for name in TABLES {
            bench.publish(name, block * 10, block * 10 + 10).await;
        }
    }
    let all = tokio::time::timeout(Duration::from_secs(30), other.wait_for(200 * TABLES.len())).await;
    assert!(all.is_ok(), "the other pool's rows flow");
    assert_eq!(value(&recorder, "wavehouse_ingest_units_paused"), 0.0);
    for name in TABLES {
        assert_eq!(other.rows(&table(name)), numbers(0..200), "{name}");
    }
    first.fail_all(None);
    first.wait_for(300 * TABLES.len()).await;
    assert_eq!(bench.stopped().await, 0);
    for name in TABLES {
        let mut rows = bench.rows(name);
        rows.sort();
        assert_eq!(rows, numbers(0..300), "{name}: what went back comes again, perhaps in another order");
    }
}

#[tokio::test(start_paused = true)]
async fn many_mostly_idle_tables_cost_little_and_leave_nothing_behind() {
    let recorder = recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let mut bench = Bench::new(Options::default());
    let names: Vec<String> = (0..5_000).map(|n| format!("table_{n}")).collect();
    for round in 0..3 {
        for name in &names {
            bench.publish(name, round, round + 1).await;
        }
        bench.sink.wait_for(5_000 * (round as usize + 1)).await;
    }
    assert_eq!(bench.sink.asked(), 15_000, "one insert for each row that came alone");
    // held blocks are looked at every third of ack_wait, and tables with them
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert_eq!(value(&recorder, "wavehouse_ingest_tables_active"), 0.0);
    assert_eq!(bench.stopped().await, 0);
}

/// Never answers, and counts what it was given.
#[derive(Debug, Default)]
struct Silent(parking_lot::Mutex<HashMap<wh_types::Table, usize>>);

#[async_trait::async_trait]
impl Sink for Silent {
    fn pool(&self) -> &str {
        "silent"
    }

    async fn insert(&self, insert: Insert<'_>) -> Result<(), SinkError> {
        let rows = usize::try_from(insert.rows).unwrap();
        *self.0.lock().entry(insert.table.clone()).or_default() += rows;
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_bounded_by_configuration_however_many_tables_there_are() {
    let recorder = recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let options = Options { held_rows: 4_000, stop_budget: Duration::from_secs(1), ..small() };
    let silent = Arc::new(Silent::default());
    let mut bench = Bench::over(options, Arc::default(), Arc::new(silent.clone()));
    for n in 0..5_000 {
        bench.publish(&format!("table_{n}"), 0, 2).await;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let held = value(&recorder, "wavehouse_ingest_rows_held");
    assert!(held > 2_000.0 && held <= 4_000.0, "{held}");
    assert_eq!(silent.0.lock().values().sum::<usize>() as f64, held, "a unit at its share waits for nothing more");
    assert_eq!(bench.stopped().await, 10_000, "given back");
}

#[tokio::test(start_paused = true)]
async fn a_failing_table_is_asked_for_once_a_window_and_its_neighbours_do_not_wait() {
    let mut bench = Bench::new(small());
    let bad = table("bad");
    bench.sink.fail_table(Some((bad, Failure::NoTable)));
    let mut slowest = Duration::ZERO;
    let mut stored = 0;
    for round in 0..300_u32 {
        bench.publish("bad", round * 10, round * 10 + 10).await;
        let before = bench.sink.asked();
        for name in TABLES {
            bench.publish(name, round * 10, round * 10 + 10).await;
        }
        stored += 10 * TABLES.len();
        let began: Mono = SystemClock.now();
        bench.sink.wait_for(stored).await;
        slowest = slowest.max(began.elapsed());
        assert!(bench.sink.asked() - before <= TABLES.len() + 1, "round {round}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(slowest < Duration::from_millis(10), "{slowest:?}");
    let asked = bench.sink.asked() - 300 * TABLES.len();
    assert!(asked < 300 / 15 + 10, "{asked} tries on the failing table in five minutes");
    assert!(bench.letters().await.is_empty());
    bench.sink.fail_table(None);
    bench.sink.wait_for(stored + 3_000).await;
    assert_eq!(bench.stopped().await, 0);
}

#[tokio::test(start_paused = true)]
async fn tables_with_few_rows_have_at_most_one_insert_in_each_wait() {
    let mut bench = Bench::new(Options::default());
    let names: Vec<String> = (0..50).map(|n| format!("slow_{n}")).collect();
    for second in 0..120 {
        for name in &names {
            bench.publish(name, second, second + 1).await;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    bench.sink.wait_for(50 * 120).await;
    // 30 s, and the wait is 1 s
    assert!(bench.sink.asked() <= 50 * 31, "{}", bench.sink.asked());
    assert_eq!(bench.stopped().await, 0);
}
