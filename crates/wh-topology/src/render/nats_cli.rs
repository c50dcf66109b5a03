//! One JSON file for each stream and durable, as `nats stream add --config` and `nats consumer add --config` take it,
//! and a shell script that applies them. The JSON is also what JetStream's own API takes.

use super::{File, Renderer, Unsayable, commented, header};
use crate::{Spec, Topology};
use serde::Serialize;

/// The backend for the nats command line.
#[derive(Clone, Copy, Debug)]
pub struct NatsCli;

const FORMAT: &str = "nats-cli";

/// The file of a stream.
#[must_use]
pub fn stream_file(stream: &str) -> String {
    format!("{stream}.json")
}

/// The file of a durable: neither name holds a dot.
#[must_use]
pub fn consumer_file(stream: &str, durable: &str) -> String {
    format!("{stream}.{durable}.json")
}

impl NatsCli {
    /// The command that writes the files into a folder.
    #[must_use]
    pub fn command_line(spec: &Spec) -> String {
        format!("{} --format={FORMAT} --output=DIR", spec.command_line("manifests"))
    }
}

impl Renderer for NatsCli {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn render(&self, topology: &Topology) -> Result<Vec<File>, Unsayable> {
        let mut files = Vec::new();
        let mut commands = String::new();
        for stream in topology.streams() {
            let name = stream_file(&stream.name);
            commands += &format!("stream {} {name}\n", stream.name);
            files.push(File { text: json(&stream, &stream.name)?, name, executable: false });
        }
        for partition in &topology.partitions {
            let stream = &partition.stream.name;
            for durable in &partition.shards {
                let name = consumer_file(stream, &durable.name);
                commands += &format!("consumer {stream} {} {name}\n", durable.name);
                files.push(File { text: json(durable, &durable.name)?, name, executable: false });
            }
        }
        let mut lines = header(topology, FORMAT);
        lines.push("Uses the connection of the selected `nats context`. May be run again.".to_owned());
        let domain = topology.spec.choices().js_domain.as_ref();
        let nats = domain.map_or_else(|| "nats".to_owned(), |domain| format!("nats --js-domain={domain}"));
        let text = format!("#!/bin/sh\n{}{}\n{commands}", commented(&lines), functions(&nats));
        files.push(File { name: "apply.sh".to_owned(), text, executable: true });
        Ok(files)
    }
}

fn functions(nats: &str) -> String {
    format!(
        r#"set -eu
cd "$(dirname "$0")"

stream() {{
    if {nats} stream info "$1" --no-select >/dev/null 2>&1 </dev/null; then
        {nats} stream edit "$1" --config "$2" --force
    else
        {nats} stream add "$1" --config "$2"
    fi
}}

consumer() {{
    if {nats} consumer info "$1" "$2" --no-select >/dev/null 2>&1 </dev/null; then
        {nats} consumer edit "$1" "$2" --config "$3" --force
    else
        {nats} consumer add "$1" "$2" --config "$3"
    fi
}}
"#
    )
}

fn json(config: &impl Serialize, object: &str) -> Result<String, Unsayable> {
    let text = serde_json::to_string_pretty(config).map_err(|error| Unsayable {
        format: FORMAT,
        object: object.to_owned(),
        field: "config",
        problem: error.to_string(),
    })?;
    Ok(text + "\n")
}
