//! Each command: what it prints, where, and its exit code.

use super::*;

const ABOUT: About = About { name: "wavehouse", version: "1.2.3", commit: "abc" };

struct Said {
    exit: Exit,
    out: String,
    err: String,
}

fn command(line: &[&str], variables: &[(&str, &str)]) -> Said {
    command_of(None, line, variables)
}

fn command_of(roles: Option<&'static [&'static str]>, line: &[&str], variables: &[(&str, &str)]) -> Said {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["wavehouse"].iter().chain(line).map(OsString::from);
    let environment = Environment::new(variables.iter().copied());
    let exit = run_with(ABOUT, roles, arguments, &environment, &mut out, &mut err);
    Said { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

#[test]
fn a_configuration_is_checked_without_starting_anything() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, "server: {port: 9}\nauth: {operator_key: hush}\n").unwrap();
    let file = file.to_str().unwrap();
    let good = command(&["config", "check", "--config", file], &[]);
    assert_eq!((good.exit, good.err.as_str()), (Exit::Ok, ""));
    assert!(good.out.contains(file), "{}", good.out);

    let shown = command(&["config", "check", "--show"], &[("WH_CONFIG", file), ("WH_LOG_LEVEL", "warn")]);
    assert_eq!(shown.exit, Exit::Ok);
    let line = |key: &str| shown.out.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("server.port:").contains(": 9 ") && line("server.port:").ends_with(file));
    assert!(line("log.level:").ends_with("# WH_LOG_LEVEL") && line("data_dir:").ends_with("# default"));
    assert!(line("auth.operator_key:").contains("***") && !shown.out.contains("hush"), "{}", shown.out);

    let open = command(&["config", "check"], &[("WH_SERVER_HOST", "0.0.0.0"), ("WH_AUTH_ALLOW_OPEN", "true")]);
    assert_eq!(open.exit, Exit::Ok);
    assert!(open.err.starts_with("warning: server.host"), "{}", open.err);
}

#[test]
fn every_command_that_needs_a_configuration_refuses_a_bad_one_with_all_findings() {
    for line in [&["serve"][..], &["config", "check"], &["health"], &[]] {
        let said = command(line, &[("WH_TYPO", "1"), ("WH_SERVER_PORT", "0")]);
        assert_eq!((said.exit, said.out.as_str()), (Exit::Config, ""), "{line:?}");
        assert!(said.err.contains("WH_TYPO") && said.err.contains("WH_SERVER_PORT"), "{}", said.err);
    }
}

#[test]
fn version_reference_help_and_mistakes() {
    for line in [&["version"][..], &["--version"], &["-V"]] {
        let said = command(line, &[("WH_TYPO", "1")]);
        assert_eq!((said.exit, said.out.as_str()), (Exit::Ok, "wavehouse 1.2.3 (abc)\n"), "{line:?}");
    }
    let json: serde_json::Value = serde_json::from_str(&command(&["version", "--json"], &[]).out).unwrap();
    // the same as GET /version
    assert_eq!(json, serde_json::json!({ "version": "1.2.3", "git_commit": "abc", "build_time": "unknown" }));
    assert_eq!(command(&["config", "reference"], &[]).out, reference());
    let help = command(&["--help"], &[]);
    assert!(help.exit == Exit::Ok && help.out.contains("health"), "{}", help.out);
    let wrong = command(&["srve"], &[]);
    assert!(wrong.exit == Exit::Usage && wrong.err.contains("srve"), "{}", wrong.err);
}

#[test]
fn health_asks_livez() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port().to_string();
    let answering = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for status in ["200 OK", "503 Service Unavailable"] {
            let (mut stream, _) = server.accept().unwrap();
            let mut request = [0; 1024];
            let length = io::Read::read(&mut stream, &mut request).unwrap();
            asked.push(String::from_utf8_lossy(&request[..length]).into_owned());
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
        asked
    });
    let good = command(&["health"], &[("WH_SERVER_PORT", &port), ("WH_SERVER_HOST", "127.0.0.1")]);
    assert_eq!((good.exit, good.err.as_str()), (Exit::Ok, ""));
    let bad = command(&["health", "--url", &format!("http://127.0.0.1:{port}/livez")], &[]);
    assert_eq!(bad.exit, Exit::Failure);
    assert!(bad.err.contains("503"), "{}", bad.err);
    assert!(answering.join().unwrap().iter().all(|asked| asked.starts_with("GET /livez HTTP/1.1")));
    let nobody = command(&["health"], &[("WH_SERVER_PORT", &port)]);
    assert!(nobody.exit == Exit::Failure && nobody.err.contains("refused"), "{}", nobody.err);
    assert!(command(&["health", "--url", "https://a"], &[]).err.contains("is no http:// address"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_inspected_and_verified_when_nobody_has_it() {
    use wh_mq::{Broker, embedded};
    use wh_types::{Block, BlockId, Encoding, Table, Tenant, Timestamp, frame};
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap().to_owned();
    let dir = folder.path().join("queue");
    let dir_text = dir.to_str().unwrap().to_owned();
    let missing = command(&["queue", "inspect"], &[("WH_DATA_DIR", &data)]);
    assert!(missing.exit == Exit::Failure && missing.err.contains(&dir_text), "{}", missing.err);

    let queue = embedded::Broker::open(embedded::Options::new(&dir)).await.unwrap();
    let block = Block {
        id: BlockId([7; 16]),
        tenant: Tenant::default(),
        table: Table::new("events").unwrap(),
        rows: 2,
        decoded_bytes: 6,
        received: Timestamp::from_millis(1),
        encoding: Encoding::Zstd,
        body: frame::encode(Encoding::Zstd, b"{}\n{}\n").unwrap(),
        chain: None,
        trace: None,
    };
    queue.publish(&[block]).await.remove(0).unwrap();
    let held = command(&["queue", "inspect", "--dir", &dir_text], &[]);
    assert!(held.exit == Exit::Failure && held.err.contains(&std::process::id().to_string()), "{}", held.err);
    // a server that runs is looked at in a copy
    let copy = folder.path().join("copy").to_str().unwrap().to_owned();
    let copied = command(&["queue", "copy", "--to", &copy], &[("WH_DATA_DIR", &data)]);
    assert_eq!((copied.exit, copied.err.as_str()), (Exit::Ok, ""));
    assert!(copied.out.starts_with("copied 1 segment, "), "{}", copied.out);
    let said = command(&["queue", "verify", "--dir", &copy], &[]);
    assert_eq!((said.exit, said.err.as_str()), (Exit::Ok, ""), "{}", said.out);
    assert!(said.out.contains("events: 2 rows in 1 block,"), "{}", said.out);
    let again = command(&["queue", "copy", "--dir", &dir_text, "--to", &copy], &[]);
    assert!(again.exit == Exit::Failure && again.err.contains("is not empty"), "{}", again.err);
    queue.close().await;
    drop(queue);

    for what in ["inspect", "verify"] {
        let said = command(&["queue", what], &[("WH_DATA_DIR", &data)]);
        assert_eq!((said.exit, said.err.as_str()), (Exit::Ok, ""), "{what}");
        assert!(said.out.contains("events: 2 rows in 1 block, 2 in 1 not inserted"), "{}", said.out);
        assert!(said.out.contains("tenant 0: 0.0 MiB of 47683.7 MiB"), "the configured budget: {}", said.out);
        let said = command(&["queue", what, "--dir", &dir_text], &[]);
        assert!(said.out.contains("tenant 0: 0.0 MiB (its budget is in the configuration)"), "{}", said.out);
    }
    let json = command(&["queue", "verify", "--json", "--dir", &dir_text], &[]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["sound"], true);
    assert_eq!(json["tenants"]["0"]["tables"]["events"]["unsettled_rows"], 2, "{json}");
    assert!(json["tenants"]["0"]["budget_bytes"].is_null() && json["listed"] == true, "{json}");

    std::fs::remove_file(dir.join("000000000001.open")).unwrap();
    let said = command(&["queue", "verify"], &[("WH_DATA_DIR", &data)]);
    assert_eq!(said.exit, Exit::Failure, "{}", said.out);
    assert!(
        said.out.contains("segment 1 is gone: bytes 64 to ") && said.out.contains("the rest can be read"),
        "{}",
        said.out
    );
    let json = command(&["queue", "verify", "--json"], &[("WH_DATA_DIR", &data)]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["sound"], &json["missing"][0]["segment"]), (&false.into(), &1.into()), "{json}");
}

#[test]
fn a_queue_on_nats_has_no_folder_to_look_into() {
    let nats = [("WH_MQ_BACKEND", "nats"), ("WH_COORD_BACKEND", "nats"), ("WH_MQ_NATS_URLS", "nats://127.0.0.1:1")];
    for line in [&["queue", "inspect"][..], &["queue", "verify"], &["queue", "copy", "--to", "/nowhere/at/all"]] {
        let said = command(line, &nats);
        assert_eq!((said.exit, said.out.as_str()), (Exit::Usage, ""), "{line:?}");
        assert!(said.err.contains("mq.backend is nats") && said.err.contains("verify --live"), "{}", said.err);
    }
}

#[test]
fn sizes_are_shown_with_their_bytes_and_what_is_shown_can_be_given() {
    let shown = command(&["config", "check", "--show"], &[("WH_INGEST_BATCH_BYTES", "8388608")]);
    let line = |key: &str| shown.out.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("ingest.batch_bytes:").starts_with("ingest.batch_bytes: 8MiB "), "{}", shown.out);
    assert!(line("ingest.batch_bytes:").ends_with("# WH_INGEST_BATCH_BYTES; 8388608 bytes"), "{}", shown.out);
    assert!(line("ingest.batch_max_bytes:").starts_with("ingest.batch_max_bytes: 64MiB "), "{}", shown.out);
    assert!(line("ingest.tenant_body_budget:").starts_with("ingest.tenant_body_budget: 192MiB "), "{}", shown.out);
    let given = command(&["config", "check"], &[("WH_INGEST_BATCH_BYTES", "8MiB")]);
    assert_eq!(given.exit, Exit::Ok, "{}", given.err);
}

#[test]
fn dead_letters_are_shown_by_id_and_nothing_else_is_taken_for_one() {
    for id in ["counts", "", "1"] {
        let said = command(&["dlq", "show", id], &[]);
        assert_eq!(said.exit, Exit::Usage, "{id:?}");
        assert!(said.err.contains("an id is like 0000000e-22.0"), "{}", said.err);
    }
}

#[test]
fn doctor_fails_while_clickhouse_does_not_answer() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let variables = [("WH_DATA_DIR", data), ("WH_TENANT_DEFAULTS_CLICKHOUSE_URL", "http://127.0.0.1:1")];
    let said = command(&["doctor"], &variables);
    assert_eq!((said.exit, said.err.as_str()), (Exit::Failure, ""), "{}", said.out);
    assert!(said.out.contains("it does not answer now: "), "{}", said.out);
}

#[test]
fn doctor_tells_what_is_wrong_with_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().to_str().unwrap(), folder.path().join("pipes.json"));
    let file = file.to_str().unwrap();
    let variables = [
        ("WH_DATA_DIR", data),
        ("WH_TENANT_DEFAULTS_CLICKHOUSE_URL", "http://127.0.0.1:1"),
        ("WH_TENANT_DEFAULTS_PIPES_FILE", file),
    ];
    for (text, told) in [
        ("{\"pipes\": [{\"name\": \"a\", \"sql\": \"SELECT 1\"}]}", "pipes.json: 1 pipe\n"),
        ("{\"pipes\": [{\"name\": \"a\"}]}", "cannot be used: 1 error\n  pipes[0] (line 1): needs a name and sql\n"),
    ] {
        std::fs::write(file, text).unwrap();
        let said = command(&["doctor"], &variables);
        assert!(said.exit == Exit::Failure && said.out.contains(told), "{}{}", said.out, said.err);
    }
}

#[test]
fn a_program_with_fixed_roles_reads_a_shared_configuration_as_its_own() {
    let nats = [("WH_MQ_BACKEND", "nats"), ("WH_COORD_BACKEND", "nats"), ("WH_MQ_NATS_URLS", "nats://127.0.0.1:1")];
    for (roles, help) in
        [(&["api"] as &'static [&str], "into the queue on NATS"), (&["ingest"], "from the queue on NATS")]
    {
        let shown = command_of(Some(roles), &["config", "check", "--show"], &nats);
        assert_eq!(shown.exit, Exit::Ok, "{}", shown.err);
        let line = shown.out.lines().find(|line| line.starts_with("roles:")).unwrap();
        assert!(line.contains(roles[0]) && line.ends_with("# wavehouse"), "{line}");
        assert!(command_of(Some(roles), &["--help"], &[]).out.contains(help));
        let other = command_of(Some(roles), &["config", "check"], &[&nats[..], &[("WH_ROLES", "api,ingest")]].concat());
        assert_eq!(other.exit, Exit::Config);
        assert!(other.err.contains("says api,ingest in WH_ROLES"), "{}", other.err);
        let embedded = command_of(Some(roles), &["serve"], &[]);
        assert!(
            embedded.exit == Exit::Config && embedded.err.contains("mq.backend: nats lets several"),
            "{}",
            embedded.err
        );
    }
}
