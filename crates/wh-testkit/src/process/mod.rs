//! A harness for real binaries: ours and the servers'.
//!
//! A child's output goes to one file, whose last lines are printed when the test fails. A child never outlives its
//! owner: dropping kills it by its own id, and the kernel kills it when this process dies first.

mod launch;
mod orphan;
mod spawner;

pub use launch::Launch;

use crate::{Probe, TimedOut, env, say::say, until};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    future::Future,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ExitStatus},
    time::Duration,
};
use tempfile::TempDir;

/// How many of a log's last lines a failure prints.
const TAIL: usize = 60;

/// A running (or ended) child process.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    log: PathBuf,
    /// Further files to show on failure.
    also: Vec<PathBuf>,
    /// Lines with this text are not worth showing.
    noise: Option<&'static str>,
    _scratch: Option<TempDir>,
}

impl Process {
    /// Describes a process to start: `name` is what messages call it.
    pub fn launch(name: impl Into<String>, program: impl Into<PathBuf>) -> Launch {
        Launch::new(name.into(), program.into())
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it ended, or `None` while it runs.
    ///
    /// # Errors
    /// The operating system cannot tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("cannot look after {}", self.name))
    }

    /// Sends SIGKILL and reaps it: a crash. No-op when it has ended.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.child.kill().with_context(|| format!("cannot kill {}", self.name))?;
        self.child.wait().with_context(|| format!("cannot reap {}", self.name))
    }

    /// Sends SIGTERM: asks it to stop.
    ///
    /// # Errors
    /// It has ended.
    pub fn terminate(&mut self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Sends SIGINT, as Ctrl-C does.
    ///
    /// # Errors
    /// It has ended.
    pub fn interrupt(&mut self) -> Result<()> {
        self.signal(Signal::INT)
    }

    /// Sends SIGHUP, which tells some servers to read their configuration again.
    ///
    /// # Errors
    /// It has ended.
    pub fn hang_up(&mut self) -> Result<()> {
        self.signal(Signal::HUP)
    }

    /// Sends SIGSTOP and waits until none of its threads runs any more: it hangs until [`Process::resume`].
    ///
    /// # Errors
    /// It has ended, or some thread goes on.
    pub fn pause(&mut self) -> Result<()> {
        self.signal(Signal::STOP)?;
        let threads = format!("/proc/{}/task", self.id());
        // a signal is sent, not taken: a thread on another core goes on for a moment. Elsewhere there is no such folder
        for _ in 0..60_000 {
            if !Path::new(&threads).exists() || all_stopped(&threads) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        bail!("{} goes on after SIGSTOP", self.name)
    }

    /// Sends SIGCONT.
    ///
    /// # Errors
    /// It has ended.
    pub fn resume(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Keeps its files from growing beyond so many bytes, or lets them grow again: beyond it writes fail, as on a disk that
    /// takes none. It must have been started so that SIGXFSZ does not end it. On Linux only.
    ///
    /// # Errors
    /// It has ended, or the system refuses.
    pub fn limit_files(&mut self, bytes: Option<u64>) -> Result<()> {
        if let Some(status) = self.ended()? {
            bail!("{} has ended ({status})\n{}", self.name, self.tail(TAIL));
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
            let Some(pid) = Pid::from_raw(i32::try_from(self.id())?) else { bail!("{} has no id", self.name) };
            let maximum = getrlimit(Resource::Fsize).maximum;
            let limit = Rlimit { current: bytes.or(maximum), maximum };
            prlimit(Some(pid), Resource::Fsize, limit).with_context(|| format!("the files of {}", self.name))?;
            Ok(())
        }
        #[cfg(not(target_os = "linux"))]
        bail!("files cannot be kept from growing to {bytes:?} here")
    }

    /// Closes its standard input, which some servers take as the order to stop.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    // A child that was not reaped keeps its id, so the signal cannot reach another process.
    fn signal(&mut self, signal: Signal) -> Result<()> {
        if let Some(status) = self.ended()? {
            bail!("{} has ended ({status})\n{}", self.name, self.tail(TAIL));
        }
        kill_process(Pid::from_child(&self.child), signal).with_context(|| format!("cannot signal {}", self.name))
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// It still runs after `within`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn wait(&mut self, within: Duration) -> Result<ExitStatus> {
        let child = &mut self.child;
        let ended = until(within, "the process ends", || {
            let ended = child.try_wait().ok().flatten();
            async move { ended }
        });
        ended.await.map_err(|late| anyhow::anyhow!("{}: {late}\n{}", self.name, self.tail(TAIL)))
    }

    /// Asks it to stop and waits; kills it when it is late.
    ///
    /// # Errors
    /// It had to be killed.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn stop(&mut self, within: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.ended()? {
            return Ok(status);
        }
        self.terminate()?;
        let status = self.wait(within).await;
        if status.is_err() {
            self.kill()?;
        }
        status
    }

    /// Waits until a condition holds, and gives up at once when the process ends first.
    ///
    /// # Errors
    /// The process ended, or the time is up; with the last lines of its log.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn ready<P, F, Fut>(&mut self, within: Duration, what: &str, mut look: F) -> Result<P::Value>
    where
        P: Probe,
        F: FnMut() -> Fut,
        Fut: Future<Output = P>,
    {
        enum Seen<T> {
            Held(T),
            Ended(ExitStatus),
        }
        let child = &mut self.child;
        let seen: Result<_, TimedOut> = until(within, what, || {
            let ended = child.try_wait().ok().flatten();
            let looking = look();
            async move {
                match ended {
                    Some(status) => Ok(Seen::Ended(status)),
                    None => looking.await.holds().map(Seen::Held),
                }
            }
        })
        .await;
        match seen {
            Ok(Seen::Held(value)) => Ok(value),
            Ok(Seen::Ended(status)) => {
                bail!("{} ended ({status}) before: {what}\n{}", self.name, self.tail(TAIL))
            }
            Err(late) => bail!("{}: {late}\n{}", self.name, self.tail(TAIL)),
        }
    }

    /// Waits until its port on 127.0.0.1 takes connections.
    ///
    /// # Errors
    /// As [`Process::ready`].
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn listens(&mut self, port: u16, within: Duration) -> Result<()> {
        self.ready(within, &format!("port {port} takes connections"), || async move {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.map(drop)
        })
        .await
    }

    /// Everything it printed so far, stdout and stderr as they came.
    #[must_use]
    pub fn log(&self) -> String {
        read_lossy(&self.log)
    }

    /// Where its output goes.
    #[must_use]
    pub fn log_file(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log, and of its own log files, with a headline each.
    #[must_use]
    pub fn tail(&self, lines: usize) -> String {
        let mut out = String::new();
        for path in std::iter::once(&self.log).chain(&self.also) {
            let text = read_lossy(path);
            let shown = |line: &&str| self.noise.is_none_or(|noise| !line.contains(noise));
            let all: Vec<&str> = text.lines().filter(shown).collect();
            let last = &all[all.len().saturating_sub(lines)..];
            out += &format!("--- {}: last {} lines of {}\n", self.name, last.len(), path.display());
            for line in last {
                out += line;
                out.push('\n');
            }
        }
        out
    }
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

/// Whether each thread under that folder of /proc is stopped (or gone, or a zombie).
fn all_stopped(threads: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(threads) else { return true };
    entries.flatten().all(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // the state follows the name, which is in parentheses and may hold any
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 't', 'Z', 'X']))
    })
}

impl Drop for Process {
    fn drop(&mut self) {
        let ended = self.child.try_wait().ok().flatten();
        if ended.is_none()
            && let Err(error) = self.kill()
        {
            say(&format!("{error:#}"));
        }
        if std::thread::panicking() || env::read(env::LOGS).is_some() {
            say(&self.tail(TAIL));
        }
    }
}

#[cfg(test)]
mod tests;
