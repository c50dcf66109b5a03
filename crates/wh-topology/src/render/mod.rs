//! The port that prints a topology for the tool that will create it, and its backends. Nothing here writes a file.

mod hcl;
mod nack;
mod nats_cli;
mod terraform;
mod yaml;

pub use nack::Nack;
pub use nats_cli::{NatsCli, consumer_file, stream_file};
pub use terraform::Terraform;

use crate::{Topology, size::show_size, span::show_span};
use std::fmt::Debug;

/// One file of a rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// Its text, ending in a line feed.
    pub text: String,
    /// Whether it is a script.
    pub executable: bool,
}

/// Prints a topology for one tool.
///
/// # Contract
/// What is printed says every field of the topology, or the rendering is refused: a format never leaves out what it
/// cannot say. The same topology gives the same bytes.
pub trait Renderer: Debug + Send + Sync {
    /// What the command line calls the format.
    fn format(&self) -> &'static str;

    /// The files.
    ///
    /// # Errors
    /// [`Unsayable`]: the format cannot say a field, or not with this value.
    fn render(&self, topology: &Topology) -> Result<Vec<File>, Unsayable>;
}

/// Every backend.
pub const RENDERERS: [&dyn Renderer; 3] = [&Nack, &NatsCli, &Terraform];

/// The backend of a format.
#[must_use]
pub fn renderer(format: &str) -> Option<&'static dyn Renderer> {
    RENDERERS.into_iter().find(|renderer| renderer.format() == format)
}

/// A format cannot say what a topology holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{format} cannot say {field} of {object}: {problem}")]
pub struct Unsayable {
    /// The format.
    pub format: &'static str,
    /// The stream, durable or bucket.
    pub object: String,
    /// The field.
    pub field: &'static str,
    /// Why.
    pub problem: String,
}

/// How a rendering was made and what it holds: lines without a comment sign.
fn header(topology: &Topology, format: &str) -> Vec<String> {
    let (names, choices, sizes) = (topology.spec.names(), topology.spec.choices(), topology.sizes);
    let (partitions, shards) = (choices.partitions, choices.shards);
    let (reserved, store) = (show_size(sizes.reserved), show_size(sizes.file_store));
    vec![
        "Made by:".to_owned(),
        format!("  {} --format={format}", topology.spec.command_line("manifests")),
        "Do not edit: change the command and run it again. `wavehouse mq plan` shows what would change.".to_owned(),
        String::new(),
        format!("Partitions: {} to {}", names.partition_stream(0), names.partition_stream(partitions - 1)),
        format!("Durables on each: {} to {}", names.durable(0), names.durable(shards - 1)),
        format!("History: {}. Dead letters: {}. Leases: bucket {}.", names.history, names.dead_letters, names.bucket),
        format!("Reserved on each server that holds a copy: {reserved} of a file store of {store}."),
        format!(
            "The history keeps {}: no less than a client may be away (--history-max-age).",
            show_span(choices.history_max_age)
        ),
    ]
}

/// The header as comments.
fn commented(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |text, line| text + format!("# {line}").trim_end() + "\n")
}

#[cfg(test)]
mod tests;
