//! kill -9: a child process claims, commits and releases, and tells what was answered; it is killed in the middle of it.

use super::{Acked, Answer, run};
use anyhow::{Context as _, ensure};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};
use wh_dedupe::{Dedupe, log, sled};

/// The argument that makes the test binary a writer.
const WRITER: &str = "--crash-dedupe-writer";

/// Which store is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Log,
    Sled,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Sled => "sled",
        }
    }

    /// Opens a folder as soon as it is free: a process that another test starts at this moment holds a copy of the lock
    /// between its fork and its exec.
    async fn open_soon(self, dir: &Path) -> anyhow::Result<Arc<dyn Dedupe>> {
        let mut tries = 0;
        loop {
            match self.open(dir).await {
                Err(error) if tries < 500 && error.class() == wh_types::Class::Conflict => tries += 1,
                opened => return Ok(opened?),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn open(self, dir: &Path) -> wh_dedupe::Result<Arc<dyn Dedupe>> {
        if self == Self::Sled {
            let mut options = sled::Options::new(dir);
            options.sweep_every = Duration::from_millis(50);
            return Ok(Arc::new(sled::Dedupe::open(options).await?));
        }
        let mut options = log::Options::new(dir);
        // small segments, so that sealing and freeing are among what is interrupted
        options.segment_bytes = 64 * 1024;
        options.upkeep_every = Duration::from_millis(10);
        let store = log::Dedupe::open(options).await?;
        assert_eq!(store.recovery().damaged + store.recovery().missing, 0, "{:?}", store.recovery());
        Ok(Arc::new(store))
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// What the child does when it was started as a writer; `None`: it was not.
pub(in crate::crash) fn writer() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, kind, dir, round] = &arguments[..] else { return None };
    if first != WRITER {
        return None;
    }
    let kind = if kind == Kind::Sled.name() { Kind::Sled } else { Kind::Log };
    // it never ends by itself but by a failure
    let failed = write(kind, Path::new(dir), round.parse().unwrap_or(0)).err();
    let why = failed.map_or_else(|| "the store failed".to_owned(), |error| format!("{error:#}"));
    drop(writeln!(std::io::stderr(), "the writer ended: {why}"));
    Some(ExitCode::FAILURE)
}

fn write(kind: Kind, dir: &Path, round: u64) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let store = kind.open_soon(dir).await?;
        let report = Arc::new(|answer: Answer| {
            // a line goes out whole or not at all: it is shorter than what a pipe takes at once
            if std::io::stdout().lock().write_all(format!("{answer}\n").as_bytes()).is_err() {
                std::process::exit(1);
            }
        });
        run(store, round, report).await;
        Ok(())
    })
}

/// Kills a writer of the log so many times.
pub(super) fn log(rounds: u64) -> anyhow::Result<()> {
    killed(Kind::Log, rounds)
}

/// The same with sled.
pub(super) fn sled(rounds: u64) -> anyhow::Result<()> {
    killed(Kind::Sled, rounds)
}

fn killed(kind: Kind, rounds: u64) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let store = dir.path().join("dedupe");
    // what a failure left is kept, to be looked into
    rounds_in(kind, rounds, &store).map_err(|error| error.context(format!("see {}", dir.keep().display())))
}

fn rounds_in(kind: Kind, rounds: u64, dir: &Path) -> anyhow::Result<()> {
    let mut acked = Acked::default();
    let runtime = runtime()?;
    for round in 0..rounds {
        let before = acked.len();
        // earlier and later in the life of a writer
        let lines = [40, 1_500, 400, 3_000, 800][round as usize % 5] / if kind == Kind::Sled { 5 } else { 1 };
        write_until_killed(kind, dir, round, lines, &mut acked)?;
        let checked = runtime.block_on(async {
            let store = kind.open_soon(dir).await?;
            acked.check(&*store).await?;
            store.close().await;
            anyhow::Ok(())
        });
        checked.with_context(|| format!("after kill {round}"))?;
        ensure!(acked.len() > before, "round {round} claimed nothing");
    }
    Ok(())
}

fn write_until_killed(kind: Kind, dir: &Path, round: u64, lines: usize, acked: &mut Acked) -> anyhow::Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(WRITER)
        .arg(kind.name())
        .arg(dir)
        .arg(round.to_string())
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
