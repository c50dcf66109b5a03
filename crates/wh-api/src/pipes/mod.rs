//! Pipes: named statements with typed parameters, which roles may run.
//!
//! `pipes.json` is read whole into a [`PipeSet`]; a call binds its values as ClickHouse's own query parameters (decision
//! D26), so that no value ever becomes text of a statement. Whether a pipe reads or writes is ClickHouse's word.

mod caller;
mod document;
mod file;
mod finding;
mod given;
mod handler;
mod kind;
mod loose;
mod parameter;
mod pipe;
mod refused;
mod run;
mod set;
mod template;
mod views;
mod wire;

pub use finding::PipeFinding;
pub use set::{PipeSet, Pipes};

pub(crate) use handler::call;
pub(crate) use views::{PipesView, definition, definitions, list};
