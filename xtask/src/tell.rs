//! What the commands print. Progress goes to one line that is written over on a terminal, and to one line a step else.

use std::{
    io::{IsTerminal, Write},
    time::Instant,
};

/// Says on stderr why a command failed, with its causes.
#[expect(clippy::print_stderr, reason = "a command's last word")]
pub(crate) fn complain(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}

/// Tells what happens.
#[derive(Debug)]
pub(crate) struct Teller {
    terminal: bool,
    step: Option<(String, Instant)>,
}

#[expect(clippy::disallowed_methods, reason = "a tool measures with the machine's clock")]
impl Teller {
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stdout().is_terminal(), step: None }
    }

    /// Begins a step.
    pub(crate) fn step(&mut self, what: &str) {
        self.step = Some((what.to_owned(), Instant::now()));
        self.write(&format!("… {what}"), !self.terminal);
    }

    /// How far the step is. Shown on a terminal only: a log is not flooded.
    pub(crate) fn progress(&mut self, how_far: &str) {
        let Some((what, since)) = &self.step else { return };
        if self.terminal {
            self.write(&format!("… {what}: {how_far} ({:.0} s)", since.elapsed().as_secs_f64()), false);
        }
    }

    /// Ends the step with its result.
    pub(crate) fn done(&mut self, result: &str) {
        let took = self.step.take().map(|(_, since)| since.elapsed().as_secs_f64()).unwrap_or_default();
        self.write(&format!("✓ {result} ({took:.1} s)"), true);
    }

    /// Ends the step without a result: what went wrong is said elsewhere.
    pub(crate) fn give_up(&mut self) {
        if self.step.take().is_some() && self.terminal {
            self.write("", false);
        }
    }

    /// Plain lines.
    pub(crate) fn say(&mut self, text: &str) {
        self.write(text, true);
    }

    fn write(&self, line: &str, whole: bool) {
        let mut out = std::io::stdout().lock();
        let clear = if self.terminal { "\r\x1b[2K" } else { "" };
        // a closed pipe must not end the command
        let _closed = write!(out, "{clear}{line}{}", if whole { "\n" } else { "" });
        let _closed = out.flush();
    }
}
