//! The flags. Their defaults are `wh-topology`'s.

use super::live::{ACCESS, Access};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::{fmt, path::PathBuf, str::FromStr, time::Duration};
use wh_topology::{Choices, RightsFormat, defaults, parse_size, parse_span, show_size, show_span};

/// Flags that say what the configuration says too.
const CHOSEN: [&str; 14] = [
    "partitions",
    "shards",
    "prefix",
    "ingest_consumer",
    "history_stream",
    "dlq_stream",
    "coord_bucket",
    "js_domain",
    "inbox_prefix",
    "publish_timeout",
    "dedupe_lease",
    "dedupe_retention",
    "coord_lease",
    "no_dlq_delete",
];

#[derive(Debug, Subcommand)]
pub(crate) enum MqCommand {
    /// Print what to create: streams, durables and the bucket of leases
    Manifests(Manifests),
    /// Print what a role may do on the server
    Permissions(Permissions),
    /// Judge a running server, or what one answered: exit code 1 when something required is wrong
    Verify(Box<Verify>),
    /// Show what would change, and in which order
    Plan(Planned),
}

/// Flags that make choices.
pub(super) trait Common {
    /// The choices they make; all others are the defaults.
    fn choices(&self) -> Choices;
}

#[derive(Debug, Args)]
pub(crate) struct Manifests {
    #[command(flatten)]
    wanted: Wanted,
    /// For which tool
    #[arg(long, value_enum, default_value_t = Format::Nack)]
    pub(super) format: Format,
    /// Write files into this folder instead of printing
    #[arg(long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Permissions {
    #[command(flatten)]
    names: Names,
    /// Durables on each ingest stream
    #[arg(long, value_name = "V", default_value_t = defaults::SHARDS)]
    shards: u32,
    /// What the process does
    #[arg(long, value_enum, default_value_t = RoleArg::Both)]
    pub(super) role: RoleArg,
    /// Leave out the right to delete dead letters: they can then be neither replayed nor purged
    #[arg(long)]
    no_dlq_delete: bool,
    /// A block for the server's file, or values for the Helm chart
    #[arg(long, value_enum, default_value_t = RightsFormatArg::Nats)]
    pub(super) format: RightsFormatArg,
    /// Write a file into this folder instead of printing
    #[arg(long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["from", "url", "live"])))]
pub(crate) struct Verify {
    /// Files, or folders of .json files, with JetStream's answers
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with_all = ACCESS)]
    pub(super) from: Vec<PathBuf>,
    /// Running servers of one cluster, asked as a process asks them: nats://host:port or tls://host:port
    #[arg(long, value_name = "URL", num_args = 1..)]
    pub(super) url: Vec<String>,
    /// The servers, the user and the topology that the configuration names
    #[arg(long, conflicts_with_all = CHOSEN, conflicts_with_all = ACCESS)]
    pub(super) live: bool,
    #[command(flatten)]
    pub(super) access: Access,
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    counts: Counts,
    #[command(flatten)]
    spans: Spans,
    /// How long a committed dedupe key is kept, where that ends
    #[arg(long, value_name = "SPAN")]
    dedupe_retention: Option<Span>,
    /// How long a member's lease lasts
    #[arg(long, value_name = "SPAN", default_value_t = Span(defaults::COORD_LEASE))]
    coord_lease: Span,
    /// Dead letters are never deleted
    #[arg(long)]
    no_dlq_delete: bool,
    /// What the process does: an api checks no durable and no lease [default: both; with --live what the configuration
    /// says]
    #[arg(long, value_enum)]
    pub(super) role: Option<RoleArg>,
    /// How to print findings
    #[arg(long, value_enum, default_value_t = Report::Text)]
    pub(super) format: Report,
}

#[derive(Debug, Args)]
pub(crate) struct Planned {
    /// Files, or folders of .json files, with JetStream's answers
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    pub(super) from: Vec<PathBuf>,
    #[command(flatten)]
    wanted: Wanted,
    /// How to print the plan
    #[arg(long, value_enum, default_value_t = Report::Text)]
    pub(super) format: Report,
}

/// Everything that is created.
#[derive(Debug, Args)]
struct Wanted {
    #[command(flatten)]
    counts: Counts,
    #[command(flatten)]
    names: Names,
    #[command(flatten)]
    spans: Spans,
    /// Copies of each stream
    #[arg(long, value_name = "R", default_value_t = defaults::REPLICAS)]
    replicas: u32,
    /// How long the history keeps what it heard: no less than a client may be away
    #[arg(long, value_name = "SPAN", default_value_t = Span(defaults::HISTORY_MAX_AGE))]
    history_max_age: Span,
    /// What the volume of one server holds
    #[arg(long, value_name = "SIZE", default_value_t = Size(defaults::FILE_STORE))]
    file_store: Size,
    /// What each partition reserves [default: 15 % of the file store]
    #[arg(long, value_name = "SIZE")]
    partition_max_bytes: Option<Size>,
}

#[derive(Debug, Args)]
struct Counts {
    /// Ingest streams
    #[arg(long, value_name = "N", default_value_t = defaults::PARTITIONS)]
    partitions: u32,
    /// Durables on each ingest stream
    #[arg(long, value_name = "V", default_value_t = defaults::SHARDS)]
    shards: u32,
}

#[derive(Debug, Args)]
struct Names {
    /// The first token of every subject
    #[arg(long, default_value = defaults::PREFIX)]
    prefix: String,
    /// What the durables' names begin with
    #[arg(long, value_name = "NAME", default_value = defaults::INGEST_CONSUMER)]
    ingest_consumer: String,
    /// The history's stream [default: <PREFIX>_HISTORY]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    history_stream: String,
    /// The dead letters' stream [default: <PREFIX>_DLQ]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    dlq_stream: String,
    /// The bucket of leases [default: <prefix>_coord]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    coord_bucket: String,
    /// The JetStream domain that clients address
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    js_domain: String,
    /// What clients' inboxes begin with [default: _INBOX_<prefix>]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    inbox_prefix: String,
}

#[derive(Debug, Args)]
struct Spans {
    /// How long one attempt of a publish may take
    #[arg(long, value_name = "SPAN", default_value_t = Span(defaults::PUBLISH_TIMEOUT))]
    publish_timeout: Span,
    /// How long a claim on a dedupe key is held; 0 where nothing is deduplicated
    #[arg(long, value_name = "SPAN", default_value_t = Span(defaults::DEDUPE_LEASE))]
    dedupe_lease: Span,
}

/// A span as a flag has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(pub(super) Duration);

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        parse_span(text).map(Self)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_span(self.0))
    }
}

/// A size as a flag has it.
#[derive(Clone, Copy, Debug)]
struct Size(u64);

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        parse_size(text).map(Self)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_size(self.0))
    }
}

/// For which tool.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    /// Kubernetes resources for the NATS controller
    Nack,
    /// JSON files for the nats command line, and a script that applies them
    NatsCli,
    /// Resources for Terraform
    Terraform,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RightsFormatArg {
    /// A permissions block for the server's configuration file
    Nats,
    /// Values for the official Helm chart
    Helm,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum RoleArg {
    /// Takes events, answers queries and streams
    Api,
    /// Writes to ClickHouse
    Ingest,
    /// Both
    Both,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Report {
    /// For a person
    Text,
    /// For a program
    Json,
}

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nack => "nack",
            Self::NatsCli => "nats-cli",
            Self::Terraform => "terraform",
        }
    }
}

impl RightsFormatArg {
    pub(super) fn format(self) -> RightsFormat {
        match self {
            Self::Nats => RightsFormat::Nats,
            Self::Helm => RightsFormat::Helm,
        }
    }
}

impl Names {
    fn choose(&self, choices: Choices) -> Choices {
        let given = |name: &String| (!name.is_empty()).then(|| name.clone());
        Choices {
            prefix: self.prefix.clone(),
            ingest_consumer: self.ingest_consumer.clone(),
            history_stream: given(&self.history_stream),
            dlq_stream: given(&self.dlq_stream),
            coord_bucket: given(&self.coord_bucket),
            js_domain: given(&self.js_domain),
            inbox_prefix: given(&self.inbox_prefix),
            ..choices
        }
    }
}

impl Wanted {
    fn choices(&self) -> Choices {
        self.names.choose(Choices {
            partitions: self.counts.partitions,
            shards: self.counts.shards,
            replicas: self.replicas,
            publish_timeout: self.spans.publish_timeout.0,
            dedupe_lease: self.spans.dedupe_lease.0,
            history_max_age: self.history_max_age.0,
            file_store: self.file_store.0,
            partition_max_bytes: self.partition_max_bytes.map(|size| size.0),
            ..Choices::default()
        })
    }
}

impl Common for Manifests {
    fn choices(&self) -> Choices {
        self.wanted.choices()
    }
}

impl Common for Planned {
    fn choices(&self) -> Choices {
        self.wanted.choices()
    }
}

impl Common for Permissions {
    fn choices(&self) -> Choices {
        let (shards, dlq_delete) = (self.shards, !self.no_dlq_delete);
        self.names.choose(Choices { shards, dlq_delete, ..Choices::default() })
    }
}

impl Common for Verify {
    fn choices(&self) -> Choices {
        self.names.choose(Choices {
            partitions: self.counts.partitions,
            shards: self.counts.shards,
            publish_timeout: self.spans.publish_timeout.0,
            dedupe_lease: self.spans.dedupe_lease.0,
            dedupe_retention: self.dedupe_retention.map(|span| span.0),
            coord_lease: self.coord_lease.0,
            dlq_delete: !self.no_dlq_delete,
            ..Choices::default()
        })
    }
}
