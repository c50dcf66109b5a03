//! Logs: one subscriber for the process, to standard error.

use std::io::IsTerminal;
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
    let layer = fmt::layer().with_writer(std::io::stderr);
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
