//! Each command as a person types it.

mod live;

use crate::{About, Exit, cli::run_with};
use serde_json::{Value, json};
use std::{ffi::OsString, path::Path};
use wh_config::Environment;
use wh_topology::{Choices, Spec, Topology};

struct Said {
    exit: Exit,
    out: String,
    err: String,
}

fn mq(line: &[&str]) -> Said {
    mq_in(&[], line)
}

/// With flags before the command.
fn mq_in(before: &[&str], line: &[&str]) -> Said {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["wavehouse"].iter().chain(before).chain(&["mq"]).chain(line).map(OsString::from);
    let about = About { name: "wavehouse", version: "1.2.3", commit: "abc" };
    let exit = run_with(about, None, arguments, &Environment::new::<&str, &str>([]), &mut out, &mut err);
    Said { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// Keeps what a server would answer for 1 × 2, one file for streams and one for consumers.
fn keep(folder: &Path) {
    let choices = Choices { shards: 2, ..Choices::default() };
    let topology = Topology::new(Spec::new(choices).unwrap()).unwrap();
    let streams: Vec<_> = topology
        .streams()
        .iter()
        .map(|config| json!({ "config": config, "created": "2026-11-29T17:36:40Z", "state": { "messages": 0 } }))
        .collect();
    let durables: Vec<_> = topology.partitions[0]
        .shards
        .iter()
        .map(|config| json!({ "stream_name": "WH_INGEST_0", "name": config.name, "config": config }))
        .collect();
    let write = |name: &str, value: Value| std::fs::write(folder.join(name), value.to_string()).unwrap();
    write("streams.json", json!({ "streams": streams }));
    write("consumers.json", json!({ "consumers": durables }));
    write("server.json", json!({ "server_id": "N", "server_name": "n1", "version": "2.14.6" }));
    std::fs::write(folder.join("notes.txt"), "not an answer").unwrap();
}

#[test]
fn manifests_are_printed_or_written_and_say_how_they_were_made() {
    let plain = mq(&["manifests", "--partitions=2", "--shards=4"]);
    assert_eq!((plain.exit, plain.err.as_str()), (Exit::Ok, ""));
    assert!(plain.out.contains("#   wavehouse mq manifests --partitions=2 --shards=4 --prefix=wh --replicas=3"));
    assert_eq!(plain.out.matches("kind: Consumer").count(), 8);
    assert!(mq(&["manifests", "--format", "terraform"]).out.contains("resource \"jetstream_stream\" \"ingest_0\""));

    let several = mq(&["manifests", "--format=nats-cli"]);
    assert_eq!((several.exit, several.out.as_str()), (Exit::Usage, ""));
    assert!(several.err.contains("--output DIR"), "{}", several.err);
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new").join("cli");
    let written = mq(&["manifests", "--format=nats-cli", "--shards=2", "--output", target.to_str().unwrap()]);
    assert_eq!((written.exit, written.out.lines().count()), (Exit::Ok, 7));
    let script = std::fs::metadata(target.join("apply.sh")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&script.permissions()) & 0o777, 0o755);
    assert!(target.join("WH_INGEST_0.wh-ingest-1.json").is_file());
}

/// What a folder holds, sorted, hidden files too.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

#[test]
fn a_second_run_takes_its_older_files_away_and_leaves_those_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("provider.tf"), "mine").unwrap();
    let cli = |shards: &str| mq(&["manifests", "--format=nats-cli", shards, "--output", target]);
    assert_eq!(cli("--shards=3").exit, Exit::Ok);
    assert!(folder.path().join("WH_INGEST_0.wh-ingest-2.json").is_file());
    let again = cli("--shards=2");
    assert_eq!(again.exit, Exit::Ok);
    let gone = folder.path().join("WH_INGEST_0.wh-ingest-2.json");
    assert!(!gone.exists() && again.out.ends_with(&format!("removed {}\n", gone.display())), "{}", again.out);
    assert!(folder.path().join("WH_INGEST_0.wh-ingest-1.json").is_file());
    // another format, and permissions, are sets of their own
    assert_eq!(mq(&["manifests", "--output", target]).exit, Exit::Ok);
    assert_eq!(mq(&["permissions", "--role=api", "--output", target]).exit, Exit::Ok);
    assert_eq!(mq(&["permissions", "--role=ingest", "--output", target]).exit, Exit::Ok);
    let names = names(folder.path());
    for name in ["provider.tf", "apply.sh", "wavehouse.yaml", "api.conf", "ingest.conf"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    assert_eq!(names.len(), 13, "{names:?}");
    // a list that was tampered with reaches nothing outside
    let outside = folder.path().with_extension("outside");
    std::fs::write(&outside, "mine").unwrap();
    let way = format!("../{}\n/etc/hostname\n..\n", outside.file_name().unwrap().to_str().unwrap());
    std::fs::write(folder.path().join(".wavehouse-manifests-nats-cli"), way).unwrap();
    assert_eq!(cli("--shards=2").exit, Exit::Ok);
    assert!(outside.exists());
    std::fs::remove_file(outside).unwrap();
}

#[test]
fn output_that_fails_half_way_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().to_str().unwrap();
    let cli = |shards: &str| mq(&["manifests", "--format=nats-cli", shards, "--output", target]);
    assert_eq!(cli("--shards=2").exit, Exit::Ok);
    let script = folder.path().join("apply.sh");
    let before = (names(folder.path()), std::fs::read(folder.path().join("WH_DLQ.json")).unwrap());
    std::fs::remove_file(&script).unwrap();
    std::fs::create_dir(&script).unwrap();
    let said = cli("--shards=4");
    assert_eq!((said.exit, said.out.as_str()), (Exit::Failure, ""));
    assert!(said.err.contains("apply.sh: it is a folder"), "{}", said.err);
    assert_eq!((names(folder.path()), std::fs::read(folder.path().join("WH_DLQ.json")).unwrap()), before);

    let file = folder.path().join("WH_DLQ.json/below");
    let nowhere = mq(&["manifests", "--output", file.to_str().unwrap()]);
    assert!(nowhere.exit == Exit::Failure && nowhere.err.contains("cannot make"), "{}", nowhere.err);
}

#[test]
fn what_cannot_be_generated_fails() {
    for (line, text) in [
        (&["manifests", "--partitions=6"][..], "file-store: 100Gi is less than the 105Gi"),
        (&["manifests", "--prefix=a_b"], "nack cannot say metadata.name"),
        (&["manifests", "--format=terraform", "--js-domain=hub"], "terraform cannot say js_domain"),
    ] {
        let said = mq(line);
        assert_eq!((said.exit, said.out.as_str()), (Exit::Failure, ""), "{line:?}");
        assert!(said.err.contains(text), "{line:?}: {}", said.err);
    }
}

#[test]
fn a_value_out_of_bounds_and_one_that_cannot_be_read_are_usage() {
    for (line, text) in [
        (&["manifests", "--shards=300"][..], "shards: 300 must be 1 to 256"),
        (&["manifests", "--shards=0"], "shards: 0 must be"),
        (&["manifests", "--partitions=0"], "partitions: 0 must be"),
        (&["manifests", "--replicas=6"], "replicas: 6 must be 1 to 5"),
        (&["manifests", "--prefix=A", "--replicas=9"], "prefix: \"A\" must be"),
        (&["manifests", "--prefix=A", "--replicas=9"], "replicas: 9 must be"),
        (&["manifests", "--publish-timeout=0"], "publish-timeout: 0s must be"),
        (&["manifests", "--history-max-age=0"], "history-max-age: 0s must be"),
        (&["manifests", "--dedupe-lease=1s"], "dedupe-lease: 1s must be"),
        (&["permissions", "--js-domain=a.b"], "js-domain: \"a.b\" must be"),
        (&["permissions", "--inbox-prefix=a..b"], "inbox-prefix: \"a..b\" must be"),
        // before any file is read
        (&["verify", "--from=/nonexistent", "--shards=257"], "shards: 257 must be"),
        (&["verify", "--from=/nonexistent", "--coord-lease=0"], "coord-lease: 0s must be"),
        (&["plan", "--from=/nonexistent", "--partitions=0"], "partitions: 0 must be"),
    ] {
        let said = mq(line);
        assert_eq!((said.exit, said.out.as_str()), (Exit::Usage, ""), "{line:?}");
        assert!(said.err.contains(text) && !said.err.contains("nonexistent"), "{line:?}: {}", said.err);
    }
    for line in [
        &["nothing"][..],
        &["manifests", "stray"],
        &["manifests", "--partitions=many"],
        &["manifests", "--file-store=0"],
        &["manifests", "--file-store=1.5Gi"],
        &["manifests", "--publish-timeout=5"],
        &["manifests", "--format=helm"],
        &["permissions", "--role=sweeper"],
        &["verify"],
        &["plan"],
    ] {
        let said = mq(line);
        assert_eq!((said.exit, said.out.as_str()), (Exit::Usage, ""), "{line:?}");
        assert!(!said.err.is_empty(), "{line:?}");
    }
    let help = mq(&["manifests", "--help"]);
    assert_eq!((help.exit, help.err.as_str()), (Exit::Ok, ""));
    assert!(help.out.contains("--file-store <SIZE>") && help.out.contains("[default: 100Gi]"), "{}", help.out);
}

#[test]
fn an_empty_name_is_the_derived_one() {
    let plain = mq(&["manifests", "--history-stream=", "--coord-bucket="]);
    assert_eq!(plain.out, mq(&["manifests"]).out);
}

#[test]
fn permissions_are_printed_by_role() {
    let both = mq(&["permissions", "--shards=1"]);
    assert_eq!(both.exit, Exit::Ok);
    assert!(both.out.contains("\"wh.dlq.>\"") && both.out.contains("\"wh.hist.>\""), "{}", both.out);
    let api = mq(&["permissions", "--role=api", "--no-dlq-delete", "--format=helm"]);
    assert!(api.out.contains("user: wavehouse-api") && !api.out.contains("MSG.DELETE"), "{}", api.out);
    let folder = tempfile::tempdir().unwrap();
    let written = mq(&["permissions", "--role=ingest", "--output", folder.path().to_str().unwrap()]);
    assert_eq!(written.out.trim_end(), folder.path().join("ingest.conf").display().to_string());
}

#[test]
fn a_kept_topology_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    keep(folder.path());
    let from = folder.path().to_str().unwrap();
    let good = mq(&["verify", "--from", from, "--shards=2"]);
    assert_eq!((good.exit, good.out.as_str()), (Exit::Ok, "0 required, 0 recommended\n"), "{}", good.err);

    let wrong = mq(&["verify", "--from", from, "--shards=3"]);
    assert_eq!(wrong.exit, Exit::Failure);
    assert!(wrong.out.contains("required: consumer WH_INGEST_0/wh-ingest-2: durable_name: does not exist"));
    assert!(wrong.out.contains("fix: nats consumer add WH_INGEST_0 wh-ingest-2 --config"), "{}", wrong.out);
    assert!(wrong.out.contains("printed by: wavehouse mq manifests --partitions=1 --shards=3"), "{}", wrong.out);
    assert!(wrong.out.ends_with("2 required, 0 recommended\n"), "{}", wrong.out);

    let api = mq(&["verify", "--from", from, "--shards=2", "--role=api", "--dedupe-retention=1m", "--format=json"]);
    let report: Value = serde_json::from_str(&api.out).unwrap();
    assert_eq!(
        (&report["required"], &report["recommended"], &report["complete"]),
        (&json!(0), &json!(1), &json!(true))
    );
    assert_eq!(report["findings"][0]["rule"], "dedupe.retention");
    assert_eq!(api.exit, Exit::Ok, "what is recommended does not fail");

    std::fs::write(folder.path().join("missing.json"), r#"{"streams":[],"missing":["X"]}"#).unwrap();
    let unread = mq(&["verify", "--from", from, "--shards=2"]);
    assert_eq!(unread.exit, Exit::Failure);
    assert!(unread.out.ends_with("0 required, 1 recommended; not everything could be read\n"), "{}", unread.out);
}

#[test]
fn a_plan_is_shown_for_a_person_and_for_a_program() {
    let folder = tempfile::tempdir().unwrap();
    keep(folder.path());
    let from = folder.path().to_str().unwrap();
    let same = mq(&["plan", "--from", from, "--shards=2"]);
    assert_eq!(
        (same.exit, same.out.as_str()),
        (Exit::Ok, "1 partition x 2 shards\n  leave    6 that are as they should be\n")
    );
    let more = mq(&["plan", "--from", from, "--shards=2", "--partitions=2"]);
    assert!(more.out.starts_with("2 partitions x 2 shards (now 1 partition x 2 shards)\n"), "{}", more.out);
    assert!(more.out.contains("  create   WH_INGEST_1\n") && more.out.contains("2. stop api: "), "{}", more.out);
    let json = mq(&["plan", "--from", from, "--shards=4", "--format=json"]);
    let plan: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&plan["from"]["shards"], &plan["to"]["shards"]), (&json!(2), &json!(4)));
    assert_eq!(plan["changes"][3]["action"], "create");
}

#[test]
fn answers_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let from = |path: &Path| mq(&["verify", "--from", path.to_str().unwrap()]);
    let nowhere = from(&folder.path().join("none"));
    assert!(nowhere.exit == Exit::Failure && nowhere.err.contains("cannot read"), "{}", nowhere.err);
    let empty = from(folder.path());
    assert!(empty.err.contains("holds no .json file"), "{}", empty.err);
    let bad = folder.path().join("bad.json");
    std::fs::write(&bad, "{\"config\":{},\"created\":\"t\"}").unwrap();
    let said = from(folder.path());
    let place = format!("{} answer 1: ", bad.display());
    assert_eq!(said.err.trim_end(), format!("{place}is a stream without a name: config.name is missing"));
    std::fs::write(&bad, r#"{"config":{"name":"A","max_age":"1h"},"created":"t"}"#).unwrap();
    let said = from(folder.path());
    assert!(said.err.starts_with(&format!("{place}config.max_age is a text; it must be")), "{}", said.err);
    let stream = r#"{"config":{"name":"A","subjects":["wh.ingest.0.>"]},"created":"t","state":{"consumer_count":32}}"#;
    std::fs::write(&bad, stream).unwrap();
    for line in [&["verify", "--from"][..], &["plan", "--from"]] {
        let said = mq(&[line, &[folder.path().to_str().unwrap()]].concat());
        assert_eq!((said.exit, said.out.as_str()), (Exit::Failure, ""));
        let told = "the answers together hold none of the 32 consumers of A: their list is missing";
        assert_eq!(said.err.trim_end(), told);
    }
    let api = mq(&["verify", "--role=api", "--from", folder.path().to_str().unwrap()]);
    assert!(api.err.is_empty() && api.out.contains("required"), "an api process checks no durables: {}", api.err);
}
