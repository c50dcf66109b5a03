//! kill -9: a child process writes and tells what was answered; it is killed in the middle of it.

use super::{
    Keeps,
    acked::{Acked, Answer},
    workload,
};
use anyhow::{Context as _, ensure};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::Arc,
};
use wh_mq::{Broker as _, embedded};

/// The argument that makes the test binary a writer.
const WRITER: &str = "--crash-writer";
const EVERYTHING: &str = "everything";

fn options(dir: &Path, keeps: Keeps) -> embedded::Options {
    let mut options = embedded::Options::new(dir);
    options.shards = 3;
    // what the check holds comes once, however busy the machine is
    options.ack_wait = std::time::Duration::from_secs(600);
    // small segments, so that sealing and freeing are among what is interrupted
    options.segment_bytes = 512 * 1024;
    options.upkeep_every = std::time::Duration::from_millis(20);
    keeps.set(&mut options);
    options
}

/// What the child does when it was started as a writer; `None`: it was not.
pub(super) fn writer() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, dir, round, keeps] = &arguments[..] else { return None };
    if first != WRITER {
        return None;
    }
    let keeps = if keeps == EVERYTHING { Keeps::Everything } else { Keeps::Nothing };
    // it never ends by itself but by a failure
    let failed = write(Path::new(dir), round.parse().unwrap_or(0), keeps).err();
    let why = failed.map_or_else(|| "the queue failed".to_owned(), |error| format!("{error:#}"));
    drop(writeln!(std::io::stderr(), "the writer ended: {why}"));
    Some(ExitCode::FAILURE)
}

fn write(dir: &Path, round: u64, keeps: Keeps) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let broker = open_soon(dir, keeps).await?;
        let report: workload::Report = Arc::new(|answer| {
            // a line goes out whole or not at all: it is shorter than what a pipe takes at once
            let line = format!("{answer}\n");
            if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
                std::process::exit(1);
            }
        });
        workload::run(Arc::new(broker), round, report).await;
        Ok(())
    })
}

/// Opens the folder as soon as it is free: a process that another test starts at this moment holds a copy of the lock
/// between its fork and its exec.
async fn open_soon(dir: &Path, keeps: Keeps) -> anyhow::Result<embedded::Broker> {
    let mut tries = 0;
    loop {
        match embedded::Broker::open(options(dir, keeps)).await {
            Err(error) if tries < 500 && error.to_string().contains("is used by") => tries += 1,
            opened => return Ok(opened?),
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// Kills a writer so many times.
pub(super) fn rounds(rounds: u64, keeps: Keeps) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let queue = dir.path().join("queue");
    // what a failure left is kept, to be looked into
    run(rounds, keeps, &queue).map_err(|error| error.context(format!("see {}", dir.keep().display())))
}

fn run(rounds: u64, keeps: Keeps, queue: &Path) -> anyhow::Result<()> {
    let mut acked = Acked::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for round in 0..rounds {
        let before = acked.stored();
        // earlier and later in the life of a writer
        let lines = [40, 3_000, 400, 9_000, 1_200][round as usize % 5];
        write_until_killed(queue, round, keeps, lines, &mut acked)?;
        runtime
            .block_on(async {
                let broker = open_soon(queue, keeps).await?;
                ensure!(broker.recovery().damage_count == 0, "{:?}", broker.recovery());
                acked.check(&broker, keeps).await?;
                broker.close().await;
                anyhow::Ok(())
            })
            .with_context(|| format!("after kill {round}"))?;
        ensure!(acked.stored() > before, "round {round} stored nothing");
    }
    Ok(())
}

fn write_until_killed(dir: &Path, round: u64, keeps: Keeps, lines: usize, acked: &mut Acked) -> anyhow::Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(WRITER)
        .arg(dir)
        .arg(round.to_string())
        .arg(if keeps == Keeps::Everything { EVERYTHING } else { "nothing" })
        .stdout(Stdio::piped())
        .spawn()?;
    let out = BufReader::new(child.stdout.take().context("no pipe")?);
    let mut seen = 0;
    for line in out.lines() {
        acked.note(&line?.parse::<Answer>()?);
        seen += 1;
        if seen == lines {
            child.kill()?;
        }
    }
    child.wait()?;
    ensure!(seen >= lines, "the writer ended by itself after {seen} answers");
    Ok(())
}
