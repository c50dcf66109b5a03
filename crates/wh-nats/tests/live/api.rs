//! The JetStream API: states, lists over many pages, errors by number.

use crate::common::{SOON, connect, durable, fill, options, server, work_queue};
use serde_json::{Value, json};
use std::time::Duration;
use wh_nats::{Connection, Kind, err_code};
use wh_types::Class;

on_each_version!(
    streams_are_found_and_described,
    subjects_are_counted,
    every_page_of_a_list_is_read,
    what_is_gone_is_said_by_info_only,
    messages_are_deleted_once,
);

async fn streams_are_found_and_described(version: &'static str) {
    let server = server(version).await;
    server.operator().create_stream(&work_queue()).await.unwrap();
    let connection = connect(&server).await;
    let api = connection.api();
    assert_eq!(api.stream_names("q.x").await.unwrap(), ["Q"]);
    assert!(api.stream_names("other").await.unwrap().is_empty());
    let empty = api.stream_state("Q").await.unwrap();
    assert_eq!((empty.messages, empty.last_seq, empty.first_ts, empty.last_ts), (0, 0, None, None));
    fill(&connection, "q.x", 3).await;
    let state = api.stream_state("Q").await.unwrap();
    assert_eq!((state.messages, state.first_seq, state.last_seq), (3, 1, 3));
    assert_eq!((state.created.as_str(), state.config["name"].as_str()), (empty.created.as_str(), Some("Q")));
    assert!(state.bytes > 0 && state.ts >= state.last_ts && state.first_ts <= state.last_ts);
    assert!(api.account_info().await.unwrap()["limits"].is_object());
    let raw = api.request_json("STREAM.INFO.Q", &json!({"deleted_details": true}), SOON).await.unwrap();
    assert_eq!(raw["config"]["retention"], "workqueue");
}

async fn subjects_are_counted(version: &'static str) {
    let server = server(version).await;
    server.operator().create_stream(&work_queue()).await.unwrap();
    let connection = connect(&server).await;
    for (subject, count) in [("q.a.x", 3), ("q.a.y", 1), ("q.b.x", 2)] {
        fill(&connection, subject, count).await;
    }
    let subjects = connection.api().stream_subjects("Q", "q.a.>").await.unwrap();
    assert_eq!(subjects.into_iter().collect::<Vec<_>>(), [("q.a.x".to_owned(), 3), ("q.a.y".to_owned(), 1)]);
    assert!(connection.api().stream_subjects("Q", "q.none").await.unwrap().is_empty());
}

async fn every_page_of_a_list_is_read(version: &'static str) {
    const COUNT: usize = 300;
    let server = server(version).await;
    let mut operator = server.operator();
    operator.create_stream(&work_queue()).await.unwrap();
    for number in 0..COUNT {
        let config = durable(&format!("d-{number}"), &format!("q.{number}"), Duration::from_secs(10));
        operator.create_durable("Q", &config).await.unwrap();
    }
    let connection = connect(&server).await;
    let list = connection.api().consumer_list("Q").await.unwrap();
    let mut names: Vec<_> = list.infos.iter().map(|info| info.name.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), list.infos.len(), list.missing.len()), (COUNT, COUNT, 0));
    assert!(list.pages.len() > 1);
    let page: Value = serde_json::from_str(&list.pages[0]).unwrap();
    assert_eq!(page["total"].as_u64(), Some(COUNT as u64));
    let info = list.infos.iter().find(|info| info.name == "d-299").unwrap();
    assert_eq!((info.config["filter_subject"].as_str(), info.pinned.as_ref()), (Some("q.299"), None));
}

async fn what_is_gone_is_said_by_info_only(version: &'static str) {
    let server = server(version).await;
    let mut options = options(server.url());
    options.request_timeout = Duration::from_secs(4);
    let connection = Connection::open(options).await.unwrap();
    let api = connection.api();
    let stream = api.stream_info("NONE").await.unwrap_err();
    assert!(stream.is_gone() && stream.is_api(err_code::STREAM_NOT_FOUND), "{stream}");
    server.operator().create_stream(&work_queue()).await.unwrap();
    let consumer = api.consumer_info("Q", "none").await.unwrap_err();
    assert!(consumer.is_gone() && consumer.is_api(err_code::CONSUMER_NOT_FOUND), "{consumer}");
    let unpin = api.unpin("Q", "none", "g").await.unwrap_err();
    assert!(unpin.is_gone() && unpin.class() == Class::NotFound, "{unpin}");
    let reset = api.reset("Q", "none").await.unwrap_err();
    assert_eq!(reset.kind(), &Kind::Timeout, "a reset of what is not there is not answered");
}

async fn messages_are_deleted_once(version: &'static str) {
    let server = server(version).await;
    server.operator().create_stream(&work_queue()).await.unwrap();
    let connection = connect(&server).await;
    fill(&connection, "q.x", 3).await;
    assert!(connection.api().message_delete("Q", 2).await.unwrap());
    assert!(!connection.api().message_delete("Q", 2).await.unwrap());
    let mut direct = work_queue();
    direct["name"] = "D".into();
    direct["subjects"] = serde_json::json!(["d.>"]);
    direct["allow_direct"] = true.into();
    server.operator().create_stream(&direct).await.unwrap();
    fill(&connection, "d.x", 3).await;
    for sequence in [1, 3] {
        assert!(connection.api().message_delete("D", sequence).await.unwrap(), "{sequence}");
        assert!(
            !connection.api().message_delete("D", sequence).await.unwrap(),
            "{sequence}, before the first or at the end"
        );
    }
    assert!(!connection.api().message_delete("D", 9).await.unwrap());
    assert!(connection.api().message_delete("NONE", 1).await.unwrap_err().is_gone());
    assert_eq!(connection.api().stream_state("Q").await.unwrap().messages, 2);
}
