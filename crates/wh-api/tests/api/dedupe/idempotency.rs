//! Requests under an `Idempotency-Key`.

use super::{World, counts, row, rows, under, under_to};
use crate::rig::{Rig, post};
use futures::FutureExt;
use std::time::Duration;
use wh_mq::{
    Kind,
    faulty::{Fault, Op},
};

/// A table whose events are not told apart.
const PLAIN: &str = "/v1/ingest?table=a.b%2Fc";

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_again_is_stored_once_and_says_so() {
    let one = World::new().process(1).rig;
    let body = rows([1, 1, 2]) + "{\"nope\":1}\n";
    let first = under_to(&one, PLAIN, "k", &body).await;
    assert_eq!((first.status.as_u16(), counts(&first)), (207, [4, 3, 0, 1]));
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = under_to(&one, PLAIN, "k", &body).await;
    assert_eq!((again.status.as_u16(), counts(&again)), (207, [4, 3, 0, 1]), "the same answer");
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.results(), first.results());
    assert_eq!(counts(&under_to(&one, PLAIN, "other", &body).await), [4, 3, 0, 1], "another key is another request");
    assert_eq!(one.rows().await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn the_scope_of_a_key_is_its_table_and_tenant() {
    let one = World::new().process(1).rig;
    for path in ["/v1/ingest?table=t", PLAIN] {
        assert_eq!(counts(&under_to(&one, path, "k", &row(1)).await), [1, 1, 0, 0]);
    }
    let mut other = post(PLAIN, "application/x-ndjson", row(1));
    other.headers_mut().insert("idempotency-key", "k".parse().unwrap());
    other.headers_mut().insert("x-tenant-id", "acme".parse().unwrap());
    let other = one.send(other).await;
    assert_eq!((counts(&other), other.header("idempotency-replayed")), ([1, 1, 0, 0], None));
    assert_eq!(one.rows().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_read_in_another_way_is_another_body() {
    let one = World::new().process(1).rig;
    let body = "id,note,n,at,tags,ça va\n1,a,,,,\n2,b,,,,\n";
    let send = async |form: &'static str| {
        let mut request = post(PLAIN, form, body);
        request.headers_mut().insert("idempotency-key", "k".parse().unwrap());
        one.send(request).await
    };
    let first = send("text/csv; header=present").await;
    assert_eq!(counts(&first), [2, 2, 0, 0]);
    // its second record is the first one of before
    let other = send("text/csv; header=absent").await;
    assert_eq!(other.outcome(), (409, Some("idempotency.mismatch".into())), "{other:?}");
    let again = send("text/csv; header=present").await;
    assert_eq!((counts(&again), again.header("idempotency-replayed")), ([2, 2, 0, 0], Some("true")));
    assert_eq!(one.rows().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_one_line_of_visible_text() {
    let one = World::new().process(1).rig;
    let send = async |keys: &[&[u8]]| {
        let mut request = post(PLAIN, "application/x-ndjson", row(1));
        for key in keys {
            request.headers_mut().append("idempotency-key", http::HeaderValue::from_bytes(key).unwrap());
        }
        one.send(request).await
    };
    for bad in [&[&b""[..]][..], &["schl\u{fc}ssel".as_bytes()], &[b"\xff"], &[b"k", b"k"], &[&[b'k'; 256]]] {
        let reply = send(bad).await;
        assert_eq!(reply.outcome(), (400, Some("idempotency.key_invalid".into())), "{bad:?}");
        assert_eq!(reply.value()["total"], 0);
    }
    assert!(one.rows().await.is_empty(), "nothing of such a request is stored");
    for good in [&b"../../x"[..], b"0/1", b"%2F", b"!", &[b'%'; 255]] {
        for replayed in [None, Some("true")] {
            let reply = send(&[good]).await;
            assert_eq!((reply.status.as_u16(), reply.header("idempotency-replayed")), (200, replayed), "{good:?}");
        }
    }
    assert_eq!(one.rows().await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn another_body_under_a_known_key_is_refused_whole() {
    let one = World::new().process(1).rig;
    under_to(&one, PLAIN, "k", &rows([1, 2])).await;
    let other = under_to(&one, PLAIN, "k", &rows([1, 2, 3])).await;
    assert_eq!(other.outcome(), (409, Some("idempotency.mismatch".into())));
    assert_eq!(other.header("retry-after"), None);
    assert_eq!(other.value()["retryable"], false);
    assert!(
        other.results().iter().all(|(_, status, code)| status == "not_attempted" && code == "idempotency.mismatch")
    );
    assert_eq!(counts(&other), [3, 0, 0, 0], "nor is the record stored that the first had not");
    assert_eq!(one.rows().await.len(), 2);
    assert_eq!(counts(&under_to(&one, PLAIN, "k", &rows([1, 2])).await), [2, 2, 0, 0], "the first may come again");
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_first_is_still_at_work_waits() {
    let world = World::new();
    let (one, two) = (world.process(1).rig, world.process(2).rig);
    one.script.next(Op::Publish, Fault::Delay(Duration::from_secs(3)));
    let first = under_to(&one, PLAIN, "k", "{\"id\":1}");
    let second = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let other = under_to(&two, PLAIN, "k", "{\"id\":2}").await;
        assert_eq!(other.outcome(), (409, Some("idempotency.mismatch".into())), "another body is so already");
        under_to(&two, PLAIN, "k", "{\"id\":1}").await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.status, 200);
    assert_eq!(second.outcome(), (503, Some("idempotency.running".into())));
    assert!(second.header("retry-after").is_some());
    let third = under_to(&two, PLAIN, "k", "{\"id\":1}").await;
    assert_eq!((counts(&third), third.header("idempotency-replayed")), ([1, 1, 0, 0], Some("true")));
    assert_eq!(one.rows().await, [row(1)]);
}

#[tokio::test(start_paused = true)]
async fn two_at_one_time_in_one_block_are_stored_once() {
    let one = World::new().process(1).rig;
    one.script.next(Op::Publish, Fault::Delay(Duration::from_secs(1)));
    let plug = one.lines(row(9));
    let both = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let body = row(1);
        tokio::join!(under_to(&one, PLAIN, "k", &body), under_to(&one, PLAIN, "k", &body))
    };
    let (_, (a, b)) = tokio::join!(plug, both);
    let mut statuses = [a.status.as_u16(), b.status.as_u16()];
    statuses.sort_unstable();
    assert!(statuses == [200, 200] || statuses == [200, 503], "{a:?} {b:?}");
    assert_eq!(one.rows().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hung_up_finds_its_request_done() {
    let one = World::new().process(1).rig;
    one.script.next(Op::Publish, Fault::Delay(Duration::from_secs(1)));
    let mut gone = Box::pin(under(&one, "k", "{\"id\":1}"));
    while tokio::time::timeout(Duration::from_millis(10), &mut gone).now_or_never().is_some() {}
    drop(gone);
    let soon = under(&one, "k", "{\"id\":1}").await;
    assert_eq!(soon.outcome(), (503, Some("idempotency.running".into())), "the first is still at work");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let again = under(&one, "k", "{\"id\":1}").await;
    assert_eq!((counts(&again), again.header("idempotency-replayed")), ([1, 1, 0, 0], Some("true")));
    assert_eq!(one.rows().await, [row(1)]);
}

#[tokio::test(start_paused = true)]
async fn records_and_ids_agree() {
    let one = World::new().process(1).rig;
    one.lines(row(1)).await;
    let first = under(&one, "k", &rows([1, 2])).await;
    assert_eq!(counts(&first), [2, 1, 1, 0]);
    let again = under(&one, "k", &rows([1, 2])).await;
    assert_eq!((counts(&again), again.header("idempotency-replayed")), ([2, 2, 0, 0], Some("true")));
    let same_ids = under(&one, "l", &rows([1, 2])).await;
    assert_eq!((counts(&same_ids), same_ids.header("idempotency-replayed")), ([2, 0, 2, 0], None));
    assert_eq!(one.rows().await, [row(1), row(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_publish_gives_the_key_back() {
    let one = World::new().process(1).rig;
    one.script.next(Op::Publish, Fault::Fail(Kind::NoSpace));
    assert_eq!(under_to(&one, PLAIN, "k", &row(1)).await.status, 503);
    let again = under_to(&one, PLAIN, "k", &row(2)).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (200, None), "another body is fine, too");
    assert_eq!(one.rows().await, [row(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_cannot_be_kept_is_refused() {
    let one = World::new().process(1).rig;
    let long = under(&one, &"k".repeat(256), &row(1)).await;
    assert_eq!(long.outcome(), (400, Some("idempotency.key_invalid".into())));
    assert_eq!(under(&one, &"k".repeat(255), &row(1)).await.status, 200);
    let without = Rig::new();
    assert_eq!(under(&without, "k", &row(1)).await.outcome(), (501, Some("idempotency.unsupported".into())));
    assert!(without.rows().await.is_empty());
}
