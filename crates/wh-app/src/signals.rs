//! Signals: the first SIGTERM or SIGINT stops, a second one ends at once, SIGHUP only says that it does nothing yet.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

/// The signals of this process, taken over from the moment this is made.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Returns at the next signal that asks to stop.
    pub(crate) async fn stop(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.hang_up.recv() => {}
            }
            info!(
                "SIGHUP is ignored: a changed configuration needs a restart; secret files and pipes are read again anyway"
            );
        }
    }
}
