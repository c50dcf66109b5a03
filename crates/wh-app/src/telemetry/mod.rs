//! What the process says about itself: logs to standard error, metrics for whoever asks. Traces come in a later part.

mod logs;
mod recorder;

pub use logs::{LogsError, install as install_logs};
pub(crate) use recorder::{Metrics, install as install_metrics};
