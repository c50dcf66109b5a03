//! Exit codes, documented in `docs/guide/configuration.md`.

use std::process::ExitCode;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// As asked.
    Ok,
    /// It could not start or go on, or was told twice to stop.
    Failure,
    /// The command line is wrong.
    Usage,
    /// The configuration is refused.
    Config,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Ok => Self::from(0),
            Exit::Failure => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Config => Self::from(64),
        }
    }
}
