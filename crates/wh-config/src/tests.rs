//! The whole way: file and environment in, configuration or findings out.

use crate::{
    Config, Environment, Findings, Level, Loaded, LogLevel, Mode, Origin, SecretSource, layers::merge, load, reference,
    resolve::Take, table::KEYS,
};
use std::{collections::BTreeSet, net::IpAddr, path::PathBuf, time::Duration};
use tempfile::TempDir;

struct Given {
    folder: TempDir,
    file: PathBuf,
}

fn file(text: &str) -> Given {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("wh.yaml");
    std::fs::write(&file, text).unwrap();
    Given { folder, file }
}

/// What a file says, with the warnings, or every error.
pub(crate) fn found(text: &str) -> Result<(Config, Vec<String>), Vec<String>> {
    match with(text, &[]) {
        Ok(loaded) => Ok((loaded.config, loaded.warnings.iter().map(ToString::to_string).collect())),
        Err(findings) => {
            let errors = findings.0.iter().filter(|finding| finding.level == Level::Error);
            Err(errors.map(ToString::to_string).collect())
        }
    }
}

fn with(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, Findings> {
    let given = file(text);
    load(Some(&given.file), &Environment::new(variables.iter().copied()))
}

fn ok(text: &str, variables: &[(&str, &str)]) -> Config {
    with(text, variables).unwrap_or_else(|findings| panic!("{findings}")).config
}

#[track_caller]
fn refused(text: &str, variables: &[(&str, &str)], expected: &[&str]) {
    let Err(findings) = with(text, variables) else { panic!("accepted") };
    assert_eq!(findings.0.len(), expected.len(), "{findings}");
    for part in expected {
        let hits = findings.0.iter().filter(|finding| finding.to_string().contains(part)).count();
        assert!(hits >= 1, "{part:?} is not in {findings}");
    }
}

#[test]
fn nothing_given_is_a_configuration() {
    let config = ok("", &[]);
    assert_eq!(config.server.host, "127.0.0.1".parse::<IpAddr>().unwrap());
    assert_eq!((config.server.port, config.mq.embedded.cache_bytes), (8080, 64 << 20));
    assert_eq!(config.tenant_defaults.clickhouse.url, "http://localhost:8123");
    assert_eq!(config.tenant_defaults.queue_max_bytes, 50_000_000_000);
    assert_eq!(config.ingest.held_rows, 200_000);
    assert_eq!((config.ingest.body_budget, config.ingest.tenant_body_budget), (256 << 20, 192 << 20));
    assert!(config.auth.operator_key.read().unwrap().is_none());
    assert_eq!(ok("mq: {embedded: {shards: 32}}", &[]).ingest.held_rows, 640_000);
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let text = "server: {port: 9000, max_connections: 5}\ningest:\n  mode: lenient\n";
    let loaded = with(text, &[("WH_SERVER_PORT", "9001")]).unwrap();
    let config = &loaded.config;
    assert_eq!((config.server.port, config.server.max_connections, config.ingest.mode), (9001, 5, Mode::Lenient));
    let origin = |path| loaded.effective.iter().find(|key| key.path == path).map(|key| key.origin.clone());
    assert_eq!(origin("server.port"), Some(Origin::Variable("WH_SERVER_PORT".to_owned())));
    assert!(matches!(origin("ingest.mode"), Some(Origin::File(name)) if name.ends_with("wh.yaml")));
    assert_eq!(origin("data_dir"), Some(Origin::Default));
}

#[test]
fn a_written_false_zero_or_empty_text_wins_over_the_default() {
    let config = ok(
        "server: {shutdown_timeout: 0}\nprometheus: {enabled: false}\nauth: {operator_key_file: ''}\n\
         ingest: {missing_table_hold: 0}\n",
        &[],
    );
    assert_eq!(config.server.shutdown_timeout, Duration::ZERO);
    assert_eq!(config.ingest.missing_table_hold, Duration::ZERO);
    let large =
        ok("ingest: {batch_rows: 500000, held_rows: 1000000, batch_bytes: 128MiB, table_inserts: 2}", &[]).ingest;
    assert_eq!((large.batch_max_rows, large.batch_max_bytes, large.table_inserts), (500_000, 128 << 20, 2));
    assert!(!config.prometheus.enabled);
    // … and over the file when the environment says so
    let config = ok(
        "server: {shutdown_timeout: 9s}\nprometheus: {enabled: true}\nauth: {operator_key: hush}\n",
        &[("WH_SERVER_SHUTDOWN_TIMEOUT", "0"), ("WH_PROMETHEUS_ENABLED", "false"), ("WH_AUTH_OPERATOR_KEY", "")],
    );
    assert_eq!(config.server.shutdown_timeout, Duration::ZERO);
    assert!(!config.prometheus.enabled);
    assert!(matches!(config.auth.operator_key, SecretSource::Absent));
}

#[test]
fn everything_wrong_is_named_at_once() {
    refused(
        "server: {port: 0, prot: 1}\ndata_dir: ''\nsever: {port: 1}\ningest: {batch_wait: 5, mode: loose}\nmq: 7\n",
        &[("WH_TYPO", "1"), ("WH_SERVER_PROT", "1"), ("WH_INGEST_BATCH_ROWS", "many")],
        &[
            "server.port in ",
            "server.prot in ",
            "data_dir in ",
            "sever in ",
            "ingest.batch_wait in ",
            "ingest.mode in ",
            "mq in ",
            "WH_TYPO: is no variable of ours",
            "WH_SERVER_PROT: is no variable of ours (did you mean WH_SERVER_PORT?)",
            "WH_INGEST_BATCH_ROWS (ingest.batch_rows): must be a whole number, 1 to 1000000",
        ],
    );
}

#[test]
fn the_nearest_name_is_offered() {
    refused("sever: {port: 1}", &[], &["did you mean server?"]);
    refused("server: {prot: 1}", &[], &["did you mean server.port?"]);
    refused("port: 1", &[], &["did you mean server.port?"]);
    refused("zzz: 1", &[], &["zzz in "]);
    refused("", &[("WH_SERVER_PROT", "1")], &["did you mean WH_SERVER_PORT?"]);
}

#[test]
fn keys_of_later_parts_are_refused_with_that_said() {
    refused(
        "otel: {enabled: true}\nclickhouse: {password: x}\ncache: {l1_max_cost: 1}\ntenant_defaults: {dlq: {}}\n",
        &[("WH_OTEL_ENABLED", "true"), ("WH_CH_PASSWORD", "hush"), ("WH_SETTINGS_DIR", "/etc/wh")],
        &[
            "otel in ",
            "clickhouse in ",
            "cache.l1_max_cost in ",
            "tenant_defaults.dlq in ",
            "WH_OTEL_ENABLED: is no variable of ours (this version does not have it yet",
            "WH_CH_PASSWORD: is no variable of ours (its keys are under tenant_defaults.clickhouse",
            "WH_SETTINGS_DIR: ",
        ],
    );
}

#[test]
fn variables_that_kubernetes_sets_are_named_as_such() {
    let links = [
        ("WH_SERVICE_HOST", "10.0.0.1"),
        ("WH_SERVICE_PORT_HTTP", "80"),
        ("WH_PORT", "tcp://10.0.0.1:80"),
        ("WH_PORT_80_TCP_ADDR", "10.0.0.1"),
        // a Service named wh-server hits a variable of ours
        ("WH_SERVER_PORT", "tcp://10.0.0.1:80"),
    ];
    let Err(findings) = with("", &links) else { panic!("accepted") };
    assert_eq!(findings.0.len(), links.len(), "{findings}");
    for finding in &findings.0 {
        assert!(finding.to_string().contains("enableServiceLinks"), "{finding}");
    }
}

#[test]
fn a_named_file_must_be_there_and_be_a_file_of_ours() {
    let nothing = Environment::default();
    let missing = load(Some("/nonexistent/wh.yaml".as_ref()), &nothing).unwrap_err().to_string();
    assert!(missing.contains("/nonexistent/wh.yaml: cannot be read"), "{missing}");
    let missing = load(None, &Environment::new([("WH_CONFIG", "/nonexistent/wh.yaml")])).unwrap_err().to_string();
    assert!(missing.contains("/nonexistent/wh.yaml"), "{missing}");
    assert!(load(None, &Environment::new([("WH_CONFIG", "")])).is_err());
    let given = file("");
    assert!(load(Some(given.folder.path()), &nothing).unwrap_err().to_string().contains("cannot be read"));
    // the flag is stronger than the variable
    assert!(load(Some(&given.file), &Environment::new([("WH_CONFIG", "/nonexistent/wh.yaml")])).is_ok());
    refused(&"#".repeat(1 << 21), &[], &["more than 1 MiB"]);
}

#[test]
fn yaml_that_means_two_things_is_refused() {
    refused("server: {port: 1, port: 2}", &[], &["server.port in "]);
    refused("server.port: 1", &[], &["dot in its name"]);
    refused("server:\n  port:\n", &[], &["has no value"]);
    refused("- a\n", &[], &["must be a mapping"]);
    refused("server: {port: 1", &[], &["is not valid YAML"]);
    refused("data_dir: 17", &[], &["put it in quotes"]);
    // a section whose keys are all commented out is nothing
    assert_eq!(ok("server:\n#  port: 1\n", &[]).server.port, 8080);
}

#[test]
fn a_host_that_others_reach_needs_a_word() {
    refused("server: {host: 0.0.0.0}", &[], &["auth.allow_open: true"]);
    refused("server: {host: example.org}", &[], &["must be an IP address"]);
    let loaded = with("server: {host: '::'}", &[("WH_AUTH_ALLOW_OPEN", "true")]).unwrap();
    assert_eq!(loaded.warnings.len(), 1);
    assert!(loaded.warnings[0].to_string().starts_with("server.host: is not a loopback address"));
    assert!(with("server: {host: '::1'}", &[]).unwrap().warnings.is_empty());
    let ingest =
        "roles: [ingest]\nserver: {host: '::'}\nmq: {backend: nats, nats: {urls: [a], token_file: /dev/null}}\n";
    let refused = with(&format!("{ingest}coord: {{backend: nats}}"), &[]).unwrap_err().to_string();
    assert!(!refused.contains("server.host"), "it serves nobody's data: {refused}");
}

#[test]
fn clickhouse_is_found_by_url_or_by_parts_and_not_by_both() {
    let url = |text: &str| ok(&format!("tenant_defaults: {{clickhouse: {text}}}"), &[]).tenant_defaults.clickhouse.url;
    assert_eq!(url("{url: 'http://db:8123/'}"), "http://db:8123");
    assert_eq!(url("{addr: 'db:9000', http_port: 80}"), "http://db:80");
    assert_eq!(url("{addr: '[::1]:9000'}"), "http://[::1]:8123");
    assert_eq!(url("{url: 'https://db'}"), "https://db");
    assert_eq!(url("{addr: 'db:9440', http_port: 8443, http_scheme: https}"), "https://db:8443");
    let bad = |text: &str, expected: &[&str]| {
        refused(&format!("tenant_defaults: {{clickhouse: {text}}}"), &[], expected);
    };
    bad("{url: 'http://db', http_port: 8123}", &["give one of them"]);
    bad("{url: 'http://me:pw@db'}", &["must not hold credentials"]);
    bad("{url: 'ftp://db'}", &["http:// or https://"]);
    bad("{url: 'http://db/?x=1'}", &["query"]);
    bad("{url: 'db:8123'}", &["tenant_defaults.clickhouse.url"]);
    bad("{addr: db}", &["host:port"]);
    bad("{database: ''}", &["must not be empty"]);
    bad("{query_timeout: 0}", &["outside of 1s"]);
    bad("{headers: {X-ClickHouse-Key: a, 'a b': c, X-A: b, x-a: c}}", &["X-ClickHouse-Key", "a b", "other letters"]);
}

#[test]
fn secrets_come_from_files_and_are_never_shown() {
    let given = file("");
    let key = given.folder.path().join("key");
    std::fs::write(&key, "hush-key\n").unwrap();
    let variables = [
        ("WH_AUTH_OPERATOR_KEY_FILE", key.to_str().unwrap()),
        ("WH_TENANT_DEFAULTS_CLICKHOUSE_PASSWORD", "hush-password"),
        ("WH_TENANT_DEFAULTS_CLICKHOUSE_HEADERS", r#"{"X-Token":"hush-header"}"#),
    ];
    let loaded = load(Some(&given.file), &Environment::new(variables)).unwrap();
    assert_eq!(loaded.config.auth.operator_key.read().unwrap().unwrap().expose(), "hush-key");
    let shown = format!("{loaded:?} {:?}", Environment::new(variables));
    assert!(!shown.contains("hush"), "{shown}");
    assert_eq!(loaded.effective.iter().filter(|key| key.value == "***").count(), 2);

    let bad = [
        ("WH_AUTH_OPERATOR_KEY_FILE", "/nonexistent/key"),
        ("WH_TENANT_DEFAULTS_CLICKHOUSE_PASSWORD", "hush"),
        ("WH_TENANT_DEFAULTS_CLICKHOUSE_PASSWORD_FILE", "/nonexistent/password"),
    ];
    let findings = load(Some(&given.file), &Environment::new(bad)).unwrap_err().to_string();
    assert!(findings.contains("/nonexistent/key") && findings.contains("give one of them"), "{findings}");
    assert!(!findings.contains("hush"), "{findings}");
    std::fs::write(&key, "\n").unwrap();
    let empty = [("WH_AUTH_OPERATOR_KEY_FILE", key.to_str().unwrap())];
    let loaded = load(Some(&given.file), &Environment::new(empty)).unwrap();
    assert!(loaded.warnings[0].to_string().contains("the file is empty"));
}

#[test]
fn rules_between_keys_hold() {
    refused("roles: [api]", &[], &["must be api and ingest together"]);
    refused("ingest: {held_rows: 10000}", &[], &["two batches"]);
    refused("ingest: {tenant_body_budget: 1GiB}", &[], &["ingest.tenant_body_budget: must not be above"]);
    refused("ingest: {max_row_bytes: 32MiB}", &[], &["ingest.max_row_bytes: must not be above"]);
    refused("server: {request_timeout: 5s}", &[], &["server.request_timeout: must not be below"]);
    refused("prometheus: {path: /v1/metrics}", &[], &["another route"]);
    refused("prometheus: {path: /health}", &[], &["another route"]);
    refused("prometheus: {path: metrics}", &[], &["must be a path"]);
    assert_eq!(ok("", &[("WH_LOG_LEVEL", "WARN")]).log.level, LogLevel::Warn);
}

#[test]
fn every_key_of_the_table_is_used_and_every_used_key_is_in_the_table() {
    let (values, findings) = merge(None, &Environment::default());
    assert!(findings.is_empty());
    let mut take = Take::new(&values);
    crate::resolve::config(&mut take);
    let known: BTreeSet<_> = KEYS.iter().map(|key| key.path).collect();
    assert_eq!(take.asked, known);
}

#[test]
fn the_reference_in_the_docs_is_current() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/configuration.md");
    let written = std::fs::read_to_string(page).unwrap_or_default();
    assert!(written == reference(), "run: cargo run -p wh-config --example reference > docs/guide/configuration.md");
    assert!(KEYS.iter().all(|key| written.contains(&format!("| `{}` | `{}` |", key.path, key.variable()))));
}

#[test]
fn the_deployment_files_name_variables_that_exist() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deployments/");
    let known: BTreeSet<_> = KEYS.iter().map(crate::key::Key::variable).collect();
    for file in ["systemd/wavehouse.service", "compose/compose.yaml"] {
        let text = std::fs::read_to_string(format!("{root}{file}")).unwrap();
        let word = |c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let named: Vec<_> = text.split(word).filter(|name| name.starts_with("WH_")).collect();
        assert!(!named.is_empty(), "{file}");
        for name in named {
            assert!(known.contains(name), "{name} in {file}");
        }
    }
}
