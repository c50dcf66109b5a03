//! Raw pulls: the pin's whole life, every end of a pull that can be provoked, and inboxes that outlive connections.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test names what it expects")]

use crate::common::{SOON, connect, durable, fill, generation as reaches, options, server, text, work_queue};
use std::time::Duration;
use wh_nats::{Ack, Connection, Delivered, Kind, PinId, PullRequest, Pulled, Puller, Status};
use wh_testkit::{chaos, nats::Server, until};

on_each_version!(
    a_pull_brings_messages_in_order_under_one_pin,
    a_renewal_keeps_the_pin_and_brings_nothing,
    a_pin_that_is_elsewhere_or_lapsed_is_said,
    after_an_unpin_the_next_puller_is_served_at_once,
    a_reset_brings_back_what_is_not_settled,
    acks_settle_as_they_say,
    a_pull_that_is_not_filled_ends_with_its_time,
    limits_and_bad_requests_are_said,
    a_deleted_durable_ends_the_pull,
    without_an_inbox_there_is_no_pull,
    an_inbox_outlives_its_connection,
);

/// Of pins that are waited for, or renewed in time.
const TTL: Duration = Duration::from_secs(6);
/// Of pins that no test outlives.
const LONG: Duration = Duration::from_secs(600);

async fn unit(version: &'static str, ttl: Duration) -> (Server, Connection) {
    let server = server(version).await;
    let mut operator = server.operator();
    operator.create_stream(&work_queue()).await.unwrap();
    operator.create_durable("Q", &durable("d", "q.>", ttl)).await.unwrap();
    let connection = connect(&server).await;
    (server, connection)
}

async fn puller(connection: &Connection) -> Puller {
    Puller::open(connection, "Q", "d", "g").await.unwrap()
}

fn request(batch: u32, expires: Duration, pin: Option<&PinId>) -> PullRequest {
    PullRequest { batch, expires, idle_heartbeat: expires / 4, pin: pin.cloned() }
}

async fn next(puller: &mut Puller) -> Pulled {
    tokio::time::timeout(SOON, puller.next()).await.unwrap().unwrap()
}

async fn delivered(puller: &mut Puller) -> Delivered {
    match next(puller).await {
        Pulled::Delivered(delivered) => delivered,
        other => panic!("no delivery: {other:?}"),
    }
}

/// The next status that is no heartbeat.
async fn status(puller: &mut Puller) -> (u64, Status) {
    loop {
        match next(puller).await {
            Pulled::Status { n, status } if !status.goes_on() => return (n, status),
            Pulled::Status { .. } => {}
            other => panic!("no status: {other:?}"),
        }
    }
}

async fn renewed(puller: &mut Puller) -> Status {
    match next(puller).await {
        Pulled::Renewed(status) => status,
        other => panic!("no renewal: {other:?}"),
    }
}

async fn a_pull_brings_messages_in_order_under_one_pin(version: &'static str) {
    let (_server, connection) = unit(version, LONG).await;
    fill(&connection, "q.x", 20).await;
    let mut puller = puller(&connection).await;
    assert_eq!(puller.pull(&request(10, SOON, None)).await.unwrap(), 1);
    let mut pin = None;
    for number in 0..20_u64 {
        if number == 10 {
            assert_eq!(puller.pull(&request(10, SOON, pin.as_ref())).await.unwrap(), 2);
        }
        let row = delivered(&mut puller).await;
        assert_eq!((row.message.subject(), text(row.message.body())), ("q.x", number.to_string().as_str()));
        assert_eq!((row.stream_seq, row.consumer_seq, row.deliveries), (number + 1, number + 1, 1));
        assert_eq!(row.pending, 19 - number);
        assert!(row.time.as_nanos() > 0 && row.pin.is_some());
        assert!(pin.is_none() || pin == row.pin, "one pin for all");
        pin = row.pin;
    }
    let info = connection.api().consumer_info("Q", "d").await.unwrap();
    assert_eq!((info.pinned, info.num_ack_pending, info.delivered.consumer_seq), (pin, 20, 20));
    assert!(info.delivered.last_active.is_some());
}

async fn a_renewal_keeps_the_pin_and_brings_nothing(version: &'static str) {
    let (_server, connection) = unit(version, TTL).await;
    fill(&connection, "q.x", 5).await;
    let mut puller = puller(&connection).await;
    puller.pull(&request(1, SOON, None)).await.unwrap();
    let pin = delivered(&mut puller).await.pin.unwrap();
    // well past the pin's time, with rows waiting all the while
    for _ in 0..6 {
        tokio::time::sleep(TTL / 4).await;
        puller.renew(&pin).await.unwrap();
        let status = renewed(&mut puller).await;
        assert!(status.renewed(), "{status:?}");
    }
    let info = connection.api().consumer_info("Q", "d").await.unwrap();
    assert_eq!((info.pinned.as_ref(), info.num_pending, info.delivered.consumer_seq), (Some(&pin), 4, 1));
    // beside a pull that waits for more than there is
    puller.pull(&request(10, SOON, Some(&pin))).await.unwrap();
    for _ in 0..4 {
        assert_eq!(delivered(&mut puller).await.pin.as_ref(), Some(&pin));
    }
    puller.renew(&pin).await.unwrap();
    assert!(renewed(&mut puller).await.renewed());
}

async fn a_pin_that_is_elsewhere_or_lapsed_is_said(version: &'static str) {
    let (_server, connection) = unit(version, TTL).await;
    fill(&connection, "q.x", 1).await;
    let (mut first, mut second) = (puller(&connection).await, puller(&connection).await);
    first.pull(&request(1, SOON, None)).await.unwrap();
    let pin = delivered(&mut first).await.pin.unwrap();
    // while somebody is pinned, a wrong id is refused at once
    let n = second.pull(&request(1, SOON, Some(&PinId::new("somebody")))).await.unwrap();
    assert_eq!(status(&mut second).await, (n, Status::PinMismatch));
    second.renew(&PinId::new("somebody")).await.unwrap();
    let refused = renewed(&mut second).await;
    assert!(refused == Status::PinMismatch && !refused.renewed());
    // a lapsed one is refused when there is something to bring
    let api = connection.api();
    let lapsed = || async { api.consumer_info("Q", "d").await.unwrap().pinned.is_none() };
    until(SOON, "the pin lapses", lapsed).await.unwrap();
    let n = first.pull(&request(1, SOON, Some(&pin))).await.unwrap();
    let waits = || async { api.consumer_info("Q", "d").await.unwrap().num_waiting == 1 };
    until(SOON, "the pull waits", waits).await.unwrap();
    second.pull(&request(1, SOON, None)).await.unwrap();
    fill(&connection, "q.x", 1).await;
    let (told, status) = status(&mut first).await;
    assert!(told == n && matches!(status, Status::WrongPin(_)), "{status:?}");
    assert_ne!(delivered(&mut second).await.pin, Some(pin));
}

async fn after_an_unpin_the_next_puller_is_served_at_once(version: &'static str) {
    let (_server, connection) = unit(version, LONG).await;
    fill(&connection, "q.x", 2).await;
    let (mut owner, mut heir) = (puller(&connection).await, puller(&connection).await);
    owner.pull(&request(1, SOON, None)).await.unwrap();
    let row = delivered(&mut owner).await;
    heir.pull(&request(1, SOON, None)).await.unwrap();
    connection.ack_confirmed(&row.reply, Ack::Ack, SOON).await.unwrap();
    connection.api().unpin("Q", "d", "g").await.unwrap();
    let next = delivered(&mut heir).await;
    assert_eq!(next.stream_seq, 2);
    assert_ne!(next.pin, row.pin);
    let unknown = connection.api().unpin("Q", "d", "other").await.unwrap_err();
    assert!(unknown.is_api(10_160), "{unknown}");
}

async fn a_reset_brings_back_what_is_not_settled(version: &'static str) {
    let (_server, connection) = unit(version, LONG).await;
    fill(&connection, "q.x", 6).await;
    let mut puller = puller(&connection).await;
    puller.pull(&request(6, SOON, None)).await.unwrap();
    let mut rows = Vec::new();
    for _ in 0..6 {
        rows.push(delivered(&mut puller).await);
    }
    for row in [&rows[0], &rows[1], &rows[3]] {
        connection.ack_confirmed(&row.reply, Ack::Ack, SOON).await.unwrap();
    }
    let info = connection.api().reset("Q", "d").await.unwrap();
    assert_eq!((info.num_ack_pending, info.delivered.consumer_seq, info.pinned), (0, 0, rows[0].pin.clone()));
    puller.pull(&request(3, SOON, rows[0].pin.as_ref())).await.unwrap();
    for (count, sequence) in [(1, 3), (2, 5), (3, 6)] {
        let row = delivered(&mut puller).await;
        assert_eq!((row.consumer_seq, row.stream_seq, row.deliveries), (count, sequence, 1));
    }
}

async fn acks_settle_as_they_say(version: &'static str) {
    let (_server, connection) = unit(version, LONG).await;
    fill(&connection, "q.x", 4).await;
    let mut puller = puller(&connection).await;
    puller.pull(&request(4, SOON, None)).await.unwrap();
    let mut rows = Vec::new();
    for _ in 0..4 {
        rows.push(delivered(&mut puller).await);
    }
    connection.ack(&rows[0].reply, Ack::InProgress).await.unwrap();
    connection.ack(&rows[0].reply, Ack::Ack).await.unwrap();
    connection.ack(&rows[1].reply, Ack::Term).await.unwrap();
    connection.ack(&rows[2].reply, Ack::Nak(None)).await.unwrap();
    // the last one, confirmed, confirms the others
    connection.ack_confirmed(&rows[3].reply, Ack::Nak(Some(SOON)), SOON).await.unwrap();
    let state = connection.api().stream_state("Q").await.unwrap();
    assert_eq!((state.messages, state.first_seq), (2, 3));
    puller.pull(&request(1, SOON, rows[0].pin.as_ref())).await.unwrap();
    let again = delivered(&mut puller).await;
    assert_eq!((again.stream_seq, again.deliveries, again.consumer_seq), (3, 2, 5));
    assert!(connection.api().message_delete("Q", 3).await.unwrap());
}

async fn a_pull_that_is_not_filled_ends_with_its_time(version: &'static str) {
    let (_server, connection) = unit(version, LONG).await;
    fill(&connection, "q.x", 1).await;
    let mut puller = puller(&connection).await;
    let n = puller.pull(&request(5, Duration::from_secs(4), None)).await.unwrap();
    assert_eq!(delivered(&mut puller).await.stream_seq, 1);
    let heartbeat = next(&mut puller).await;
    assert!(
        matches!(heartbeat, Pulled::Status { n: of, status: Status::Heartbeat { last_consumer: Some(1), last_stream: Some(1) } } if of == n),
        "{heartbeat:?}"
    );
    let (told, ended) = status(&mut puller).await;
    assert!(told == n && matches!(ended, Status::Expired(rest) if rest.messages == Some(4)), "{ended:?}");
}

async fn limits_and_bad_requests_are_said(version: &'static str) {
    let (server, connection) = unit(version, LONG).await;
    let mut limited = durable("limited", "q.limited", LONG);
    limited["max_batch"] = 5.into();
    limited["max_expires"] = 1_000_000_000_u64.into();
    server.operator().delete_durable("Q", "d").await.unwrap();
    server.operator().create_durable("Q", &limited).await.unwrap();
    let mut puller = Puller::open(&connection, "Q", "limited", "g").await.unwrap();
    let short = Duration::from_millis(500);
    for (pull, limit) in [(request(6, short, None), "MaxRequestBatch"), (request(5, SOON, None), "MaxRequestExpires")] {
        let n = puller.pull(&pull).await.unwrap();
        let (told, ended) = status(&mut puller).await;
        assert!(told == n && matches!(&ended, Status::Exceeded(text) if text.contains(limit)), "{ended:?}");
    }
    let heartbeat = PullRequest { idle_heartbeat: short, ..request(1, short, None) };
    puller.pull(&heartbeat).await.unwrap();
    assert!(matches!(status(&mut puller).await.1, Status::BadRequest(_)));
    let mut other = Puller::open(&connection, "Q", "limited", "other").await.unwrap();
    other.pull(&request(1, short, None)).await.unwrap();
    assert!(matches!(status(&mut other).await.1, Status::BadRequest(text) if text.contains("Priority Group")));
    let mut none = Puller::open(&connection, "Q", "none", "g").await.unwrap();
    none.pull(&request(1, short, None)).await.unwrap();
    assert_eq!(status(&mut none).await.1, Status::NoResponders);
}

async fn a_deleted_durable_ends_the_pull(version: &'static str) {
    let (server, connection) = unit(version, LONG).await;
    let mut puller = puller(&connection).await;
    let n = puller.pull(&request(1, SOON, None)).await.unwrap();
    let api = connection.api();
    let waits = || async { api.consumer_info("Q", "d").await.unwrap().num_waiting == 1 };
    until(SOON, "the pull waits", waits).await.unwrap();
    server.operator().delete_durable("Q", "d").await.unwrap();
    assert_eq!(status(&mut puller).await, (n, Status::ConsumerDeleted));
    let n = puller.pull(&request(1, SOON, None)).await.unwrap();
    assert_eq!(status(&mut puller).await, (n, Status::NoResponders));
}

async fn without_an_inbox_there_is_no_pull(version: &'static str) {
    let (_server, connection) = unit(version, LONG).await;
    let mut puller = puller(&connection).await;
    puller.pull(&request(10, SOON, None)).await.unwrap();
    fill(&connection, "q.x", 1).await;
    let pin = delivered(&mut puller).await.pin.unwrap();
    puller.stop_pulling().await;
    let info = connection.api().consumer_info("Q", "d").await.unwrap();
    assert_eq!((info.num_waiting, info.delivered.consumer_seq), (0, 1), "the server knows at once");
    fill(&connection, "q.x", 3).await;
    let info = connection.api().consumer_info("Q", "d").await.unwrap();
    assert_eq!((info.delivered.consumer_seq, info.num_pending), (1, 3), "and brings nothing more");
    assert_eq!(puller.pull(&request(1, SOON, None)).await.unwrap_err().kind(), &Kind::Closed);
    puller.renew(&pin).await.unwrap();
    assert!(renewed(&mut puller).await.renewed(), "the pin is still renewed");
    puller.start_pulling().await.unwrap();
    assert_eq!(puller.pull(&request(3, SOON, Some(&pin))).await.unwrap(), 2);
    assert_eq!(delivered(&mut puller).await.stream_seq, 2);
}

async fn an_inbox_outlives_its_connection(version: &'static str) {
    let (server, fed) = unit(version, LONG).await;
    let proxy = chaos::Tcp::start(server.port()).await.unwrap();
    let connection = Connection::open(options(proxy.url("nats"))).await.unwrap();
    let mut puller = puller(&connection).await;
    for generation in 2..4_u64 {
        puller.pull(&request(5, SOON, None)).await.unwrap();
        fill(&fed, "q.x", 1).await;
        let row = delivered(&mut puller).await;
        connection.ack_confirmed(&row.reply, Ack::Ack, SOON).await.unwrap();
        proxy.cut();
        reaches(&connection, generation).await;
        // nothing is pulled before its caller knows that the pull and the pin are gone
        assert_eq!(puller.pull(&request(1, SOON, None)).await.unwrap_err().kind(), &Kind::Disconnected);
        loop {
            match next(&mut puller).await {
                Pulled::Reconnected { generation: told } => {
                    assert_eq!(told, generation);
                    break;
                }
                Pulled::Status { status, .. } => assert!(status.goes_on(), "{status:?}"),
                other => panic!("{other:?}"),
            }
        }
        // the server has dropped the pull of the connection before; the pin goes on with a pull that names it
        let waiting = || async { fed.api().consumer_info("Q", "d").await.unwrap().num_waiting == 0 };
        until(SOON, "no pull waits", waiting).await.unwrap();
        puller.pull(&request(5, SOON, row.pin.as_ref())).await.unwrap();
        fill(&fed, "q.x", 1).await;
        let next = delivered(&mut puller).await;
        assert_eq!((next.pin, next.consumer_seq), (row.pin, row.consumer_seq + 1));
        connection.ack_confirmed(&next.reply, Ack::Ack, SOON).await.unwrap();
        fed.api().unpin("Q", "d", "g").await.unwrap();
        puller.stop_pulling().await;
        puller.start_pulling().await.unwrap();
    }
    connection.close().await;
    assert!(puller.next().await.is_none());
}
