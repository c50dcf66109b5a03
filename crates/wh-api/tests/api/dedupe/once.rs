//! Which events are the same, and what their senders are told.

use super::{World, counts, lines, row};
use crate::rig::post;
use wh_api::IdRule;

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_again_is_a_duplicate() {
    let one = World::new().process(1).rig;
    assert_eq!(counts(&lines(&one, [7]).await), [1, 1, 0, 0]);
    let again = lines(&one, [7]).await;
    assert_eq!((again.status.as_u16(), counts(&again)), (200, [1, 0, 1, 0]));
    assert_eq!(again.results(), [(0, "duplicate".to_owned(), String::new())]);
    let mixed = lines(&one, [7, 8, 9, 8]).await;
    assert_eq!((mixed.status.as_u16(), counts(&mixed)), (200, [4, 2, 2, 0]));
    assert_eq!(mixed.results().iter().map(|(index, ..)| *index).collect::<Vec<_>>(), [0, 3]);
    assert_eq!(one.rows().await, [row(7), row(8), row(9)]);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_stands_in_a_body_twice_is_stored_once_however_large_the_body() {
    let one = World::new().process(1).rig;
    let reply = lines(&one, (0..3_000).map(|n| n % 1_700)).await;
    assert_eq!((reply.status.as_u16(), counts(&reply)), (200, [3_000, 1_700, 1_300, 0]));
    assert_eq!(one.rows().await, (0..1_700).map(row).collect::<Vec<_>>(), "in order");
    // … and over several publish calls
    let reply = lines(&one, (10_000..30_000).chain(10_000..10_100)).await;
    assert_eq!(counts(&reply), [20_100, 20_000, 100, 0]);
    assert_eq!(one.rows().await.len(), 20_000);
}

#[tokio::test(start_paused = true)]
async fn cells_are_told_apart_like_objects() {
    let one = World::new().process(1).rig;
    let body = "id,note\n1,a\n2,b\n1,c\n,d\n";
    let reply = one.post("text/csv; header=present", body).await;
    assert_eq!(counts(&reply), [4, 2, 1, 1], "no id is no value for a required column: {reply:?}");
    assert_eq!(counts(&lines(&one, [1, 2, 3]).await), [3, 1, 2, 0]);
    // more than one piece
    let large: String = (10..8_010).map(|id| format!("{id},{}\n", "x".repeat(500))).collect();
    let large = format!("id,note\n{large}");
    assert_eq!(counts(&one.post("text/csv; header=present", large.clone()).await), [8_000, 8_000, 0, 0]);
    assert_eq!(counts(&one.post("text/csv; header=present", large).await), [8_000, 0, 8_000, 0]);
}

#[tokio::test(start_paused = true)]
async fn ids_of_other_tables_and_tenants_are_others() {
    let one = World::new().process(1).rig;
    assert_eq!(counts(&lines(&one, [1]).await), [1, 1, 0, 0]);
    let mut other = post("/v1/ingest?table=t", "application/x-ndjson", row(1));
    other.headers_mut().insert("x-tenant-id", "acme".parse().unwrap());
    assert_eq!(counts(&one.send(other).await), [1, 1, 0, 0]);
    for _ in 0..2 {
        let apart = one.send(post("/v1/ingest?table=a.b%2Fc", "application/x-ndjson", row(1))).await;
        assert_eq!(counts(&apart), [1, 1, 0, 0], "its events are not told apart");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_is_its_text() {
    let mut world = World::new();
    world.rule.column = "note".into();
    let one = world.process(1).rig;
    let post = async |note: &str| counts(&one.json(format!("{{\"id\":1,\"note\":{note}}}")).await)[1];
    assert_eq!(post("\"a/b\"").await, 1);
    assert_eq!(post(r#""\u0061\/b""#).await, 0, "the same text in other escapes");
    assert_eq!(post("\"17\"").await, 1);
    assert_eq!(post(" 17 ").await, 0, "a number is the text it is written as");
    assert_eq!(post("17.0").await, 1);
    let long = format!("\"{}\"", "x".repeat(5_000));
    assert_eq!((post(&long).await, post(&long).await), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn half_of_a_surrogate_pair_is_no_id() {
    let mut world = World::new();
    world.rule.column = "note".into();
    let one = world.process(1).rig;
    // ClickHouse stores both of the last ones, and as different bytes
    for half in [r#""\ud800x""#, r#""a\udc00""#, r#""a\uDC01""#, r#""\ufffd\udc02""#] {
        let reply = one.json(format!("{{\"id\":1,\"note\":{half}}}")).await;
        assert_eq!(reply.status, 400, "{half} {reply:?}");
    }
    let reply = one.json(r#"{"id":1,"note":"a\udc00"}"#).await;
    assert_eq!(reply.results()[0].2, "dedupe.id_invalid");
    assert_eq!(reply.value()["results"][0]["column"], "note");
    for (text, new) in
        [(r#""\ud83d\ude00""#, 1), ("\"\u{1f600}\"", 0), (r#""\ufffd""#, 1), ("\"\u{fffd}\"", 0), (r#""\\udc00""#, 1)]
    {
        assert_eq!(counts(&one.json(format!("{{\"id\":1,\"note\":{text}}}")).await)[1], new, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn ids_that_are_made_to_look_alike_are_others() {
    let mut world = World::new();
    world.rule.column = "note".into();
    let one = world.process(1).rig;
    let long = "y".repeat(1 << 19);
    let texts = [
        "!k/0",
        "k/0",
        "#",
        "%23",
        "%2523",
        "a/b",
        "a%2Fb",
        "A/B",
        " ",
        "\u{a0}",
        "e\u{301}",
        "\u{e9}",
        "\u{0}",
        "\u{0}\u{0}",
        "null",
        "../t/x",
        "t/x",
        &long,
        &long[1..],
        &format!("{long}z"),
    ];
    for text in texts {
        let body = serde_json::json!({ "id": 1, "note": text }).to_string();
        for new in [1, 0] {
            let reply = one.json(body.clone()).await;
            assert_eq!(counts(&reply)[1], new, "{:?} {reply:?}", &text[..text.len().min(20)]);
        }
    }
    // nor is a record of a request one of them
    let reply = super::under(&one, "k", r#"{"id":1,"note":"first"}"#).await;
    assert_eq!(counts(&reply), [1, 1, 0, 0]);
    assert_eq!(one.rows().await.len(), texts.len() + 1);
}

#[tokio::test(start_paused = true)]
async fn no_id_is_no_id() {
    for (required, accepted) in [(false, 3), (true, 0)] {
        let mut world = World::new();
        world.rule = IdRule { column: "note".into(), required, ..world.rule };
        let one = world.process(1).rig;
        let reply = one.lines("{\"id\":1,\"note\":null}\n{\"id\":1,\"note\":\"\"}\n{\"id\":1}\n").await;
        assert_eq!(counts(&reply)[1], accepted, "{reply:?}");
        assert_eq!(one.rows().await.len() as u64, accepted);
        if required {
            let expected = ["dedupe.id_missing"; 3];
            let results = reply.results();
            assert_eq!(results.iter().map(|(.., code)| code.as_str()).collect::<Vec<_>>(), expected);
            assert_eq!(reply.value()["results"][0]["column"], "note");
        }
    }
    // a table that has no such column has no ids
    let mut world = World::new();
    world.rule.column = "nowhere".into();
    let one = world.process(1).rig;
    assert_eq!(counts(&lines(&one, [1, 1]).await), [2, 2, 0, 0]);
    world.rule = IdRule { column: "tags".into(), ..world.rule };
    let one = world.process(1).rig;
    let reply = one.json(r#"{"id":1,"tags":["a"]}"#).await;
    assert_eq!(reply.outcome(), (400, Some("dedupe.id_invalid".into())));
}

#[tokio::test(start_paused = true)]
async fn a_refused_record_does_not_use_up_its_id() {
    let one = World::new().process(1).rig;
    let reply = one.lines("{\"id\":1,\"nope\":1}\n{\"id\":2}\n").await;
    assert_eq!(counts(&reply), [2, 1, 0, 1]);
    assert_eq!(counts(&lines(&one, [1, 2]).await), [2, 1, 1, 0]);
}
