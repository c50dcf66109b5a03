//! Logs: one subscriber for the process, to standard error.

use std::io::{self, IsTerminal, Write};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};
use wh_config::{Log, LogFormat, LogLevel};

/// Logs were set up before.
#[derive(Debug, thiserror::Error)]
#[error("logs cannot be set up: {0}")]
pub struct LogsError(#[from] tracing_subscriber::util::TryInitError);

/// Sets up logs for the whole process. Panics are logged too.
///
/// # Errors
/// Somebody did so before.
pub fn install(log: Log) -> Result<(), LogsError> {
    let registry = tracing_subscriber::registry().with(EnvFilter::new(filter(log.level)));
    let layer = fmt::layer().with_writer(|| OneLine(std::io::stderr()));
    match log.format {
        LogFormat::Text => registry.with(layer.with_ansi(std::io::stderr().is_terminal())).try_init()?,
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init()?,
    }
    let to_stderr = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let words = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(place, "panic at {place}: {words}");
        if log.format == LogFormat::Text {
            to_stderr(panic);
        }
    }));
    Ok(())
}

/// Takes an event a write, as the layer gives it, and keeps it on one line: ends of lines in what others said, like
/// ClickHouse's exceptions, are escaped.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let (text, end) = match event.split_last() {
            Some((b'\n', text)) => (text, &b"\n"[..]),
            _ => (event, &b""[..]),
        };
        if !text.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            self.0.write_all(event)?;
            return Ok(event.len());
        }
        let mut line = Vec::with_capacity(event.len() + 64);
        for byte in text {
            match byte {
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                other => line.push(*other),
            }
        }
        line.extend_from_slice(end);
        self.0.write_all(&line)?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Ours at the level asked for; the HTTP libraries' own talk only from warnings on, unless all is asked for.
fn filter(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Off => "off",
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug,hyper=warn,hyper_util=warn,tower=warn",
        LogLevel::Trace => "trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Said(Arc<Mutex<Vec<u8>>>);

    impl Write for Said {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_others_said_in_several_lines_is_one_line_in_the_log() {
        let said = Said::default();
        let writer = said.clone();
        let layer = fmt::layer().with_ansi(false).with_writer(move || OneLine(writer.clone()));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let error = "Code: 27. DB::Exception: a\nRow 1:\r\nb";
            tracing::warn!(%error, "an insert failed: {error}");
            tracing::info!("the next");
        });
        let text = String::from_utf8(said.0.lock().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[0].matches(r"a\nRow 1:\r\nb").count(), 2, "{text}");
        assert!(lines[1].ends_with("the next") && text.ends_with('\n'), "{text}");
    }
}
