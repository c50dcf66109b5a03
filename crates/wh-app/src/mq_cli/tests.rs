//! Each command as a person types it.

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
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["wavehouse", "mq"].iter().chain(line).map(OsString::from);
    let about = About { name: "wavehouse", version: "1.2.3", commit: "abc" };
    let exit = run_with(about, arguments, &Environment::new::<&str, &str>([]), &mut out, &mut err);
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

#[test]
fn what_cannot_be_generated_fails_and_what_cannot_be_read_is_usage() {
    for (line, text) in [
        (&["manifests", "--shards=300"][..], "shards: 300 must be 1 to 256"),
        (&["manifests", "--shards=0"], "shards: 0 must be"),
        (&["manifests", "--partitions=6"], "file-store: 100Gi is less than the 105Gi"),
        (&["manifests", "--prefix=A", "--replicas=9"], "prefix: \"A\" must be"),
        (&["manifests", "--prefix=a_b"], "nack cannot say metadata.name"),
        (&["manifests", "--format=terraform", "--js-domain=hub"], "terraform cannot say js_domain"),
        (&["permissions", "--js-domain=a.b"], "js-domain: \"a.b\" must be"),
    ] {
        let said = mq(line);
        assert_eq!((said.exit, said.out.as_str()), (Exit::Failure, ""), "{line:?}");
        assert!(said.err.contains(text), "{line:?}: {}", said.err);
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
    assert_eq!(said.err.trim_end(), format!("{} answer 1: is a stream without a name", bad.display()));
}
