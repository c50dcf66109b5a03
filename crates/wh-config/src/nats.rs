//! The settings of the queue on NATS, from single values to what a client and the topology take. Nothing connects here.

use crate::{Finding, NatsCredentials, NatsQueue, NatsTls, dedupe, resolve::Take};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};
use wh_topology::{Choices, Spec};
use wh_types::Secret;

const URLS: &str = "mq.nats.urls";
const CREDS: &str = "mq.nats.creds_file";
const NKEY: &str = "mq.nats.nkey_seed_file";
const USER: &str = "mq.nats.user";
const PASSWORD: &str = "mq.nats.password_file";
const TOKEN: &str = "mq.nats.token_file";
const CA: &str = "mq.nats.tls.ca_file";
const CERT: &str = "mq.nats.tls.cert_file";
const KEY: &str = "mq.nats.tls.key_file";

/// A choice of the topology, as its own crate calls it, and the key that makes it.
const CHOICES: [(&str, &str); 13] = [
    ("prefix", "mq.nats.subject_prefix"),
    ("partitions", "mq.nats.partitions"),
    ("shards", "mq.nats.shards"),
    ("replicas", "mq.nats.replicas"),
    ("ingest-consumer", "mq.nats.ingest_consumer"),
    ("history-stream", "mq.nats.history_stream"),
    ("dlq-stream", "mq.nats.dlq_stream"),
    ("coord-bucket", "coord.nats.bucket"),
    ("js-domain", "mq.nats.js_domain"),
    ("inbox-prefix", "mq.nats.inbox_prefix"),
    ("publish-timeout", "mq.nats.publish_timeout"),
    ("coord-lease", "coord.lease"),
    ("dedupe-lease", "dedupe.lease"),
];

/// Everything of the section.
pub(crate) fn queue(take: &mut Take<'_>) -> NatsQueue {
    let needed = take.text("mq.backend") == "nats";
    let tls = tls(take);
    let queue = NatsQueue {
        urls: urls(take, needed),
        name: take.optional("mq.nats.name").map(str::to_owned),
        credentials: credentials(take),
        topology: topology(take),
        connect_timeout: take.span("mq.nats.connect_timeout"),
        topology_wait: take.span("mq.nats.topology_wait"),
        topology_recheck: take.span("mq.nats.topology_recheck"),
        tls,
    };
    if needed && queue.credentials == NatsCredentials::None && queue.tls.identity.is_none() {
        take.findings.push(
            Finding::warning("mq.nats", "names no credentials: everyone who reaches the servers may do what we do")
                .hint("wavehouse mq permissions prints what a user of our own needs"),
        );
    }
    queue
}

fn urls(take: &mut Take<'_>, needed: bool) -> Vec<String> {
    let urls = take.words(URLS);
    if needed && urls.is_empty() && !take.failed(URLS) {
        take.problem(URLS, "is needed with mq.backend: nats: name at least one server");
    }
    for (index, url) in urls.iter().enumerate() {
        // a bad entry is not repeated: it may hold a password
        let place = format!("entry {}", index + 1);
        if let Err(problem) = check(url) {
            take.problem(URLS, format!("{place} {problem}"));
        }
    }
    urls.iter().map(|url| if url.contains("://") { url.clone() } else { format!("nats://{url}") }).collect()
}

fn check(url: &str) -> Result<(), &'static str> {
    if url.contains('@') {
        return Err("must not hold credentials: they stand in files");
    }
    let rest = match url.split_once("://") {
        Some(("nats" | "tls", rest)) => rest,
        Some(_) => return Err("must begin with nats:// or tls://"),
        None => url,
    };
    let Ok(authority) = rest.strip_suffix('/').unwrap_or(rest).parse::<http::uri::Authority>() else {
        return Err("must be like nats://host:4222");
    };
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    let good =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if authority.host().is_empty() || !good { Err("must be like nats://host:4222") } else { Ok(()) }
}

fn credentials(take: &mut Take<'_>) -> NatsCredentials {
    let (creds, nkey, token) = (take.optional(CREDS), take.optional(NKEY), take.optional(TOKEN));
    let (user, password) = (take.optional(USER), take.optional(PASSWORD));
    let given: Vec<&str> = [(CREDS, creds), (NKEY, nkey), (USER, user.or(password)), (TOKEN, token)]
        .into_iter()
        .filter_map(|(path, value)| value.map(|_| path))
        .collect();
    if let [first, others @ ..] = given.as_slice()
        && !others.is_empty()
    {
        take.problem(first, format!("is given, and {} too: give one form of credentials", others.join(" and ")));
        return NatsCredentials::None;
    }
    match (creds, nkey, token, user, password) {
        (Some(file), ..) => NatsCredentials::Creds(file.into()),
        (_, Some(file), ..) => NatsCredentials::NkeySeed(file.into()),
        (_, _, Some(file), ..) => NatsCredentials::Token(file.into()),
        (.., Some(user), Some(file)) => NatsCredentials::Password { user: user.to_owned(), file: file.into() },
        (.., Some(_), None) => {
            take.problem(USER, "needs mq.nats.password_file");
            NatsCredentials::None
        }
        (.., None, Some(_)) => {
            take.problem(PASSWORD, "needs mq.nats.user");
            NatsCredentials::None
        }
        (.., None, None) => NatsCredentials::None,
    }
}

fn tls(take: &mut Take<'_>) -> NatsTls {
    let (ca, cert, key) = (take.optional(CA), take.optional(CERT), take.optional(KEY));
    let identity = match (cert, key) {
        (Some(cert), Some(key)) => Some((cert.into(), key.into())),
        (Some(_), None) => {
            take.problem(CERT, "needs mq.nats.tls.key_file");
            None
        }
        (None, Some(_)) => {
            take.problem(KEY, "needs mq.nats.tls.cert_file");
            None
        }
        (None, None) => None,
    };
    NatsTls {
        ca_file: ca.map(PathBuf::from),
        identity,
        server_name: take.optional("mq.nats.tls.server_name").map(str::to_owned),
        handshake_first: take.flag("mq.nats.tls.handshake_first"),
    }
}

fn topology(take: &mut Take<'_>) -> Spec {
    let plain = Choices::default();
    let own = |text: Option<&str>| text.map(str::to_owned);
    let choices = Choices {
        prefix: take.text("mq.nats.subject_prefix").to_owned(),
        partitions: take.u32("mq.nats.partitions"),
        shards: take.u32("mq.nats.shards"),
        replicas: take.u32("mq.nats.replicas"),
        ingest_consumer: take.text("mq.nats.ingest_consumer").to_owned(),
        history_stream: own(take.optional("mq.nats.history_stream")),
        dlq_stream: own(take.optional("mq.nats.dlq_stream")),
        coord_bucket: own(take.optional("coord.nats.bucket")),
        js_domain: own(take.optional("mq.nats.js_domain")),
        inbox_prefix: own(take.optional("mq.nats.inbox_prefix")),
        publish_timeout: take.span("mq.nats.publish_timeout"),
        coord_lease: take.span("coord.lease"),
        dlq_delete: take.flag("mq.nats.dlq_delete"),
        ..dedupe::choices(take, plain)
    };
    match Spec::new(choices) {
        Ok(spec) => spec,
        Err(problems) => {
            for problem in problems.0 {
                let path =
                    CHOICES.iter().find(|(field, _)| *field == problem.field).map_or("mq.nats", |(_, path)| path);
                // a value that failed its own check has its finding already
                if !take.failed(path) {
                    take.problem(path, problem.problem);
                }
            }
            Spec::default()
        }
    }
}

/// What is wrong with the files it names. They are read once, to see that they can be.
pub(crate) fn unreadable(queue: &NatsQueue) -> Vec<Finding> {
    let secret = match &queue.credentials {
        NatsCredentials::None => None,
        NatsCredentials::Creds(file) => Some((CREDS, file)),
        NatsCredentials::NkeySeed(file) => Some((NKEY, file)),
        NatsCredentials::Password { file, .. } => Some((PASSWORD, file)),
        NatsCredentials::Token(file) => Some((TOKEN, file)),
    };
    let of_secret = secret.and_then(|(path, file)| match Secret::read(file) {
        Err(error) => Some(Finding::error(path, format!("cannot be read: {error}"))),
        Ok(secret) if secret.is_empty() => Some(Finding::error(path, format!("{} is empty", file.display()))),
        Ok(_) => None,
    });
    let identity = queue.tls.identity.iter().flat_map(|(cert, key)| [(CERT, cert), (KEY, key)]);
    let of_tls = queue.tls.ca_file.iter().map(|file| (CA, file)).chain(identity).filter_map(|(path, file)| {
        let problem = openable(file).err()?;
        Some(Finding::error(path, format!("cannot be read: {}: {problem}", file.display())))
    });
    of_secret.into_iter().chain(of_tls).collect()
}

pub(crate) fn openable(file: &Path) -> io::Result<()> {
    match File::open(file)?.metadata()?.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("is no file")),
    }
}

#[cfg(test)]
#[path = "nats_tests.rs"]
mod tests;
