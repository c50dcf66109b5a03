//! Key-value buckets: revisions decide, and an answer that was lost is found by reading.

use crate::common::{SOON, connect, connect_as, freeze, restricted, server, text};
use bytes::Bytes;
use serde_json::json;
use std::time::Duration;
use wh_nats::{Bucket, Connection, Kind, is_conflict};
use wh_testkit::nats::Server;
use wh_types::Class;

on_each_version!(
    writes_demand_the_revision_they_were_based_on,
    a_lost_answer_is_found_by_reading,
    all_keys_come_in_one_read,
    a_watch_sees_writes,
    the_rights_of_leases_are_enough,
);

async fn bucket(server: &Server, connection: &Connection) -> Bucket {
    create(server).await;
    Bucket::open(connection, "wh_coord").await.unwrap()
}

async fn create(server: &Server) {
    let stream = json!({
        "name": "KV_wh_coord", "subjects": ["$KV.wh_coord.>"], "max_msgs_per_subject": 1, "allow_direct": true,
        "allow_rollup_hdrs": true, "deny_delete": true, "discard": "new", "storage": "file",
    });
    server.operator().create_stream(&stream).await.unwrap();
}

async fn writes_demand_the_revision_they_were_based_on(version: &'static str) {
    let server = server(version).await;
    let bucket = bucket(&server, &connect(&server).await).await;
    let key = "lease.ingest.m0";
    assert!(bucket.read(key).await.unwrap().is_none());
    let first = bucket.create(key, "a".into()).await.unwrap();
    let taken = bucket.create(key, "b".into()).await.unwrap_err();
    assert!(is_conflict(&taken) && taken.class() == Class::Conflict, "{taken:?}");
    let second = bucket.update(key, "c".into(), first).await.unwrap();
    assert!(second > first);
    let late = bucket.update(key, "d".into(), first).await.unwrap_err();
    assert!(is_conflict(&late), "{late:?}");
    let entry = bucket.read(key).await.unwrap().unwrap();
    assert_eq!((entry.key.as_str(), text(&entry.value), entry.revision), (key, "c", second));
    assert!(is_conflict(&bucket.delete(key, first).await.unwrap_err()));
    let mark = bucket.delete(key, second).await.unwrap();
    assert!(bucket.read(key).await.unwrap().is_none());
    let last = bucket.last(key).await.unwrap().unwrap();
    assert!(last.deleted && last.revision == mark && last.value.is_empty());
    // a deleted key is created anew, and revisions never go back
    assert!(bucket.create(key, "e".into()).await.unwrap() > mark);
    for bad in ["", "a b", "a.*", "a..b", ".a"] {
        assert!(matches!(bucket.create(bad, Bytes::new()).await.unwrap_err().kind(), Kind::Invalid(_)), "{bad}");
    }
}

async fn a_lost_answer_is_found_by_reading(version: &'static str) {
    let mut server = server(version).await;
    let connection = connect(&server).await;
    let bucket = bucket(&server, &connection).await.with_timeout(SOON);
    let first = bucket.create("lease.a", "one".into()).await.unwrap();
    freeze(&mut server).await;
    let hasty = bucket.clone().with_timeout(Duration::from_millis(50));
    let lost = hasty.update("lease.a", "two".into(), first).await.unwrap_err();
    assert_eq!((lost.kind(), lost.class()), (&Kind::Timeout, Class::Unknown));
    server.process().resume().unwrap();
    // it was done: our own write stands in the way of a repeat
    let again = bucket.update("lease.a", "two".into(), first).await.unwrap_err();
    assert!(is_conflict(&again), "{again:?}");
    let entry = bucket.read("lease.a").await.unwrap().unwrap();
    assert_eq!((text(&entry.value), entry.revision > first), ("two", true));
    bucket.update("lease.a", "three".into(), entry.revision).await.unwrap();
}

async fn all_keys_come_in_one_read(version: &'static str) {
    let server = server(version).await;
    let bucket = bucket(&server, &connect(&server).await).await;
    assert!(bucket.read_many("lease.>").await.unwrap().is_empty());
    for member in 0..64 {
        bucket.create(&format!("lease.ingest.m{member}"), member.to_string().into()).await.unwrap();
    }
    let other = bucket.create("lease.sweep.m0", Bytes::new()).await.unwrap();
    let gone = bucket.read("lease.ingest.m7").await.unwrap().unwrap();
    bucket.delete("lease.ingest.m7", gone.revision).await.unwrap();
    let mut keys: Vec<_> = bucket.read_many("lease.ingest.*").await.unwrap().into_iter().map(|e| e.key).collect();
    keys.sort();
    let mut expected: Vec<_> = (0..64).filter(|m| *m != 7).map(|m| format!("lease.ingest.m{m}")).collect();
    expected.sort();
    assert_eq!(keys, expected);
    let all = bucket.read_many("lease.>").await.unwrap();
    assert_eq!(all.len(), 64);
    assert!(all.iter().any(|entry| entry.revision == other && entry.key == "lease.sweep.m0"));
}

async fn a_watch_sees_writes(version: &'static str) {
    let server = server(version).await;
    let connection = connect(&server).await;
    let bucket = bucket(&server, &connection).await;
    let mut watch = bucket.watch("lease.>").await.unwrap();
    connection.round_trip().await.unwrap();
    let revision = bucket.create("lease.a", "x".into()).await.unwrap();
    bucket.create("other.a", "x".into()).await.unwrap();
    bucket.delete("lease.a", revision).await.unwrap();
    let first = watch.next().await.unwrap();
    assert_eq!((first.key.as_str(), text(&first.value), first.deleted), ("lease.a", "x", false));
    let second = watch.next().await.unwrap();
    assert_eq!((second.key.as_str(), second.deleted), ("lease.a", true));
}

async fn the_rights_of_leases_are_enough(version: &'static str) {
    let publish = [
        "$KV.wh_coord.lease.>",
        "$JS.API.DIRECT.GET.KV_wh_coord.$KV.wh_coord.lease.>",
        "$JS.API.DIRECT.GET.KV_wh_coord",
    ];
    let server = restricted(version, &publish, &["_INBOX_wh.>", "$KV.wh_coord.lease.>"]).await;
    create(&server).await;
    let connection = connect_as(&server, "wavehouse").await;
    let bucket = Bucket::open(&connection, "wh_coord").await.unwrap();
    let revision = bucket.create("lease.a", "x".into()).await.unwrap();
    assert_eq!(bucket.read("lease.a").await.unwrap().unwrap().revision, revision);
    assert_eq!(bucket.read_many("lease.>").await.unwrap().len(), 1);
    bucket.delete("lease.a", revision).await.unwrap();
    bucket.create("lease.a", "y".into()).await.unwrap();
    assert_eq!(connection.refusals().last(), 0);
    let refused = bucket.create("other.a", Bytes::new()).await.unwrap_err();
    assert!(matches!(refused.kind(), Kind::Refused { .. }), "{refused}");
}
