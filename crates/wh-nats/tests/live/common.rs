//! A server, a connection to it, and the streams that tests need.

use bytes::Bytes;
use serde_json::{Value, json};
use std::time::Duration;
use wh_nats::{Connection, Credentials, Headers, Message, Options, Publisher, Subscription};
use wh_testkit::{
    nats::{self, PASSWORD, Server},
    until,
};

/// Longer than anything takes that works.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A server that lets everybody in.
pub(crate) async fn server(version: &'static str) -> Server {
    Server::start_version(version).await.unwrap()
}

/// Options that look at files quickly, and let a machine that stalls for some seconds answer all the same.
pub(crate) fn options(url: impl Into<String>) -> Options {
    let mut options = Options::new([url.into()]);
    options.connect_timeout = SOON;
    options.request_timeout = SOON;
    options.watch_interval = Duration::from_millis(50);
    options
}

pub(crate) async fn connect(server: &Server) -> Connection {
    Connection::open(options(server.url())).await.unwrap()
}

/// As a user whose password is that of all users.
pub(crate) async fn connect_as(server: &Server, user: &str) -> Connection {
    let mut options = options(server.url());
    options.credentials = Credentials::Password { user: user.into(), password: PASSWORD.into() };
    Connection::open(options).await.unwrap()
}

/// A server with one user that may publish and subscribe to these only.
pub(crate) async fn restricted(version: &'static str, publish: &[&str], subscribe: &[&str]) -> Server {
    let (publish, subscribe) = (json!(publish), json!(subscribe));
    let permissions = format!("permissions {{ publish: {{ allow: {publish} }}, subscribe: {{ allow: {subscribe} }} }}");
    Server::with(nats::Options::default().version(version).user("wavehouse", permissions)).await.unwrap()
}

/// A work queue like a partition, `Q` on `q.>`.
pub(crate) fn work_queue() -> Value {
    json!({"name": "Q", "subjects": ["q.>"], "retention": "workqueue", "discard": "new", "storage": "file"})
}

/// A durable like a unit's, with a pin.
pub(crate) fn durable(name: &str, filter: &str, ttl: Duration) -> Value {
    json!({
        "durable_name": name, "filter_subject": filter, "ack_policy": "explicit", "deliver_policy": "all",
        "ack_wait": 30_000_000_000_u64, "max_deliver": -1, "max_ack_pending": 1000,
        "priority_policy": "pinned_client", "priority_groups": ["g"],
        "priority_timeout": u64::try_from(ttl.as_nanos()).unwrap(),
    })
}

/// Publishes bodies `0` to `count - 1`, in order.
pub(crate) async fn fill(connection: &Connection, subject: &str, count: usize) {
    let publisher = Publisher::open(connection).await.unwrap();
    let sent: Vec<_> =
        (0..count).map(|number| publisher.publish(subject, Headers::new(), number.to_string().into(), SOON)).collect();
    for sent in sent {
        sent.await.unwrap();
    }
}

/// The next message of a subscription.
pub(crate) async fn heard(subscription: &mut Subscription) -> Message {
    tokio::time::timeout(SOON, subscription.next()).await.unwrap().unwrap()
}

/// Waits until this connection is up, or a later one.
pub(crate) async fn generation(connection: &Connection, number: u64) {
    let mut state = connection.watch();
    let up = state.wait_for(|state| state.connected && state.generation >= number);
    tokio::time::timeout(SOON, up).await.unwrap().unwrap();
}

/// Freezes a server. A signal to stop reaches its threads one after another.
pub(crate) async fn freeze(server: &mut Server) {
    server.process().pause().unwrap();
    let tasks = format!("/proc/{}/task", server.process().id());
    let stopped = || async {
        let mut threads = std::fs::read_dir(&tasks).unwrap();
        threads.all(|thread| {
            let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, state)| state.trim_start().starts_with('T'))
        })
    };
    until(SOON, "every thread has stopped", stopped).await.unwrap();
}

/// Why no connection can be made.
pub(crate) async fn fails(options: Options, because: &str) {
    let connection = Connection::start(options).await.unwrap();
    let says = || async {
        let state = connection.state();
        assert!(!state.connected);
        let error = state.last_error.unwrap_or_default();
        if error.to_lowercase().contains(because) { Ok(()) } else { Err(error) }
    };
    until(SOON, because, says).await.unwrap();
}

pub(crate) fn text(body: &Bytes) -> &str {
    std::str::from_utf8(body).unwrap()
}
