//! What is wrong with a configuration, all of it at once. Never shows a secret.

use std::fmt;

/// Whether a finding stops the boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The configuration cannot be used.
    Error,
    /// It can, and someone should know this.
    Warning,
}

/// One thing that is wrong: with which key or variable, what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it stops the boot.
    pub level: Level,
    /// The key, environment variable or file it is about.
    pub subject: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do, where that is known.
    pub hint: Option<String>,
}

impl Finding {
    /// A finding that stops the boot.
    pub(crate) fn error(subject: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { level: Level::Error, subject: subject.into(), problem: problem.into(), hint: None }
    }

    /// A finding that does not.
    pub(crate) fn warning(subject: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::error(subject, problem) }
    }

    /// The same with what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.problem)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// Why a configuration is refused: every finding, one a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Findings(pub Vec<Finding>);

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.0.iter().filter(|finding| finding.level == Level::Error).count();
        write!(f, "the configuration has {errors} error{}", if errors == 1 { "" } else { "s" })?;
        self.0.iter().try_for_each(|finding| {
            let level = if finding.level == Level::Warning { "warning: " } else { "" };
            write!(f, "\n  {level}{finding}")
        })
    }
}
