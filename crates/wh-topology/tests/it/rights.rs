//! The generated rights in a real server: they load, they are enough for what each role does, and for no more.

use crate::real::create;
use anyhow::{Result, ensure};
use std::process::Command;
use wh_testkit::{
    nats::{Client, Options, Reply, Server},
    servers::{NATS_VERSIONS, nats_server},
};
use wh_topology::{Choices, Rights, RightsFormat, Role, Spec, Topology, overlap};

fn spec(domain: Option<&str>) -> Spec {
    let js_domain = domain.map(str::to_owned);
    Spec::new(Choices { shards: 2, replicas: 1, file_store: 512 << 20, js_domain, ..Choices::default() }).unwrap()
}

/// A user for each role.
fn users(spec: &Spec) -> Options {
    let role =
        |options: Options, role: Role| options.user(role.name(), Rights::new(spec, role).print(RightsFormat::Nats));
    let options = Role::ALL.into_iter().fold(Options::default(), role);
    spec.choices().js_domain.iter().fold(options, |options, domain| options.domain(domain))
}

#[test]
fn the_rights_of_every_role_load_with_and_without_a_domain() -> Result<()> {
    for version in NATS_VERSIONS {
        for domain in [None, Some("hub")] {
            let folder = tempfile::tempdir()?;
            let file = folder.path().join("nats.conf");
            std::fs::write(&file, users(&spec(domain)).file(0, folder.path()))?;
            let tried = Command::new(nats_server(version)?).arg("-t").arg("-c").arg(&file).output()?;
            ensure!(tried.status.success(), "{version} {domain:?}: {}", String::from_utf8_lossy(&tried.stderr));
        }
    }
    Ok(())
}

/// What a process asks for, with a body that moves nothing where that is possible.
struct Ask {
    subject: &'static str,
    body: &'static str,
    roles: &'static [Role],
}

const API: &[Role] = &[Role::Api, Role::Both];
const INGEST: &[Role] = &[Role::Ingest, Role::Both];
const EVERYONE: &[Role] = &[Role::Api, Role::Ingest, Role::Both];
const NOBODY: &[Role] = &[];

const fn ask(roles: &'static [Role], subject: &'static str, body: &'static str) -> Ask {
    Ask { subject, body, roles }
}

/// `$JS.API.` stands for each form of the API.
const ASKS: &[Ask] = &[
    ask(EVERYONE, "$JS.API.INFO", ""),
    ask(EVERYONE, "$JS.API.STREAM.NAMES", r#"{"subject":"wh.ingest.0.x"}"#),
    ask(EVERYONE, "$JS.API.STREAM.INFO.WH_INGEST_0", ""),
    ask(INGEST, "$JS.API.CONSUMER.LIST.WH_INGEST_0", r#"{"offset":0}"#),
    ask(EVERYONE, "$JS.API.CONSUMER.INFO.WH_INGEST_0.wh-ingest-1", ""),
    ask(EVERYONE, "wh.ingest.0.1.acme.t", "x"),
    ask(EVERYONE, "$JS.API.DIRECT.GET.WH_HISTORY", r#"{"seq":1}"#),
    ask(EVERYONE, "$JS.API.DIRECT.GET.WH_DLQ", r#"{"seq":1}"#),
    ask(EVERYONE, "$JS.API.STREAM.MSG.DELETE.WH_DLQ", r#"{"seq":999}"#),
    ask(INGEST, "wh.dlq.acme.t", "x"),
    ask(INGEST, "wh.done.acme.t", "x"),
    ask(
        INGEST,
        "$JS.API.CONSUMER.MSG.NEXT.WH_INGEST_0.wh-ingest-0",
        r#"{"expires":1000000000,"idle_heartbeat":1000000000}"#,
    ),
    ask(INGEST, "$JS.API.CONSUMER.UNPIN.WH_INGEST_0.wh-ingest-0", "{}"),
    ask(INGEST, "$JS.API.CONSUMER.RESET.WH_INGEST_0.wh-ingest-0", "{"),
    ask(INGEST, "$JS.API.CONSUMER.MSG.NEXT.WH_INGEST_9.wh-ingest-1", "{}"),
    ask(INGEST, "$JS.API.CONSUMER.UNPIN.WH_INGEST_0.wh-ingest-1", "{}"),
    ask(INGEST, "$JS.API.CONSUMER.RESET.WH_INGEST_0.wh-ingest-1", "{"),
    ask(INGEST, "$JS.ACK.WH_INGEST_0.wh-ingest-0.1.1.1.1.0", "?wh-probe"),
    ask(INGEST, "$JS.ACK.WH_INGEST_0.wh-ingest-1.1.1.1.1.0", "?wh-probe"),
    ask(INGEST, "$JS.ACK.hub.account.WH_INGEST_0.wh-ingest-0.1.1.1.1.0", "?wh-probe"),
    ask(INGEST, "$JS.ACK.hub.account.WH_INGEST_0.wh-ingest-1.1.1.1.1.0", "?wh-probe"),
    ask(INGEST, "$KV.wh_coord.lease.ingest.0", "x"),
    ask(INGEST, "$JS.API.DIRECT.GET.KV_wh_coord.$KV.wh_coord.lease.ingest.0", ""),
    ask(INGEST, "$JS.API.DIRECT.GET.KV_wh_coord", r#"{"multi_last":["$KV.wh_coord.lease.ingest.*"]}"#),
    ask(NOBODY, "wh.hist.acme.t", "x"),
    ask(NOBODY, "$KV.wh_coord.other", "x"),
    ask(NOBODY, "$JS.API.STREAM.CREATE.X", r#"{"name":"X","subjects":["x"]}"#),
    ask(NOBODY, "$JS.API.STREAM.UPDATE.WH_DLQ", "{}"),
    ask(NOBODY, "$JS.API.STREAM.DELETE.WH_INGEST_0", ""),
    ask(NOBODY, "$JS.API.STREAM.PURGE.WH_DLQ", ""),
    ask(NOBODY, "$JS.API.STREAM.MSG.GET.WH_INGEST_0", r#"{"seq":1}"#),
    ask(NOBODY, "$JS.API.STREAM.MSG.DELETE.WH_INGEST_0", r#"{"seq":1}"#),
    ask(NOBODY, "$JS.API.STREAM.MSG.DELETE.WH_HISTORY", r#"{"seq":1}"#),
    ask(NOBODY, "$JS.API.CONSUMER.CREATE.WH_HISTORY", "{}"),
    ask(NOBODY, "$JS.API.CONSUMER.CREATE.WH_HISTORY.x", "{}"),
    ask(NOBODY, "$JS.API.CONSUMER.CREATE.WH_HISTORY.x.wh.hist.a", "{}"),
    ask(NOBODY, "$JS.API.CONSUMER.DURABLE.CREATE.WH_HISTORY.x", "{}"),
    ask(NOBODY, "$JS.API.CONSUMER.DELETE.WH_INGEST_0.wh-ingest-0", ""),
    ask(NOBODY, "$JS.API.CONSUMER.PAUSE.WH_INGEST_0.wh-ingest-0", "{}"),
    ask(NOBODY, "$JS.API.CONSUMER.MSG.NEXT.WH_INGEST_0.wh-ingest-2", "{}"),
    ask(NOBODY, "$JS.API.CONSUMER.MSG.NEXT.WH_HISTORY.x", "{}"),
    ask(NOBODY, "$JS.API.DIRECT.GET.KV_other", r#"{"seq":1}"#),
    ask(NOBODY, "$JS.ACK.WH_INGEST_0.wh-ingest-2.1.1.1.1.0", "?wh-probe"),
];

const SUBSCRIPTIONS: &[(&[Role], &str)] = &[
    (EVERYONE, "_INBOX_wh.x"),
    (API, "wh.hist.>"),
    (API, "wh.done.>"),
    (INGEST, "$KV.wh_coord.lease.>"),
    (NOBODY, "_INBOX.>"),
    (NOBODY, "wh.ingest.>"),
    (NOBODY, "wh.dlq.>"),
    (NOBODY, "$JS.API.>"),
    (NOBODY, ">"),
];

/// Each ask in every form that a domain gives it.
fn forms(subject: &str, domain: Option<&str>) -> Vec<String> {
    let long = domain.and_then(|domain| Some(format!("$JS.{domain}.API.{}", subject.strip_prefix("$JS.API.")?)));
    let lease = domain
        .filter(|_| subject.starts_with("$KV.wh_coord.lease"))
        .map(|domain| format!("$JS.{domain}.API.{subject}"));
    [Some(subject.to_owned()), long, lease].into_iter().flatten().collect()
}

#[tokio::test]
async fn each_role_may_do_what_it_does_and_nothing_else() -> Result<()> {
    for domain in [None, Some("hub")] {
        let spec = spec(domain);
        let server = Server::with(users(&spec)).await?;
        create(&mut server.operator(), &Topology::new(spec.clone())?).await?;
        for role in Role::ALL {
            let mut client = Client::connect(server.port(), Some(role.name()), "_INBOX_wh").await?;
            for Ask { subject, body, roles } in ASKS {
                for subject in forms(subject, domain) {
                    let refused = matches!(client.request(&subject, body).await?, Reply::Refused(_));
                    assert_eq!(refused, !roles.contains(&role), "{role} {subject}");
                }
            }
            for (roles, subject) in SUBSCRIPTIONS {
                let refused = client.subscribe(subject).await?.is_some();
                assert_eq!(refused, !roles.contains(&role), "{role} subscribes to {subject}");
            }
            drop(client);
            needs_every_line(&spec, role, domain);
        }
    }
    Ok(())
}

/// A right that nothing above asks for would be one too many.
fn needs_every_line(spec: &Spec, role: Role, domain: Option<&str>) {
    let rights = Rights::new(spec, role);
    let asked: Vec<_> =
        ASKS.iter().filter(|ask| ask.roles.contains(&role)).flat_map(|ask| forms(ask.subject, domain)).collect();
    for right in &rights.publish {
        assert!(asked.iter().any(|subject| overlap(&right.subject, subject)), "{role} never needs {}", right.subject);
    }
    let subscribed = SUBSCRIPTIONS.iter().filter(|(roles, _)| roles.contains(&role));
    let subscribed: Vec<_> = subscribed.map(|(_, subject)| *subject).collect();
    for right in &rights.subscribe {
        assert!(
            subscribed.iter().any(|subject| overlap(&right.subject, subject)),
            "{role} never needs {}",
            right.subject
        );
    }
}
