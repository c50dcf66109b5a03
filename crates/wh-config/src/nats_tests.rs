//! The section `mq.nats` from file and variables to its settings, and every finding about it.

use crate::{
    Config, CoordBackend, Environment, Finding, Findings, Loaded, NatsCredentials, QueueBackend, load, table::find,
};
use std::{path::Path, time::Duration};
use wh_topology::{Choices, Spec, defaults};

fn with(variables: &[(&str, &str)]) -> Result<Loaded, Findings> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wh.yaml");
    std::fs::write(&file, "mq: {backend: nats, nats: {urls: ['nats://a:4222']}}\ncoord: {backend: nats}\n").unwrap();
    load(Some(&file), &Environment::new(variables.iter().copied()))
}

fn ok(variables: &[(&str, &str)]) -> Config {
    with(variables).unwrap_or_else(|findings| panic!("{findings}")).config
}

#[track_caller]
fn refused(variables: &[(&str, &str)], expected: &[&str]) {
    let Err(findings) = with(variables) else { panic!("accepted") };
    let errors: Vec<String> =
        findings.0.iter().filter(|f| f.level == crate::Level::Error).map(Finding::to_string).collect();
    assert_eq!(errors.len(), expected.len(), "{findings}");
    for part in expected {
        assert!(errors.iter().any(|error| error.contains(part)), "{part:?} is not in {findings}");
    }
}

#[test]
fn nothing_but_servers_gives_the_defaults_of_the_topology() {
    let config = ok(&[]);
    assert_eq!((config.mq.backend, config.coord.backend), (QueueBackend::Nats, CoordBackend::Nats));
    assert_eq!(config.mq.nats.urls, ["nats://a:4222"]);
    let plain = Spec::new(Choices { dedupe_lease: Duration::ZERO, ..Choices::default() }).unwrap();
    assert_eq!(config.mq.nats.topology, plain);
    assert_eq!(config.coord.lease, defaults::COORD_LEASE);
    let times = (config.mq.nats.connect_timeout, config.mq.nats.topology_wait, config.mq.nats.topology_recheck);
    assert_eq!(times, (Duration::from_secs(5), Duration::from_secs(60), Duration::from_secs(300)));
    assert!(!config.mq.nats.tls.required());
    // 32 units of delivery
    assert_eq!(config.ingest.held_rows, 640_000);
}

#[test]
fn every_choice_reaches_the_topology() {
    let config = ok(&[
        ("WH_MQ_NATS_SUBJECT_PREFIX", "prod"),
        ("WH_MQ_NATS_PARTITIONS", "4"),
        ("WH_MQ_NATS_SHARDS", "8"),
        ("WH_MQ_NATS_REPLICAS", "1"),
        ("WH_MQ_NATS_INGEST_CONSUMER", "worker"),
        ("WH_MQ_NATS_HISTORY_STREAM", "HEARD"),
        ("WH_MQ_NATS_DLQ_STREAM", "DEAD"),
        ("WH_MQ_NATS_DLQ_DELETE", "false"),
        ("WH_MQ_NATS_JS_DOMAIN", "hub"),
        ("WH_MQ_NATS_INBOX_PREFIX", "_INBOX.prod"),
        ("WH_MQ_NATS_PUBLISH_TIMEOUT", "2s"),
        ("WH_COORD_NATS_BUCKET", "members"),
        ("WH_COORD_LEASE", "20s"),
    ]);
    let wanted = Choices {
        prefix: "prod".into(),
        partitions: 4,
        shards: 8,
        replicas: 1,
        ingest_consumer: "worker".into(),
        history_stream: Some("HEARD".into()),
        dlq_stream: Some("DEAD".into()),
        dlq_delete: false,
        js_domain: Some("hub".into()),
        inbox_prefix: Some("_INBOX.prod".into()),
        publish_timeout: Duration::from_secs(2),
        coord_bucket: Some("members".into()),
        coord_lease: Duration::from_secs(20),
        dedupe_lease: Duration::ZERO,
        ..Choices::default()
    };
    assert_eq!(*config.mq.nats.topology.choices(), wanted);
}

#[test]
fn what_the_topology_refuses_is_named_by_its_key() {
    refused(
        &[
            ("WH_MQ_NATS_SUBJECT_PREFIX", "Prod"),
            ("WH_MQ_NATS_HISTORY_STREAM", "a.b"),
            ("WH_MQ_NATS_INGEST_CONSUMER", "a b"),
            ("WH_MQ_NATS_DLQ_STREAM", "a>"),
            ("WH_MQ_NATS_JS_DOMAIN", "*"),
            ("WH_MQ_NATS_INBOX_PREFIX", "a..b"),
            ("WH_COORD_NATS_BUCKET", "a/b"),
        ],
        &[
            "mq.nats.subject_prefix: \"Prod\" must be",
            "mq.nats.history_stream: ",
            "mq.nats.ingest_consumer: ",
            "mq.nats.dlq_stream: ",
            "mq.nats.js_domain: ",
            "mq.nats.inbox_prefix: ",
            "coord.nats.bucket: ",
        ],
    );
    refused(&[("WH_MQ_NATS_PARTITIONS", "1024"), ("WH_MQ_NATS_SHARDS", "256")], &["mq.nats.shards: 262144 durables"]);
}

#[test]
fn bounds_are_those_of_the_topology_and_each_is_told_once() {
    refused(
        &[
            ("WH_MQ_NATS_PARTITIONS", "0"),
            ("WH_MQ_NATS_SHARDS", "257"),
            ("WH_MQ_NATS_REPLICAS", "6"),
            ("WH_MQ_NATS_PUBLISH_TIMEOUT", "0"),
            ("WH_MQ_NATS_CONNECT_TIMEOUT", "0"),
            ("WH_MQ_NATS_TOPOLOGY_WAIT", "0"),
            ("WH_MQ_NATS_TOPOLOGY_RECHECK", "1s"),
            ("WH_COORD_LEASE", "2s"),
        ],
        &[
            "mq.nats.partitions): 0 is outside of 1 to 1024",
            "mq.nats.shards): 257 is outside of 1 to 256",
            "mq.nats.replicas): 6 is outside of 1 to 5",
            "mq.nats.publish_timeout): ",
            "mq.nats.connect_timeout): ",
            "mq.nats.topology_wait): ",
            "mq.nats.topology_recheck): ",
            "coord.lease): 2s is outside of 3s to 1m",
        ],
    );
}

#[test]
fn every_choice_of_the_topology_that_a_key_makes_has_its_key_in_the_table() {
    for (_, path) in super::CHOICES {
        assert!(find(path).is_some(), "{path}");
    }
}

#[test]
fn servers_are_named_without_credentials() {
    let urls = |text: &str| ok(&[("WH_MQ_NATS_URLS", text)]).mq.nats.urls;
    assert_eq!(
        urls("nats://a:4222, tls://b,c:1,[::1]:4222"),
        ["nats://a:4222", "tls://b", "nats://c:1", "nats://[::1]:4222"]
    );
    refused(&[("WH_MQ_NATS_URLS", "")], &["mq.nats.urls: is needed with mq.backend: nats"]);
    refused(&[("WH_MQ_NATS_URLS", "nats://a,")], &["mq.nats.urls): has an empty entry"]);
    for bad in ["http://a", "nats://", "nats://a:0", "nats://a:70000", "nats://a:", "nats://a/b", "a b", "nats://a?x"] {
        refused(&[("WH_MQ_NATS_URLS", bad)], &["mq.nats.urls: entry 1 must "]);
    }
    let Err(findings) = with(&[("WH_MQ_NATS_URLS", "nats://a,nats://me:hush@b")]) else { panic!("accepted") };
    let text = findings.to_string();
    assert!(text.contains("mq.nats.urls: entry 2 must not hold credentials") && !text.contains("hush"), "{text}");
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn there_is_one_form_of_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "secret", "hush\n");
    let credentials = |variables: &[(&str, &str)]| ok(variables).mq.nats.credentials;
    let path = || file.clone().into();
    assert_eq!(credentials(&[]), NatsCredentials::None);
    assert_eq!(credentials(&[("WH_MQ_NATS_CREDS_FILE", &file)]), NatsCredentials::Creds(path()));
    assert_eq!(credentials(&[("WH_MQ_NATS_NKEY_SEED_FILE", &file)]), NatsCredentials::NkeySeed(path()));
    assert_eq!(credentials(&[("WH_MQ_NATS_TOKEN_FILE", &file)]), NatsCredentials::Token(path()));
    let user = [("WH_MQ_NATS_USER", "wavehouse"), ("WH_MQ_NATS_PASSWORD_FILE", file.as_str())];
    assert_eq!(credentials(&user), NatsCredentials::Password { user: "wavehouse".into(), file: path() });

    refused(&user[..1], &["mq.nats.user: needs mq.nats.password_file"]);
    refused(&user[1..], &["mq.nats.password_file: needs mq.nats.user"]);
    refused(&[user[0], user[1], ("WH_MQ_NATS_TOKEN_FILE", &file)], &["give one form of credentials"]);
    refused(
        &[("WH_MQ_NATS_CREDS_FILE", &file), ("WH_MQ_NATS_NKEY_SEED_FILE", &file), user[1]],
        &["mq.nats.creds_file: is given, and mq.nats.nkey_seed_file and mq.nats.user too"],
    );
    refused(&[("WH_MQ_NATS_PASSWORD", "hush")], &["mq.nats.password_file"]);
}

#[test]
fn none_are_a_warning_unless_a_certificate_says_who_we_are() {
    let folder = tempfile::tempdir().unwrap();
    let warned = |variables: &[(&str, &str)]| {
        with(variables).unwrap().warnings.iter().any(|warning| warning.to_string().contains("names no credentials"))
    };
    assert!(warned(&[]));
    let (cert, key) = (written(folder.path(), "cert", "x"), written(folder.path(), "key", "x"));
    assert!(!warned(&[("WH_MQ_NATS_TLS_CERT_FILE", &cert), ("WH_MQ_NATS_TLS_KEY_FILE", &key)]));
    assert!(!warned(&[("WH_MQ_NATS_CREDS_FILE", &key)]));
}

#[test]
fn a_certificate_comes_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "pem", "x");
    refused(&[("WH_MQ_NATS_TLS_CERT_FILE", &file)], &["mq.nats.tls.cert_file: needs mq.nats.tls.key_file"]);
    refused(&[("WH_MQ_NATS_TLS_KEY_FILE", &file)], &["mq.nats.tls.key_file: needs mq.nats.tls.cert_file"]);
    let tls = ok(&[("WH_MQ_NATS_TLS_CA_FILE", &file)]).mq.nats.tls;
    assert!(tls.required() && tls.ca_file == Some(file.into()), "{tls:?}");
    let tls = ok(&[("WH_MQ_NATS_TLS_SERVER_NAME", "nats.internal")]).mq.nats.tls;
    assert!(tls.required() && tls.server_name.as_deref() == Some("nats.internal"), "{tls:?}");
    assert!(ok(&[("WH_MQ_NATS_TLS_HANDSHAKE_FIRST", "true")]).mq.nats.tls.required());
}

#[test]
fn files_that_cannot_be_read_are_named_all_at_once_and_only_where_they_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display().to_string();
    let gone = folder.path().join("gone").display().to_string();
    let variables = [
        ("WH_MQ_NATS_CREDS_FILE", gone.as_str()),
        ("WH_MQ_NATS_TLS_CA_FILE", &dir),
        ("WH_MQ_NATS_TLS_CERT_FILE", &gone),
        ("WH_MQ_NATS_TLS_KEY_FILE", &gone),
    ];
    let names = ["mq.nats.creds_file: ", "mq.nats.tls.ca_file: ", "mq.nats.tls.cert_file: ", "mq.nats.tls.key_file: "];
    refused(&variables, &names);
    let unused = [&variables[..], &[("WH_MQ_BACKEND", "embedded"), ("WH_COORD_BACKEND", "local")]].concat();
    let warnings = with(&unused).unwrap().warnings;
    assert!(warnings.iter().any(|w| w.to_string() == "mq.nats.creds_file: has no effect: mq.backend is embedded"));
    let empty = written(folder.path(), "empty", "\n");
    refused(&[("WH_MQ_NATS_TOKEN_FILE", &empty)], &["is empty"]);
}

#[test]
fn combinations_are_judged_with_everything_else() {
    refused(
        &[("WH_COORD_BACKEND", "local"), ("WH_MQ_NATS_URLS", ""), ("WH_SERVER_PORT", "0")],
        &["coord.backend: local cannot share", "mq.nats.urls: is needed", "server.port)"],
    );
    let api = ok(&[("WH_ROLES", "api"), ("WH_COORD_BACKEND", "local")]);
    assert!(api.roles.api && !api.roles.ingest && !api.roles.sweeper);
    for name in ["WH_CACHE_BACKEND", "WH_DEDUPE_BACKEND"] {
        assert_eq!(ok(&[(name, "none")]).mq.backend, QueueBackend::Nats);
        refused(&[(name, "mongo")], &["\"mongo\" is not one of none"]);
    }
}
