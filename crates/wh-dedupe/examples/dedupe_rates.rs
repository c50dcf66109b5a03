//! Measures the embedded store: keys a second with many known, beside what the disk does with the same bytes; memory,
//! disk and the time of a reopening.
//!
//! `cargo run --profile quick -p wh-dedupe --features log --example dedupe_rates -- [folder] [millions known]`
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::{error::Error, os::unix::fs::FileExt, path::PathBuf, sync::Arc, time::Duration};
use wh_dedupe::{
    Dedupe as _, Retention, Row, Scope, Under, Verdict,
    log::{Dedupe, Options},
};
use wh_types::{BlockId, Clock, Epoch, OsEntropy, SystemClock, Table, Tasks, Tenant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const TASKS: usize = 16;
const KEYS: usize = 500;
const ROUNDS: usize = 5;
/// Keys of a round.
const ROUND: usize = 1_000_000;

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let base = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let millions: usize = args.next().map_or(Ok(5), |text| text.parse())?;
    let dir = tempfile::Builder::new().prefix("wh-dedupe-rates").tempdir_in(base)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(dir.path(), millions))
}

async fn measure(dir: &std::path::Path, millions: usize) -> Outcome<()> {
    let before = resident()?;
    let store = Arc::new(Dedupe::open(Options::new(dir.join("store"))).await?);
    println!("{TASKS} tasks, calls of {KEYS} keys of 36 bytes, each reserved and committed, both durable");
    for million in 0..millions {
        claim(&store, million, &("new", true)).await?;
    }
    println!(
        "{millions} million keys known; keys are made at {:.0} a second, which is not in the figures\n",
        making()?
    );
    println!(
        "{:>6} {:>14} {:>10} {:>14} {:>10} {:>20} {:>12}",
        "round", "new, keys/s", "CPU us/key", "known, keys/s", "CPU us/key", "disk alone, keys/s", "new / disk"
    );
    for round in 0..ROUNDS {
        let fresh = claim(&store, millions + round, &("new", true)).await?;
        let known = claim(&store, round % millions, &("known", false)).await?;
        let disk = disk_alone(dir)?;
        println!(
            "{round:>6} {:>14.0} {:>10.2} {:>14.0} {:>10.2} {disk:>20.0} {:>12.2}",
            fresh.rate,
            fresh.cpu,
            known.rate,
            known.cpu,
            fresh.rate / disk
        );
    }
    let (usage, memory) = (store.usage(), resident()?.saturating_sub(before));
    let keys = usage.known as f64;
    println!(
        "\n{} known: memory {} MiB in all, tables {} MiB, {:.1} bytes a key; disk {} MiB, {:.1} bytes a key",
        usage.known,
        memory >> 20,
        usage.table_bytes >> 20,
        usage.table_bytes as f64 / keys,
        usage.disk_bytes >> 20,
        usage.disk_bytes as f64 / keys
    );
    // 1,024 tables of 131,072 places of 21 bytes hold up to 114,688 keys each
    let places = 1_024.0 * 131_072.0;
    println!(
        "at 100 million: tables {:.2} GiB; disk {:.2} GiB",
        places * 21.0 / f64::from(1 << 30),
        usage.disk_bytes as f64 / keys * 1e8 / f64::from(1 << 30)
    );
    store.close().await;
    drop(store);
    let before = cpu()?;
    let store = Dedupe::open(Options::new(dir.join("store"))).await?;
    let recovery = store.recovery();
    println!(
        "reopened: {} known in {:?}, {:.0} keys/s, {:.2} s of processor time",
        recovery.known,
        recovery.took,
        recovery.known as f64 / recovery.took.as_secs_f64(),
        cpu()? - before
    );
    store.close().await;
    Ok(())
}

/// Claims a million keys, and commits them where they are new; gives keys a second. The keys are made before.
async fn claim(store: &Arc<Dedupe>, million: usize, (what, new): &(&str, bool)) -> Outcome<Rate> {
    let calls = (0..TASKS).map(|task| calls(million, task)).collect::<Outcome<Vec<Calls>>>()?;
    let (began, before) = (SystemClock.now(), cpu()?);
    let tasks = Tasks::new();
    let mut joined = Vec::new();
    for calls in calls {
        let (store, new) = (Arc::clone(store), *new);
        joined.push(tasks.spawn("claim", async move { of_task(&store, calls, new).await }));
    }
    for task in joined {
        task.await?.map_err(|error| format!("{what}: {error}"))?;
    }
    let rate = ROUND as f64 / began.elapsed().as_secs_f64();
    Ok(Rate { rate, cpu: (cpu()? - before) / ROUND as f64 * 1e6 })
}

/// Keys a second, and microseconds of processor time a key.
struct Rate {
    rate: f64,
    cpu: f64,
}

/// The rows of each of a task's calls.
type Calls = Vec<Vec<Row>>;

fn calls(million: usize, task: usize) -> Outcome<Calls> {
    let scope = Scope::new(&Tenant::default(), &Table::new("events")?);
    let row = |call: usize, n: usize| {
        Ok(Row::new(scope.event(&format!("{million:08}-aaaa-bbbb-{task:04}-{call:06}-{n:05}"))?))
    };
    (0..ROUND / TASKS / KEYS).map(|call| (0..KEYS).map(|n| row(call, n)).collect()).collect()
}

async fn of_task(store: &Dedupe, calls: Calls, new: bool) -> Outcome<()> {
    for rows in calls {
        let lease = Duration::from_secs(30);
        let under = Under { stream: 0, epoch: Epoch(1), block: BlockId::draw(&OsEntropy), lease };
        let mut tickets = Vec::with_capacity(KEYS);
        let mut known = 0;
        for verdict in store.reserve(&rows, &under).await? {
            match verdict {
                Verdict::New(ticket) => tickets.push(ticket),
                Verdict::Seen { .. } => known += 1,
                Verdict::Busy { .. } | Verdict::Lapsed { .. } | Verdict::Same(_) => return Err("not new".into()),
            }
        }
        if tickets.len() != if new { KEYS } else { 0 } || known + tickets.len() != KEYS {
            return Err(format!("{} new, {known} known", tickets.len()).into());
        }
        let outcomes = store.commit(&tickets, Retention::For(Duration::from_secs(86_400))).await;
        outcomes.into_iter().collect::<Result<Vec<()>, _>>()?;
    }
    Ok(())
}

/// Keys made a second, on one thread.
fn making() -> Outcome<f64> {
    let began = SystemClock.now();
    let made: usize = (0..TASKS).map(|task| calls(0, task).map(|calls| calls.len() * KEYS)).sum::<Outcome<usize>>()?;
    Ok(made as f64 / began.elapsed().as_secs_f64())
}

/// What the disk does with the bytes of as many keys, in groups of the size that [`TASKS`] calls make at most.
fn disk_alone(dir: &std::path::Path) -> Outcome<f64> {
    let group = vec![1_u8; TASKS * KEYS * 16];
    let file = std::fs::File::create(dir.join("alone"))?;
    let began = SystemClock.now();
    let groups = 2 * ROUND / (TASKS * KEYS);
    for n in 0..groups {
        file.write_all_at(&group, (n * group.len()) as u64)?;
        file.sync_data()?;
    }
    Ok(ROUND as f64 / began.elapsed().as_secs_f64())
}

fn resident() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1_024)
}

/// Seconds of processor time that this process has used. Linux counts them in hundredths.
fn cpu() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // the second field is the name, in parentheses; 14 and 15 of all are user and system time
    let fields = stat.rsplit(')').next().ok_or("no stat")?.split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}
