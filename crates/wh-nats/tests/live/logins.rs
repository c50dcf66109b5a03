//! Each form of credentials, and each of them changed while the connection lives.

use crate::{
    common::{SOON, generation, options},
    jwt::Operator,
};
use bytes::Bytes;
use nkeys::KeyPair;
use std::path::PathBuf;
use tempfile::TempDir;
use wh_nats::{Connection, Credentials, Kind};
use wh_testkit::{nats, nats::Server, until};

on_each_version!(
    a_password_is_read_again,
    a_token_is_read_again,
    a_key_is_read_again,
    a_users_token_with_other_rights_takes_effect_at_once,
    a_file_that_cannot_be_used_changes_nothing,
);

struct Case {
    server: Server,
    file: PathBuf,
    version: &'static str,
    _dir: TempDir,
}

impl Case {
    async fn new(version: &'static str, lines: &str, text: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("login");
        std::fs::write(&file, text).unwrap();
        let server = Server::with(nats::Options::default().version(version).lines(lines)).await.unwrap();
        Self { server, file, version, _dir: dir }
    }

    async fn open(&self, credentials: impl Fn(PathBuf) -> Credentials) -> Connection {
        let mut options = options(self.server.url());
        options.credentials = credentials(self.file.clone());
        Connection::open(options).await.unwrap()
    }

    /// The file changes first; then the server takes another login, and ends connections with the old one.
    async fn change(&mut self, connection: &Connection, lines: &str, text: &str) {
        std::fs::write(&self.file, text).unwrap();
        until(SOON, "it is taken", || async { connection.state().files_taken == 1 }).await.unwrap();
        connection.round_trip().await.unwrap();
        assert_eq!(connection.generation(), 1, "the server will say when the old one no longer counts");
        self.server.reload(nats::Options::default().version(self.version).lines(lines)).await.unwrap();
        generation(connection, 2).await;
        connection.round_trip().await.unwrap();
    }
}

async fn a_password_is_read_again(version: &'static str) {
    let lines = |password: &str| format!("authorization {{ users: [{{ user: joe, password: {password:?} }}] }}");
    let mut case = Case::new(version, &lines("one"), "one\n").await;
    let connection = case.open(|file| Credentials::PasswordFile { user: "joe".into(), file }).await;
    case.change(&connection, &lines("two"), "two\r\n").await;
}

async fn a_token_is_read_again(version: &'static str) {
    let lines = |token: &str| format!("authorization {{ token: {token:?} }}");
    let mut case = Case::new(version, &lines("one"), "one\n").await;
    let connection = case.open(Credentials::TokenFile).await;
    case.change(&connection, &lines("two"), "two\n").await;
}

async fn a_key_is_read_again(version: &'static str) {
    let (one, two) = (KeyPair::new_user(), KeyPair::new_user());
    let lines = |key: &KeyPair| format!("authorization {{ users: [{{ nkey: {} }}] }}", key.public_key());
    let mut case = Case::new(version, &lines(&one), &one.seed().unwrap()).await;
    let connection = case.open(Credentials::NkeySeedFile).await;
    case.change(&connection, &lines(&two), &two.seed().unwrap()).await;
}

async fn a_users_token_with_other_rights_takes_effect_at_once(version: &'static str) {
    let (operator, user) = (Operator::new(), KeyPair::new_user());
    let case = Case::new(version, &operator.lines(), &operator.creds(&user, &["one"])).await;
    let connection = case.open(Credentials::CredsFile).await;
    let may = async |subject| {
        let asked = connection.request(subject, None, Bytes::new(), SOON).await.unwrap_err();
        *asked.kind() == Kind::NoResponders
    };
    assert_eq!((may("one").await, may("two").await), (true, false));
    std::fs::write(&case.file, operator.creds(&user, &["two"])).unwrap();
    generation(&connection, 2).await;
    assert_eq!((may("one").await, may("two").await), (false, true));
}

async fn a_file_that_cannot_be_used_changes_nothing(version: &'static str) {
    let (operator, user) = (Operator::new(), KeyPair::new_user());
    let good = operator.creds(&user, &["one"]);
    let mut case = Case::new(version, &operator.lines(), &good).await;
    let connection = case.open(Credentials::CredsFile).await;
    for (bad, says) in [(&good[..good.len() - 60], "cannot be read"), (&good[..100], "no seed"), ("hush", "user JWT")] {
        std::fs::write(&case.file, bad).unwrap();
        let error = || async { connection.state().files_error.filter(|error| error.contains(says)) };
        let error = until(SOON, says, error).await.unwrap();
        assert!(!error.contains("hush"), "{error}");
        assert_eq!(connection.generation(), 1);
    }
    std::fs::remove_file(&case.file).unwrap();
    // the last good one still works when the connection has to be made again
    case.server.restart().await.unwrap();
    generation(&connection, 2).await;
    // what the server refuses does not end a connection that works
    std::fs::write(&case.file, Operator::new().creds(&user, &["one"])).unwrap();
    let refused = || async { connection.state().last_error.filter(|error| error.contains("uthorization")) };
    until(SOON, "the server refuses it", refused).await.unwrap();
    connection.round_trip().await.unwrap();
    assert_eq!(connection.generation(), 2);
    let error = Connection::open({
        let mut options = options(case.server.url());
        options.credentials = Credentials::CredsFile(case.file.with_extension("none"));
        options
    });
    assert!(matches!(error.await.unwrap_err().kind(), Kind::Config(_)));
}
