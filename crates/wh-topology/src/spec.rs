//! An operator's choices, checked, and what follows from them. Nothing here is read from a server.

use crate::{
    defaults,
    names::{Names, is_inbox, is_name, is_prefix},
    problem::{Problem, Problems},
    size::show_size,
    span::show_span,
};
use std::time::Duration;

/// What an operator may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// The first token of every subject: `[a-z0-9_-]+`.
    pub prefix: String,
    /// Ingest streams, N.
    pub partitions: u32,
    /// Durables on each ingest stream, V.
    pub shards: u32,
    /// Copies of each stream.
    pub replicas: u32,
    /// What the durables' names begin with.
    pub ingest_consumer: String,
    /// The history's stream; else `<PREFIX>_HISTORY`.
    pub history_stream: Option<String>,
    /// The dead letters' stream; else `<PREFIX>_DLQ`.
    pub dlq_stream: Option<String>,
    /// The bucket of leases; else `<prefix>_coord`.
    pub coord_bucket: Option<String>,
    /// The JetStream domain, where clients address one.
    pub js_domain: Option<String>,
    /// What clients' inboxes begin with; else `_INBOX_<prefix>`.
    pub inbox_prefix: Option<String>,
    /// How long one attempt of a publish may take.
    pub publish_timeout: Duration,
    /// How long a claim on a dedupe key is held; zero where nothing is deduplicated.
    pub dedupe_lease: Duration,
    /// How long a committed dedupe key is kept, where that ends.
    pub dedupe_retention: Option<Duration>,
    /// How long a member's lease lasts.
    pub coord_lease: Duration,
    /// How long the history keeps what it heard.
    pub history_max_age: Duration,
    /// What the volume of one server holds, in bytes.
    pub file_store: u64,
    /// Bytes that a partition reserves; else a share of the file store.
    pub partition_max_bytes: Option<u64>,
    /// Whether dead letters may be deleted one by one, which replaying and purging them needs.
    pub dlq_delete: bool,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            prefix: defaults::PREFIX.to_owned(),
            partitions: defaults::PARTITIONS,
            shards: defaults::SHARDS,
            replicas: defaults::REPLICAS,
            ingest_consumer: defaults::INGEST_CONSUMER.to_owned(),
            history_stream: None,
            dlq_stream: None,
            coord_bucket: None,
            js_domain: None,
            inbox_prefix: None,
            publish_timeout: defaults::PUBLISH_TIMEOUT,
            dedupe_lease: defaults::DEDUPE_LEASE,
            dedupe_retention: None,
            coord_lease: defaults::COORD_LEASE,
            history_max_age: defaults::HISTORY_MAX_AGE,
            file_store: defaults::FILE_STORE,
            partition_max_bytes: None,
            dlq_delete: true,
        }
    }
}

/// Checked choices and the names that follow from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    choices: Choices,
    names: Names,
}

impl Spec {
    /// Checks every choice. Whether the streams fit the file store is for [`crate::Topology::new`]: only who creates
    /// them knows the file store.
    ///
    /// # Errors
    /// [`Problems`]: every choice that cannot be taken.
    pub fn new(choices: Choices) -> Result<Self, Problems> {
        let names = derive(&choices);
        let mut problems = Vec::new();
        check_names(&choices, &names, &mut problems);
        check_counts(&choices, &mut problems);
        check_spans(&choices, &mut problems);
        if problems.is_empty() { Ok(Self { choices, names }) } else { Err(Problems(problems)) }
    }

    /// The choices.
    #[must_use]
    pub fn choices(&self) -> &Choices {
        &self.choices
    }

    /// The names that follow from them.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// How long the attempts of one publish may take together.
    #[must_use]
    pub fn publish_budget(&self) -> Duration {
        self.choices.publish_timeout * defaults::PUBLISH_ATTEMPTS + defaults::PUBLISH_SLACK
    }

    /// The shortest duplicate window that remembers an id until a claim with an unknown outcome was given back and its
    /// client came again: lease, Retry-After (the lease in whole seconds) and a second. `None` without deduplication.
    #[must_use]
    pub fn dedupe_window(&self) -> Option<Duration> {
        let lease = self.choices.dedupe_lease;
        let whole = Duration::from_secs(lease.as_secs() + u64::from(lease.subsec_nanos() > 0));
        (!lease.is_zero()).then(|| lease + whole + Duration::from_secs(1))
    }

    /// The duplicate window that partitions are created with.
    #[must_use]
    pub fn duplicate_window(&self) -> Duration {
        let needed = self.publish_budget().max(self.dedupe_window().unwrap_or_default());
        needed.max(defaults::DUPLICATE_WINDOW)
    }

    /// The command that prints what these choices ask for. Counts, prefix, replicas and file store are always named,
    /// other choices where they differ from the default.
    #[must_use]
    pub fn command_line(&self, command: &str) -> String {
        let (own, plain) = (&self.choices, Choices::default());
        let mut flags = vec![format!("--partitions={}", own.partitions), format!("--shards={}", own.shards)];
        flags.push(format!("--prefix={}", own.prefix));
        flags.push(format!("--replicas={}", own.replicas));
        flags.push(format!("--file-store={}", show_size(own.file_store)));
        let mut more = |differs: bool, name: &str, value: &dyn Fn() -> String| {
            if differs {
                flags.push(format!("--{name}={}", value()));
            }
        };
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        more(own.ingest_consumer != plain.ingest_consumer, "ingest-consumer", &|| own.ingest_consumer.clone());
        more(own.history_stream.is_some(), "history-stream", &|| text(&own.history_stream));
        more(own.dlq_stream.is_some(), "dlq-stream", &|| text(&own.dlq_stream));
        more(own.coord_bucket.is_some(), "coord-bucket", &|| text(&own.coord_bucket));
        more(own.js_domain.is_some(), "js-domain", &|| text(&own.js_domain));
        more(own.inbox_prefix.is_some(), "inbox-prefix", &|| text(&own.inbox_prefix));
        more(own.publish_timeout != plain.publish_timeout, "publish-timeout", &|| show_span(own.publish_timeout));
        more(own.dedupe_lease != plain.dedupe_lease, "dedupe-lease", &|| show_span(own.dedupe_lease));
        more(own.history_max_age != plain.history_max_age, "history-max-age", &|| show_span(own.history_max_age));
        more(own.partition_max_bytes.is_some(), "partition-max-bytes", &|| {
            show_size(own.partition_max_bytes.unwrap_or_default())
        });
        format!("wavehouse mq {command} {}", flags.join(" "))
    }
}

impl Default for Spec {
    /// What follows from choosing nothing.
    fn default() -> Self {
        let choices = Choices::default();
        Self { names: derive(&choices), choices }
    }
}

fn derive(choices: &Choices) -> Names {
    let upper = choices.prefix.to_ascii_uppercase();
    let or = |given: &Option<String>, derived: String| given.clone().unwrap_or(derived);
    Names {
        prefix: choices.prefix.clone(),
        ingest_consumer: choices.ingest_consumer.clone(),
        history: or(&choices.history_stream, format!("{upper}_HISTORY")),
        dead_letters: or(&choices.dlq_stream, format!("{upper}_DLQ")),
        bucket: or(&choices.coord_bucket, format!("{}_coord", choices.prefix)),
        inbox: or(&choices.inbox_prefix, format!("_INBOX_{}", choices.prefix)),
    }
}

fn check_names(choices: &Choices, names: &Names, problems: &mut Vec<Problem>) {
    if !is_prefix(&choices.prefix) {
        problems.push(Problem::new("prefix", format!("{:?} must be 1 to 64 of a-z, 0-9, _ and -", choices.prefix)));
    }
    let given = [
        ("ingest-consumer", Some(&choices.ingest_consumer)),
        ("history-stream", choices.history_stream.as_ref()),
        ("dlq-stream", choices.dlq_stream.as_ref()),
        ("coord-bucket", choices.coord_bucket.as_ref()),
        ("js-domain", choices.js_domain.as_ref()),
    ];
    for (field, name) in given.into_iter().filter_map(|(field, name)| Some((field, name?))) {
        if !is_name(name) {
            problems.push(Problem::new(field, format!("{name:?} must be 1 to 64 of A-Z, a-z, 0-9, _ and -")));
        }
    }
    if let Some(inbox) = choices.inbox_prefix.as_ref().filter(|inbox| !is_inbox(inbox)) {
        let needed = "must be 1 to 64 of A-Z, a-z, 0-9, _ and -, with dots between its parts";
        problems.push(Problem::new("inbox-prefix", format!("{inbox:?} {needed}")));
    }
    let own = format!("{}_INGEST_", choices.prefix.to_ascii_uppercase());
    let partition = |name: &str| name.strip_prefix(&own).is_some_and(|rest| rest.parse::<u32>().is_ok());
    for (field, name) in [("history-stream", &names.history), ("dlq-stream", &names.dead_letters)] {
        if partition(name) || *name == names.bucket_stream() {
            problems.push(Problem::new(field, format!("{name:?} is the name of another stream")));
        }
    }
    if names.history == names.dead_letters {
        problems.push(Problem::new("dlq-stream", format!("{:?} is the history's stream too", names.history)));
    }
}

fn check_counts(choices: &Choices, problems: &mut Vec<Problem>) {
    let counts = [
        ("partitions", choices.partitions, defaults::MAX_PARTITIONS),
        ("shards", choices.shards, defaults::MAX_SHARDS),
        ("replicas", choices.replicas, defaults::MAX_REPLICAS),
    ];
    for (field, count, most) in counts {
        if !(1..=most).contains(&count) {
            problems.push(Problem::new(field, format!("{count} must be 1 to {most}")));
        }
    }
    let units = choices.partitions.saturating_mul(choices.shards);
    if units > defaults::MAX_UNITS {
        let most = defaults::MAX_UNITS;
        problems.push(Problem::new("shards", format!("{units} durables altogether are more than {most}")));
    }
    let sizes = [("file-store", Some(choices.file_store)), ("partition-max-bytes", choices.partition_max_bytes)];
    for (field, _) in sizes.into_iter().filter(|(_, size)| *size == Some(0)) {
        problems.push(Problem::new(field, "must not be zero"));
    }
}

fn check_spans(choices: &Choices, problems: &mut Vec<Problem>) {
    let mut within = |field, span: Duration, least: Duration, most: Duration| {
        if !(least..=most).contains(&span) {
            let bounds = format!("{} to {}", show_span(least), show_span(most));
            problems.push(Problem::new(field, format!("{} must be {bounds}", show_span(span))));
        }
    };
    let (least, most) = defaults::COORD_LEASE_BOUNDS;
    let (shortest, longest) = defaults::PUBLISH_TIMEOUT_BOUNDS;
    within("publish-timeout", choices.publish_timeout, shortest, longest);
    within("coord-lease", choices.coord_lease, least, most);
    within("history-max-age", choices.history_max_age, Duration::from_secs(1), defaults::MAX_SPAN);
    if !choices.dedupe_lease.is_zero() {
        let least = choices.publish_timeout.saturating_mul(defaults::PUBLISH_ATTEMPTS) + defaults::DEDUPE_SLACK;
        within("dedupe-lease", choices.dedupe_lease, least, Duration::from_hours(1));
    }
}

#[cfg(test)]
mod tests;
