//! What each of our processes may do on the server: the smallest set that works.
//!
//! No role may create, change or delete a stream, a durable or a bucket. A right to create consumers on the history
//! would let its holder push messages to any subject.

mod print;

pub use print::RightsFormat;

use crate::{Names, Spec};
use std::fmt;

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It takes events, answers queries and streams.
    Api,
    /// It writes to ClickHouse.
    Ingest,
    /// Both.
    Both,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Api, Self::Ingest, Self::Both];

    /// Whether it takes events.
    #[must_use]
    pub fn serves(self) -> bool {
        matches!(self, Self::Api | Self::Both)
    }

    /// Whether it writes to ClickHouse.
    #[must_use]
    pub fn ingests(self) -> bool {
        matches!(self, Self::Ingest | Self::Both)
    }

    /// What the command line calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Ingest => "ingest",
            Self::Both => "both",
        }
    }

    /// The user that generated values give it.
    #[must_use]
    pub fn user(self) -> &'static str {
        match self {
            Self::Api => "wavehouse-api",
            Self::Ingest => "wavehouse-ingest",
            Self::Both => "wavehouse",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One line of a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// The pattern of subjects.
    pub subject: String,
    /// What needs it.
    pub why: &'static str,
}

/// What a role may publish and subscribe to. Everything else is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Whose they are.
    pub role: Role,
    /// What may be published.
    pub publish: Vec<Right>,
    /// What may be subscribed to.
    pub subscribe: Vec<Right>,
    made_by: String,
}

impl Rights {
    /// The rights of a role. With a JetStream domain every line of the API stands twice: a server inside the domain maps
    /// the long form to the plain one before it checks, one outside checks what was sent.
    #[must_use]
    pub fn new(spec: &Spec, role: Role) -> Self {
        let mut lines = Lines { domain: spec.choices().js_domain.as_deref(), rights: Vec::new() };
        checks(&mut lines, role);
        blocks(&mut lines, spec, role);
        if role.ingests() {
            shards(&mut lines, spec);
            leases(&mut lines, spec.names());
        }
        let publish = lines.rights;
        Self { role, publish, subscribe: subscribe(spec.names(), role), made_by: command_line(spec, role) }
    }

    /// The command that prints these rights, without a format.
    #[must_use]
    pub fn made_by(&self) -> &str {
        &self.made_by
    }
}

/// The command that prints the rights of a role.
pub(crate) fn command_line(spec: &Spec, role: Role) -> String {
    let (own, plain) = (spec.choices(), crate::Choices::default());
    let mut line = format!("wavehouse mq permissions --role={role} --shards={} --prefix={}", own.shards, own.prefix);
    let consumer = (own.ingest_consumer != plain.ingest_consumer).then_some(&own.ingest_consumer);
    let given = [
        ("ingest-consumer", consumer),
        ("history-stream", own.history_stream.as_ref()),
        ("dlq-stream", own.dlq_stream.as_ref()),
        ("coord-bucket", own.coord_bucket.as_ref()),
        ("js-domain", own.js_domain.as_ref()),
        ("inbox-prefix", own.inbox_prefix.as_ref()),
    ];
    for (flag, value) in given.into_iter().filter_map(|(flag, value)| Some((flag, value?))) {
        line += &format!(" --{flag}={value}");
    }
    if !own.dlq_delete {
        line += " --no-dlq-delete";
    }
    line
}

/// Lines as they are gathered.
struct Lines<'a> {
    domain: Option<&'a str>,
    rights: Vec<Right>,
}

impl Lines<'_> {
    fn plain(&mut self, subject: String, why: &'static str) {
        self.rights.push(Right { subject, why });
    }

    /// A subject of the JetStream API, in each of its forms.
    fn api(&mut self, subject: &str, why: &'static str) {
        self.plain(format!("$JS.API.{subject}"), why);
        if let Some(domain) = self.domain {
            self.plain(format!("$JS.{domain}.API.{subject}"), why);
        }
    }
}

fn checks(lines: &mut Lines<'_>, role: Role) {
    lines.api("INFO", "make sure that what was sent has arrived");
    lines.api("STREAM.NAMES", "find streams by the subjects they take");
    lines.api("STREAM.INFO.*", "check streams; ends of partitions and history");
    if role.ingests() {
        lines.api("CONSUMER.LIST.*", "check all durables of a stream at once; units without an owner");
    }
    let info = if role.ingests() { "progress, pins and orphans" } else { "how far workers are" };
    lines.api("CONSUMER.INFO.*.*", info);
}

fn blocks(lines: &mut Lines<'_>, spec: &Spec, role: Role) {
    let (names, prefix) = (spec.names(), &spec.names().prefix);
    let publish = if role.serves() { "publish blocks; send dead letters again" } else { "send held rows again" };
    lines.plain(names.ingest_subjects(), publish);
    if role.ingests() {
        lines.plain(names.dead_letter_subjects(), "park refused rows");
        lines.plain(format!("{prefix}.done.>"), "announce progress");
    }
    let replay = if role.serves() { "replay; look a block up" } else { "look a block up" };
    lines.api(&format!("DIRECT.GET.{}", names.history), replay);
    lines.api(&format!("DIRECT.GET.{}", names.dead_letters), "list dead letters");
    if spec.choices().dlq_delete {
        lines.api(
            &format!("STREAM.MSG.DELETE.{}", names.dead_letters),
            "remove a dead letter that was sent again or purged",
        );
    }
}

/// A wildcard stands for a whole token, so each durable is named. The stream is a wildcard: what a lower count left
/// behind stays drainable.
fn shards(lines: &mut Lines<'_>, spec: &Spec) {
    for durable in (0..spec.choices().shards).map(|shard| spec.names().durable(shard)) {
        lines.api(&format!("CONSUMER.MSG.NEXT.*.{durable}"), "pull, and renew the pin");
        lines.api(&format!("CONSUMER.UNPIN.*.{durable}"), "hand the unit over");
        lines.api(&format!("CONSUMER.RESET.*.{durable}"), "take over after a crash or a gap");
        lines.plain(format!("$JS.ACK.*.{durable}.>"), "settle");
        lines.plain(format!("$JS.ACK.*.*.*.{durable}.>"), "settle, where acks carry domain and account");
    }
}

fn leases(lines: &mut Lines<'_>, names: &Names) {
    let (stream, keys) = (names.bucket_stream(), names.lease_subjects());
    lines.plain(keys.clone(), "write leases");
    if let Some(domain) = lines.domain {
        lines.plain(format!("$JS.{domain}.API.{keys}"), "write leases; under a domain they carry the API's prefix");
    }
    lines.api(&format!("DIRECT.GET.{stream}.{keys}"), "read one lease");
    lines.api(&format!("DIRECT.GET.{stream}"), "read all leases at once");
}

fn subscribe(names: &Names, role: Role) -> Vec<Right> {
    let mut rights = vec![Right { subject: format!("{}.>", names.inbox()), why: "answers, and pulled blocks" }];
    if role.serves() {
        rights.push(Right { subject: names.history_subjects(), why: "live events" });
        rights.push(Right { subject: names.progress_subjects(), why: "how far workers are" });
    }
    if role.ingests() {
        rights.push(Right { subject: names.lease_subjects(), why: "notice at once that a lease changed" });
    }
    rights
}

#[cfg(test)]
mod tests;
