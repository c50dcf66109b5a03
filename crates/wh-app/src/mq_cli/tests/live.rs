//! `wavehouse mq verify` at a running server, as the user that is shipped.

use super::{Said, mq, mq_in};
use crate::Exit;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use wh_testkit::{
    free_port,
    nats::{Options, PASSWORD, Server, Shape},
};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology, renderer};

/// A server with the topology of 1 × 2, our user's password in a file, and a configuration that names both.
struct Stand {
    runtime: Runtime,
    server: Server,
    folder: TempDir,
}

fn stand(role: Role) -> Stand {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let choices = Choices { shards: 2, replicas: 1, file_store: 1 << 30, ..Choices::default() };
    let topology = Topology::new(Spec::new(choices).unwrap()).unwrap();
    let rights = Rights::new(&topology.spec, role).print(RightsFormat::Nats);
    let server = runtime.block_on(async {
        let server = Server::with(Options::default().user("wavehouse", rights)).await.unwrap();
        let files = renderer("nats-cli").unwrap().render(&topology).unwrap();
        let files = files.into_iter().map(|file| (file.name, file.text));
        server.operator().apply(files, &Shape::default()).await.unwrap();
        server
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("password"), PASSWORD).unwrap();
    Stand { runtime, server, folder }
}

impl Stand {
    fn password(&self) -> PathBuf {
        self.folder.path().join("password")
    }

    fn verify(&self, more: &[&str]) -> Said {
        let (url, password) = (self.server.url(), self.password());
        let access = ["verify", "--url", &url, "--user=wavehouse", "--password-file", password.to_str().unwrap()];
        mq(&[&access[..], more].concat())
    }

    /// The configuration's file.
    fn config(&self, more: &str) -> PathBuf {
        let text = format!(
            "mq:\n  backend: nats\n  nats:\n    urls: ['{}']\n    user: wavehouse\n    password_file: {:?}\n    shards: 2\n\
             coord: {{backend: nats}}\n{more}\n",
            self.server.url(),
            self.password()
        );
        let path = self.folder.path().join("config.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn live(config: &Path, more: &[&str]) -> Said {
    mq_in(&["--config", config.to_str().unwrap()], &[&["verify", "--live"], more].concat())
}

#[test]
fn a_running_server_is_judged_as_kept_answers_are() {
    let stand = stand(Role::Both);
    let good = stand.verify(&["--shards=2"]);
    assert_eq!((good.exit, good.err.as_str()), (Exit::Ok, ""), "{}", good.out);
    assert!(good.out.contains("num_replicas") && good.out.ends_with("0 required, 4 recommended\n"), "{}", good.out);

    let wrong = stand.verify(&["--shards=3", "--format=json"]);
    assert_eq!((wrong.exit, wrong.err.as_str()), (Exit::Failure, ""));
    let report: Value = serde_json::from_str(&wrong.out).unwrap();
    assert_eq!((&report["required"], &report["complete"]), (&2.into(), &true.into()), "{report:#}");
    assert_eq!(report["findings"][0]["object"], "consumer WH_INGEST_0/wh-ingest-2");
    assert_eq!(report["findings"][1]["rule"], "partition.metadata_shards");
}

#[test]
fn with_live_everything_is_the_configurations() {
    let stand = stand(Role::Both);
    let good = live(&stand.config(""), &[]);
    assert_eq!((good.exit, good.err.as_str()), (Exit::Ok, ""), "{}", good.out);
    assert!(good.out.ends_with("0 required, 4 recommended\n"), "{}", good.out);

    let both = live(&stand.config(""), &["--shards=2"]);
    assert_eq!((both.exit, both.out.as_str()), (Exit::Usage, ""), "one of the two says it");
    let unknown = live(&stand.config("no_such_key: 1"), &[]);
    assert_eq!((unknown.exit, unknown.out.as_str()), (Exit::Config, ""), "{}", unknown.err);
    let empty = stand.folder.path().join("empty.yaml");
    std::fs::write(&empty, "{}").unwrap();
    let none = live(&empty, &[]);
    assert_eq!(none.exit, Exit::Config);
    assert!(none.err.starts_with("mq.nats.urls is empty: "), "{}", none.err);
}

#[test]
fn the_rights_of_the_user_that_asks_are_judged_too() {
    let stand = stand(Role::Api);
    let api = stand.verify(&["--shards=2", "--role=api"]);
    assert_eq!(api.exit, Exit::Ok, "{}{}", api.out, api.err);
    let ingest = stand.verify(&["--shards=2", "--role=ingest"]);
    assert_eq!(ingest.exit, Exit::Failure);
    // an api may not even see the durables
    let refused = "the server refuses $JS.API.CONSUMER.LIST.WH_INGEST_0 to this user";
    assert!(ingest.err.contains(refused), "{}{}", ingest.out, ingest.err);
}

#[test]
fn a_server_that_is_away_and_a_command_line_that_cannot_be_are_told_apart() {
    let url = format!("nats://127.0.0.1:{}", free_port().unwrap());
    let away = mq(&["verify", "--url", &url, "--connect-timeout=200ms"]);
    assert_eq!((away.exit, away.out.as_str()), (Exit::Failure, ""));
    assert!(away.err.contains(&url) && away.err.contains("not connected"), "{}", away.err);

    let secret = mq(&["verify", "--url=nats://joe:hush@127.0.0.1:4222"]);
    assert_eq!((secret.exit, secret.out.as_str()), (Exit::Usage, ""));
    assert!(!secret.err.contains("hush"), "{}", secret.err);
    for line in [
        &["verify"][..],
        &["verify", "--url=nats://h", "--from=x"],
        &["verify", "--url=nats://h", "--live"],
        &["verify", "--url=nats://h", "--user=u"],
        &["verify", "--url=nats://h", "--creds-file=a", "--token-file=b"],
        &["verify", "--url=nats://h", "--tls-cert-file=a"],
        &["verify", "--from=x", "--creds-file=a"],
    ] {
        assert_eq!(mq(line).exit, Exit::Usage, "{line:?}");
    }
}

#[test]
fn a_wrong_password_is_told_without_it() {
    let stand = stand(Role::Both);
    std::fs::write(stand.password(), "hush").unwrap();
    let refused = stand.verify(&["--shards=2", "--connect-timeout=500ms"]);
    assert_eq!((refused.exit, refused.out.as_str()), (Exit::Failure, ""));
    assert_eq!(refused.err.to_lowercase().matches("authorization violation").count(), 1, "{}", refused.err);
    assert_eq!(refused.err.matches("nats://").count(), 1, "{}", refused.err);
    assert!(!refused.err.contains("hush"), "{}", refused.err);
    stand.runtime.block_on(stand.server.stop()).unwrap();
}
