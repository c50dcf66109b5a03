//! Direct gets, also of a history whose messages carry two streams' headers.

use crate::common::{SOON, connect, fill, server, text};
use serde_json::json;
use wh_nats::{BatchStart, Connection, DirectBatch, DirectGet, Headers, Kind, Publisher};
use wh_testkit::{nats::Server, until};

on_each_version!(
    one_message_is_read,
    a_batch_ends_at_its_count_its_bytes_and_its_end,
    the_last_of_many_subjects_come_in_one_answer,
    a_history_keeps_the_first_streams_headers_first,
);

async fn history(server: &Server, connection: &Connection) {
    let partition = json!({
        "name": "P", "subjects": ["p.ingest.>"], "retention": "workqueue",
        "republish": {"src": "p.ingest.>", "dest": "p.hist.>"},
    });
    let history = json!({"name": "H", "subjects": ["p.hist.>"], "allow_direct": true});
    let mut operator = server.operator();
    operator.create_stream(&history).await.unwrap();
    operator.create_stream(&partition).await.unwrap();
    fill(connection, "p.hist.before", 7).await;
}

async fn one_message_is_read(version: &'static str) {
    let server = server(version).await;
    server.operator().create_stream(&json!({"name": "S", "subjects": ["s.>"], "allow_direct": true})).await.unwrap();
    let connection = connect(&server).await;
    let api = connection.api();
    for subject in ["s.a", "s.b", "s.a"] {
        fill(&connection, subject, 1).await;
    }
    let get = async |which| api.direct_get("S", which).await.unwrap().map(|stored| (stored.sequence, stored.subject));
    assert_eq!(get(DirectGet::Sequence(2)).await, Some((2, "s.b".to_owned())));
    assert_eq!(get(DirectGet::Sequence(9)).await, None);
    assert_eq!(get(DirectGet::LastOf("s.a")).await, Some((3, "s.a".to_owned())));
    assert_eq!(get(DirectGet::LastOf("s.c")).await, None);
    assert_eq!(get(DirectGet::NextOf { seq: 0, subject: "s.b" }).await, Some((2, "s.b".to_owned())));
    assert_eq!(get(DirectGet::NextOf { seq: 3, subject: "s.b" }).await, None);
    assert_eq!(get(DirectGet::NextOf { seq: 2, subject: "s.*" }).await, Some((2, "s.b".to_owned())));
    let none = api.direct_get("NONE", DirectGet::Sequence(1)).await.unwrap_err();
    assert_eq!(none.kind(), &Kind::NoResponders);
    let stored = api.direct_get("S", DirectGet::Sequence(1)).await.unwrap().unwrap();
    assert_eq!(text(stored.body()), "0");
    assert!(stored.time.as_nanos() > 0);
}

async fn a_batch_ends_at_its_count_its_bytes_and_its_end(version: &'static str) {
    let server = server(version).await;
    server.operator().create_stream(&json!({"name": "S", "subjects": ["s.>"], "allow_direct": true})).await.unwrap();
    let connection = connect(&server).await;
    let api = connection.api();
    let empty = api.direct_batch("S", &DirectBatch { batch: 10, ..DirectBatch::default() }).await.unwrap();
    assert!(empty.messages.is_empty() && empty.pending == 0);
    for _ in 0..10 {
        fill(&connection, "s.a", 1).await;
        fill(&connection, "s.b", 1).await;
    }
    let only_a =
        |start, batch| DirectBatch { batch, start, next_by_subj: Some("s.a".into()), ..DirectBatch::default() };
    let sequences = |batch: &wh_nats::Batch| batch.messages.iter().map(|m| m.sequence).collect::<Vec<_>>();
    let first = api.direct_batch("S", &only_a(BatchStart::First, 4)).await.unwrap();
    assert_eq!((sequences(&first), first.pending), (vec![1, 3, 5, 7], 6));
    let rest = api.direct_batch("S", &only_a(BatchStart::Sequence(8), 100)).await.unwrap();
    assert_eq!((sequences(&rest), rest.pending), (vec![9, 11, 13, 15, 17, 19], 0));
    let from = first.messages[2].time;
    let timed = api.direct_batch("S", &only_a(BatchStart::Time(from), 2)).await.unwrap();
    assert_eq!(sequences(&timed), [5, 7]);
    let small = DirectBatch { max_bytes: Some(1), ..only_a(BatchStart::First, 100) };
    assert_eq!(sequences(&api.direct_batch("S", &small).await.unwrap()), [1], "one comes in any case");
    let past = api.direct_batch("S", &only_a(BatchStart::Sequence(100), 5)).await.unwrap();
    assert!(past.messages.is_empty());
}

async fn the_last_of_many_subjects_come_in_one_answer(version: &'static str) {
    let server = server(version).await;
    server.operator().create_stream(&json!({"name": "S", "subjects": ["s.>"], "allow_direct": true})).await.unwrap();
    let connection = connect(&server).await;
    for subject in ["s.a.1", "s.a.2", "s.b.1", "s.a.1"] {
        fill(&connection, subject, 1).await;
    }
    let last = |patterns: &[&str], up_to_seq| DirectBatch {
        multi_last: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
        up_to_seq,
        ..DirectBatch::default()
    };
    let sequences = async |which: DirectBatch| {
        let batch = connection.api().direct_batch("S", &which).await.unwrap();
        batch.messages.iter().map(|m| (m.sequence, m.subject.clone())).collect::<Vec<_>>()
    };
    let found = |pairs: &[(u64, &str)]| pairs.iter().map(|(s, t)| (*s, (*t).to_owned())).collect::<Vec<_>>();
    assert_eq!(sequences(last(&["s.a.*"], None)).await, found(&[(2, "s.a.2"), (4, "s.a.1")]));
    assert_eq!(sequences(last(&["s.b.1", "s.a.1"], None)).await, found(&[(3, "s.b.1"), (4, "s.a.1")]));
    assert_eq!(sequences(last(&["s.a.*"], Some(2))).await, found(&[(1, "s.a.1"), (2, "s.a.2")]));
    assert_eq!(sequences(last(&["s.none.*"], None)).await, []);
}

async fn a_history_keeps_the_first_streams_headers_first(version: &'static str) {
    let server = server(version).await;
    let connection = connect(&server).await;
    history(&server, &connection).await;
    let publisher = Publisher::open(&connection).await.unwrap();
    for number in 0..3 {
        let headers: Headers = [("Nats-Msg-Id", number.to_string()), ("Wh-Rows", "5".to_owned())].into_iter().collect();
        publisher.publish("p.ingest.t", headers, "row".into(), SOON).await.unwrap();
    }
    let api = connection.api();
    let all = || async { (api.stream_state("H").await.unwrap().last_seq == 10).then_some(()) };
    until(SOON, "the history has them", all).await.unwrap();
    let which = DirectBatch {
        batch: 10,
        start: BatchStart::Sequence(8),
        next_by_subj: Some("p.hist.t".into()),
        ..DirectBatch::default()
    };
    let batch = api.direct_batch("H", &which).await.unwrap();
    assert_eq!(batch.messages.len(), 3);
    for (number, stored) in batch.messages.iter().enumerate() {
        assert_eq!((stored.sequence, stored.subject.as_str()), (number as u64 + 8, "p.hist.t"));
        assert_eq!((stored.header("Nats-Stream"), stored.header_first("Nats-Stream")), (Some("H"), Some("P")));
        assert_eq!(stored.header_first("Nats-Sequence"), Some((number + 1).to_string().as_str()));
        assert_eq!(stored.header("Nats-Sequence"), Some((number + 8).to_string().as_str()));
        assert_eq!(stored.header_first("Nats-Subject"), Some("p.ingest.t"));
        assert_eq!((stored.header("Wh-Rows"), text(stored.body())), (Some("5"), "row"));
        assert_eq!(stored.message().headers().filter(|(name, _)| *name == "Nats-Sequence").count(), 2);
    }
}
