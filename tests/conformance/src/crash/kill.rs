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
    // small segments, so that sealing and freeing are among what is interrupted
    options.segment_bytes = 512 * 1024;
    options.upkeep_every = std::time::Duration::from_millis(20);
    keeps.set(&mut options);
    options
}

/// What the child does when it was started as a writer; `None`: it was not.
#[must_use]
pub fn writer() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next()? != WRITER {
        return None;
    }
    let (dir, round) = (arguments.next()?, arguments.next()?.parse().ok()?);
    let keeps = if arguments.next()? == EVERYTHING { Keeps::Everything } else { Keeps::Nothing };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().ok()?;
    runtime.block_on(async {
        let broker = embedded::Broker::open(options(Path::new(&dir), keeps)).await.ok()?;
        let report: workload::Report = Arc::new(|answer| {
            // a line goes out whole or not at all: it is shorter than what a pipe takes at once
            let line = format!("{answer}\n");
            if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
                std::process::exit(1);
            }
        });
        workload::run(Arc::new(broker), round, report).await;
        Some(ExitCode::FAILURE)
    })
}

/// Kills a writer so many times.
pub(super) fn rounds(rounds: u64, keeps: Keeps) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let queue = dir.path().join("queue");
    let mut acked = Acked::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for round in 0..rounds {
        let before = acked.stored();
        // earlier and later in the life of a writer
        let lines = [40, 3_000, 400, 9_000, 1_200][round as usize % 5];
        write_until_killed(&queue, round, keeps, lines, &mut acked)?;
        runtime
            .block_on(async {
                let broker = embedded::Broker::open(options(&queue, keeps)).await?;
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
