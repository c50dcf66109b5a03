//! Publishing: order, window, outcomes.

use crate::common::{SOON, connect, connect_as, freeze, restricted, server, work_queue};
use bytes::Bytes;
use serde_json::json;
use std::time::Duration;
use wh_nats::{DirectBatch, Error, Headers, Kind, Publisher, WINDOW, err_code};
use wh_types::Class;

on_each_version!(
    the_order_of_calls_is_the_order_in_the_stream,
    an_id_is_stored_once,
    refusals_of_a_stream_come_with_their_number,
    outcomes_say_whether_it_may_have_been_stored,
    what_breaks_under_way_is_unknown_and_what_waits_is_not,
    a_publish_that_nobody_waits_for_frees_its_place,
);

fn id(id: impl std::fmt::Display) -> Headers {
    [("Nats-Msg-Id", id)].into_iter().collect()
}

async fn the_order_of_calls_is_the_order_in_the_stream(version: &'static str) {
    let server = server(version).await;
    let stream = json!({"name": "S", "subjects": ["s.>"], "allow_direct": true});
    server.operator().create_stream(&stream).await.unwrap();
    let connection = connect(&server).await;
    let publisher = Publisher::open(&connection).await.unwrap();
    // three times what may be under way, from two handles, and polled backwards
    let other = publisher.clone();
    let count = 3 * WINDOW;
    let sent: Vec<_> = (0..count)
        .map(|number| {
            let by = if number % 2 == 0 { &publisher } else { &other };
            by.publish("s.x", Headers::new(), number.to_string().into(), SOON)
        })
        .collect();
    for (number, sent) in sent.into_iter().enumerate().rev() {
        let ack = sent.await.unwrap();
        assert_eq!((&*ack.stream, ack.sequence, ack.duplicate), ("S", number as u64 + 1, false));
    }
    let which = DirectBatch { batch: 5000, ..DirectBatch::default() };
    let stored = connection.api().direct_batch("S", &which).await.unwrap().messages;
    let bodies: Vec<_> = stored.iter().map(|stored| stored.body().clone()).collect();
    assert_eq!(bodies, (0..count).map(|number| Bytes::from(number.to_string())).collect::<Vec<_>>());
}

async fn an_id_is_stored_once(version: &'static str) {
    let server = server(version).await;
    server.operator().create_stream(&work_queue()).await.unwrap();
    let publisher = Publisher::open(&connect(&server).await).await.unwrap();
    let publish = |body: &'static str| publisher.publish("q.x", id("a"), body.into(), SOON);
    let first = publish("one").await.unwrap();
    let second = publish("two").await.unwrap();
    assert_eq!((first.sequence, first.duplicate), (1, false));
    assert_eq!((second.sequence, second.duplicate), (1, true));
}

async fn refusals_of_a_stream_come_with_their_number(version: &'static str) {
    let server = server(version).await;
    let stream = json!({"name": "CAP", "subjects": ["cap.>"], "discard": "new", "max_msgs": 2, "max_msg_size": 100});
    server.operator().create_stream(&stream).await.unwrap();
    let publisher = Publisher::open(&connect(&server).await).await.unwrap();
    let publish = |body: Bytes| publisher.publish("cap.x", Headers::new(), body, SOON);
    let large = publish(Bytes::from_static(&[0; 101])).await.unwrap_err();
    assert!(large.is_api(err_code::MESSAGE_TOO_LARGE) && large.class() == Class::Invalid, "{large}");
    for _ in 0..2 {
        publish(Bytes::new()).await.unwrap();
    }
    let full = publish(Bytes::new()).await.unwrap_err();
    assert!(full.is_api(err_code::STREAM_FULL), "{full}");
    assert!(matches!(full.class(), Class::Exhausted { .. }));
    let mut expecting = Headers::new();
    expecting.append("Nats-Expected-Stream", "OTHER");
    let other = publisher.publish("cap.x", expecting, Bytes::new(), SOON).await.unwrap_err();
    assert!(other.is_api(err_code::OTHER_STREAM) && other.class() == Class::Unavailable, "{other}");
}

async fn outcomes_say_whether_it_may_have_been_stored(version: &'static str) {
    let server = restricted(version, &["q.>", "none.>", "deaf"], &["_INBOX_wh.>", "deaf"]).await;
    server.operator().create_stream(&work_queue()).await.unwrap();
    let connection = connect_as(&server, "wavehouse").await;
    let _deaf = connection.subscribe("deaf").await.unwrap();
    let publisher = Publisher::open(&connection).await.unwrap();
    let outcome = |subject: &'static str, time| {
        let published = publisher.publish(subject, Headers::new(), Bytes::new(), time);
        async { published.await.unwrap_err() }
    };
    let of = |error: &Error| (error.kind().clone(), error.class());
    assert_eq!(of(&outcome("none.x", SOON).await), (Kind::NoResponders, Class::Unavailable));
    let refused = Kind::Refused { subject: "other".into() };
    assert_eq!(of(&outcome("other", SOON).await), (refused, Class::Denied));
    assert_eq!(of(&outcome("deaf", Duration::from_millis(50)).await), (Kind::Timeout, Class::Unknown));
    assert!(matches!(outcome("a b", SOON).await.kind(), Kind::Invalid(_)));
    // it goes on after all of these
    assert_eq!(publisher.publish("q.x", Headers::new(), Bytes::new(), SOON).await.unwrap().sequence, 1);
    connection.close().await;
    assert_eq!(outcome("q.x", SOON).await.kind(), &Kind::Closed);
}

async fn what_breaks_under_way_is_unknown_and_what_waits_is_not(version: &'static str) {
    let mut server = server(version).await;
    server.operator().create_stream(&work_queue()).await.unwrap();
    let connection = connect(&server).await;
    let publisher = Publisher::open(&connection).await.unwrap();
    publisher.publish("q.x", id("first"), Bytes::new(), SOON).await.unwrap();
    freeze(&mut server).await;
    let late = publisher.publish("q.x", id("late"), Bytes::new(), Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(late.kind(), &Kind::Timeout, "it was sent, and is not answered");
    let sent: Vec<_> =
        (0..WINDOW + 50).map(|n| publisher.publish("q.x", id(format!("{n}")), Bytes::new(), SOON)).collect();
    let mut kinds = Vec::new();
    for sent in sent {
        kinds.push(sent.await.unwrap_err().kind().clone());
    }
    // the window was full of those that were sent; the others found no connection
    let unknown = kinds.iter().take_while(|kind| **kind == Kind::Interrupted).count();
    assert_eq!(unknown, WINDOW, "{:?}", kinds.last());
    assert!(kinds[unknown..].iter().all(|kind| *kind == Kind::Disconnected), "{:?}", &kinds[unknown..]);
    server.process().resume().unwrap();
    assert!(connection.connected(SOON).await);
    let ack = publisher.publish("q.x", id("first"), Bytes::new(), SOON).await.unwrap();
    assert!(ack.duplicate);
}

async fn a_publish_that_nobody_waits_for_frees_its_place(version: &'static str) {
    let server = server(version).await;
    server.operator().create_stream(&work_queue()).await.unwrap();
    let connection = connect(&server).await;
    let _deaf = connection.subscribe("deaf").await.unwrap();
    let publisher = Publisher::open(&connection).await.unwrap();
    for _ in 0..3 {
        let sent: Vec<_> = (0..WINDOW).map(|_| publisher.publish("deaf", Headers::new(), Bytes::new(), SOON)).collect();
        connection.round_trip().await.unwrap();
        drop(sent);
    }
    publisher.publish("q.x", Headers::new(), Bytes::new(), SOON).await.unwrap();
}
