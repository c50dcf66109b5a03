//! Composition by role: build, serve, stop, telemetry.
//!
//! [`App::start`] runs what a configuration describes inside any tokio runtime; [`cli::main`] is the whole program
//! around it. Here, and nowhere else, backends are chosen. No request is judged here and no row is moved.

mod about;
mod app;
mod backend;
mod cache;
pub mod cli;
mod clickhouse;
mod cluster;
mod counted;
mod data_dir;
mod dedupe;
mod dlq_cli;
mod doctor;
mod doctor_cache;
mod doctor_clickhouse;
mod doctor_nats;
mod error;
mod exit;
mod front;
mod health;
mod id_columns;
mod instance;
mod life;
mod linger;
mod membership;
mod metrics;
mod mq_cli;
mod nats;
mod parts;
mod peers;
mod pipes;
mod place;
mod queue;
mod queue_report;
mod run;
mod secrets;
mod serve;
mod signals;
pub mod telemetry;

pub use about::About;
pub use app::{App, Running};
pub use data_dir::DataDirError;
pub use error::{RunError, StartError};
pub use exit::Exit;
pub use pipes::PipesError;
pub use serve::ListenError;

pub(crate) use run::run;
