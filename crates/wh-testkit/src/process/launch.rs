//! What a process is started with.

use super::{Process, orphan, spawner};
use anyhow::{Context, Result};
use std::{
    ffi::{OsStr, OsString},
    fs::OpenOptions,
    path::PathBuf,
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// A process to start. The `WH_*` variables of this process are not inherited: a test gives what it means.
#[derive(Debug)]
pub struct Launch {
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    dir: Option<PathBuf>,
    log: Option<PathBuf>,
    also: Vec<PathBuf>,
    noise: Option<&'static str>,
    stdin_open: bool,
}

impl Launch {
    pub(super) fn new(name: String, program: PathBuf) -> Self {
        Self {
            name,
            program,
            args: Vec::new(),
            env: Vec::new(),
            dir: None,
            log: None,
            also: Vec::new(),
            noise: None,
            stdin_open: false,
        }
    }

    /// One argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Several arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// One environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// The folder it runs in; else this process's own.
    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// The file its output is appended to; else one in a temporary folder.
    #[must_use]
    pub fn log_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(path.into());
        self
    }

    /// A file that the process itself logs to, to be shown too when the test fails.
    #[must_use]
    pub fn shows(mut self, path: impl Into<PathBuf>) -> Self {
        self.also.push(path.into());
        self
    }

    /// Leaves lines with this text out of what is shown.
    #[must_use]
    pub fn hides(mut self, noise: &'static str) -> Self {
        self.noise = Some(noise);
        self
    }

    /// Keeps its standard input open until [`Process::close_stdin`] or the end of this process. Else it reads nothing.
    #[must_use]
    pub fn stdin_open(mut self) -> Self {
        self.stdin_open = true;
        self
    }

    /// Starts it. It may not be ready yet: see [`Process::ready`] and [`Process::listens`].
    ///
    /// # Errors
    /// The program or its log file cannot be opened.
    pub fn start(self) -> Result<Process> {
        let scratch = if self.log.is_none() { Some(TempDir::with_prefix("wh-process-")?) } else { None };
        let log = match (self.log, &scratch) {
            (Some(path), _) => path,
            (None, Some(dir)) => dir.path().join("output.log"),
            (None, None) => unreachable!("a scratch folder was made"),
        };
        let output = OpenOptions::new().create(true).append(true).open(&log);
        let output = output.with_context(|| format!("cannot open {}", log.display()))?;
        let mut command = Command::new(&self.program);
        command
            .args(self.args)
            .stdin(if self.stdin_open { Stdio::piped() } else { Stdio::null() })
            .stdout(output.try_clone()?)
            .stderr(output);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"WH_")) {
            command.env_remove(name);
        }
        command.envs(self.env);
        if let Some(dir) = self.dir {
            command.current_dir(dir);
        }
        orphan::never(&mut command);
        // A Ctrl-C in the terminal is for who started the child: it stops the child in order.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = spawner::spawn(command)
            .with_context(|| format!("cannot start {} ({})", self.name, self.program.display()))?;
        let stdin = child.stdin.take();
        Ok(Process { name: self.name, child, stdin, log, also: self.also, noise: self.noise, _scratch: scratch })
    }
}
