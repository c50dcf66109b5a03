//! TLS and mutual TLS, and certificates that change while a connection lives.

use crate::{
    authority::{Authority, Files},
    common::{SOON, fails, generation, options},
};
use bytes::Bytes;
use std::path::Path;
use tempfile::TempDir;
use wh_nats::{Connection, Kind, Options};
use wh_testkit::{nats, nats::Server, until};

on_each_version!(
    a_server_is_trusted_by_its_authority_and_its_name,
    encryption_may_come_before_the_greeting,
    a_new_certificate_is_shown_without_a_restart,
    a_new_authority_is_trusted_without_a_restart,
);

fn server_options(version: &'static str, files: &Files, more: &str) -> nats::Options {
    let (cert, key) = (&files.cert, &files.key);
    nats::Options::default()
        .version(version)
        .lines(&format!("tls {{ cert_file: {cert:?}, key_file: {key:?}, {more} }}"))
}

fn trusting(server: &Server, ca: &Path) -> Options {
    let mut options = options(server.url());
    options.tls.ca_file = Some(ca.to_owned());
    options.tls.required = true;
    options.connect_timeout = SOON;
    options
}

async fn a_server_is_trusted_by_its_authority_and_its_name(version: &'static str) {
    let dir = TempDir::new().unwrap();
    let (ca, other) = (dir.path().join("ca.pem"), dir.path().join("other.pem"));
    let (authority, files) = (Authority::new("one"), Files::of(dir.path(), "server"));
    authority.write(&ca);
    Authority::new("two").write(&other);
    authority.sign(&["nats.example"], "server", &files);
    let server = Server::with(server_options(version, &files, "")).await.unwrap();
    // under its own name only
    let mut named = trusting(&server, &ca);
    fails(named.clone(), "not valid for name").await;
    named.tls.server_name = Some("nats.example".into());
    Connection::open(named.clone()).await.unwrap().round_trip().await.unwrap();
    // by its own authority only
    named.tls.ca_file = Some(other);
    fails(named.clone(), "unknownissuer").await;
    // what the server demands is done unasked
    (named.tls.ca_file, named.tls.required) = (Some(ca), false);
    Connection::open(named.clone()).await.unwrap().round_trip().await.unwrap();
    named.tls.ca_file = Some(dir.path().join("none.pem"));
    let error = Connection::open(named).await.unwrap_err();
    assert!(matches!(error.kind(), Kind::Config(what) if what.contains("none.pem")), "{error}");
}

async fn encryption_may_come_before_the_greeting(version: &'static str) {
    let dir = TempDir::new().unwrap();
    let (ca, files, authority) = (dir.path().join("ca.pem"), Files::of(dir.path(), "server"), Authority::new("one"));
    authority.write(&ca);
    authority.sign(&["127.0.0.1"], "server", &files);
    let server = Server::with(server_options(version, &files, "handshake_first: true")).await.unwrap();
    let mut first = trusting(&server, &ca);
    first.tls.handshake_first = true;
    Connection::open(first).await.unwrap().round_trip().await.unwrap();
}

async fn a_new_certificate_is_shown_without_a_restart(version: &'static str) {
    let dir = TempDir::new().unwrap();
    let (ca, files, authority) = (dir.path().join("ca.pem"), Files::of(dir.path(), "server"), Authority::new("one"));
    authority.write(&ca);
    authority.sign(&["127.0.0.1"], "server", &files);
    let own = Files::of(dir.path(), "own");
    authority.sign(&["first.example"], "first", &own);
    let users = r#"authorization { users: [
        { user: "first.example", permissions: { publish: ["first", "$JS.API.INFO"], subscribe: "_INBOX_wh.>" } }
        { user: "second.example", permissions: { publish: ["second", "$JS.API.INFO"], subscribe: "_INBOX_wh.>" } }
    ] }"#;
    let mapped = format!("ca_file: {ca:?}, verify_and_map: true");
    let server = Server::with(server_options(version, &files, &mapped).lines(users)).await.unwrap();
    let mut options = trusting(&server, &ca);
    fails(options.clone(), "certificate").await;
    (options.tls.cert_file, options.tls.key_file) = (Some(own.cert.clone()), Some(own.key.clone()));
    let connection = Connection::open(options.clone()).await.unwrap();
    let who = async || {
        let asked = connection.request("second", None, Bytes::new(), SOON).await.unwrap_err();
        matches!(asked.kind(), Kind::NoResponders)
    };
    assert!(!who().await);
    // a key without its certificate cannot be used: nothing happens
    let good_key = std::fs::read(&own.key).unwrap();
    let next = Files::of(dir.path(), "next");
    authority.sign(&["second.example"], "second", &next);
    std::fs::copy(&next.key, &own.key).unwrap();
    let says = until(SOON, "it cannot be used", || async { connection.state().files_error }).await.unwrap();
    assert!(says.contains("own.key") && says.contains("not the certificate's"), "{says}");
    std::fs::write(&own.key, good_key).unwrap();
    until(SOON, "it can", || async { connection.state().files_error.is_none() }).await.unwrap();
    assert_eq!(connection.generation(), 1, "nothing has changed");
    // both: the open connection is replaced by one that shows the new certificate
    std::fs::copy(&next.cert, &own.cert).unwrap();
    std::fs::copy(&next.key, &own.key).unwrap();
    generation(&connection, 2).await;
    assert!(who().await, "the server knows us by the new certificate");
}

async fn a_new_authority_is_trusted_without_a_restart(version: &'static str) {
    let dir = TempDir::new().unwrap();
    let (ca, files, authority) = (dir.path().join("ca.pem"), Files::of(dir.path(), "server"), Authority::new("one"));
    authority.write(&ca);
    authority.sign(&["127.0.0.1"], "server", &files);
    let mut server = Server::with(server_options(version, &files, "")).await.unwrap();
    let connection = Connection::open(trusting(&server, &ca)).await.unwrap();
    let next = Authority::new("two");
    next.sign(&["127.0.0.1"], "server", &files);
    server.restart().await.unwrap();
    let distrusted = || async {
        let state = connection.state();
        (!state.connected && state.last_error?.contains("UnknownIssuer")).then_some(())
    };
    until(SOON, "the new server is not trusted", distrusted).await.unwrap();
    next.write(&ca);
    assert!(connection.connected(SOON).await);
    connection.round_trip().await.unwrap();
}
