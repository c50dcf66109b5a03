//! A rule on one object, as data, and the commands that fix what rules find.

use super::finding::{Finding, Severity};
pub(super) use crate::observe::show;
use crate::{
    Fields, Names, Spec,
    render::{consumer_file, stream_file},
    span::show_span,
};
use std::time::Duration;

/// The object that a rule looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    pub(super) spec: &'a Spec,
    pub(super) config: &'a Fields,
    /// The partition that the stream or durable serves.
    pub(super) partition: u32,
    /// The shard that the durable serves.
    pub(super) shard: u32,
    /// The stream's name.
    pub(super) stream: &'a str,
    /// The durable's name; empty for a stream.
    pub(super) durable: &'a str,
    /// The shortest duplicate window of the partitions.
    pub(super) shortest_window: Option<Duration>,
}

impl At<'_> {
    pub(super) fn names(&self) -> &Names {
        self.spec.names()
    }

    fn object(&self) -> String {
        if self.durable.is_empty() {
            format!("stream {}", self.stream)
        } else {
            format!("consumer {}", Names::unit(self.stream, self.durable))
        }
    }

    /// Changes the stream in place.
    pub(super) fn edit(&self, flags: &str) -> String {
        format!("nats stream edit {} --force {flags}", self.stream)
    }

    /// For what a stream cannot change. A stream that goes takes its messages along.
    pub(super) fn anew(&self) -> String {
        let (name, file) = (self.stream, stream_file(self.stream));
        format!("when it is empty: nats stream rm {name} --force && nats stream add {name} --config {file}")
    }

    /// Takes the generated configuration.
    pub(super) fn generated(&self) -> String {
        if self.durable.is_empty() {
            return self.edit(&format!("--config {}", stream_file(self.stream)));
        }
        let (stream, durable) = (self.stream, self.durable);
        format!("nats consumer edit {stream} {durable} --force --config {}", consumer_file(stream, durable))
    }

    /// For what a durable cannot change. The rows stay in the stream; those unsettled come again.
    pub(super) fn durable_anew(&self) -> String {
        let (stream, durable, file) = (self.stream, self.durable, consumer_file(self.stream, self.durable));
        format!(
            "with ingest stopped: nats consumer rm {stream} {durable} --force && \
             nats consumer add {stream} {durable} --config {file}"
        )
    }
}

/// What a broken rule says.
pub(super) struct Broken {
    seen: String,
    needed: String,
    fix: String,
}

/// A rule on one object.
pub(super) struct Rule {
    /// A name that stays.
    pub(super) id: &'static str,
    pub(super) severity: Severity,
    /// The field, as JetStream calls it.
    pub(super) field: &'static str,
    /// What is wrong, or nothing.
    pub(super) check: fn(&At<'_>) -> Option<Broken>,
}

/// A rule that must hold.
pub(super) const fn required(id: &'static str, field: &'static str, check: fn(&At<'_>) -> Option<Broken>) -> Rule {
    Rule { id, severity: Severity::Required, field, check }
}

/// A rule that should hold.
pub(super) const fn recommended(id: &'static str, field: &'static str, check: fn(&At<'_>) -> Option<Broken>) -> Rule {
    Rule { id, severity: Severity::Recommended, field, check }
}

/// What the rules find on one object.
pub(super) fn apply(rules: &[Rule], at: &At<'_>) -> Vec<Finding> {
    let broken = rules.iter().filter_map(|rule| Some((rule, (rule.check)(at)?)));
    let finding = |(rule, broken): (&Rule, Broken)| Finding {
        severity: rule.severity,
        rule: rule.id,
        object: at.object(),
        field: rule.field,
        seen: broken.seen,
        needed: broken.needed,
        fix: broken.fix,
    };
    broken.map(finding).collect()
}

/// Broken when `bad` holds.
pub(super) fn when(bad: bool, seen: impl Into<String>, needed: impl Into<String>, fix: String) -> Option<Broken> {
    bad.then(|| Broken { seen: seen.into(), needed: needed.into(), fix })
}

/// A span that was read, or that it was not set.
pub(super) fn show_set(span: Duration) -> String {
    if span.is_zero() { "unset".to_owned() } else { show_span(span) }
}

/// Words in a shell's single quotes; none of our names holds one.
pub(super) fn quote(text: &str) -> String {
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./=".contains(&b)) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
