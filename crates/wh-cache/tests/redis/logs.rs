//! What was logged by this thread's tasks.

use parking_lot::Mutex;
use std::{io, sync::Arc};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Debug, Default)]
pub(crate) struct Logs(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// Everything from here on, as long as the guard lives.
    pub(crate) fn capture() -> (Self, DefaultGuard) {
        let logs = Self::default();
        let level = tracing_subscriber::filter::LevelFilter::DEBUG;
        let format = tracing_subscriber::fmt().with_ansi(false).with_max_level(level).with_writer(logs.clone());
        let guard = tracing::subscriber::set_default(format.finish());
        (logs, guard)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }

    /// How many lines are warnings or worse.
    pub(crate) fn warnings(&self) -> usize {
        let text = self.text();
        text.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")).count()
    }
}

impl io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logs {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
