//! The same over a cluster of Redis, and over a primary that a sentinel names.

use super::{kept, seen, write};
use procs::System;
use wh_testkit::redis::{Cluster, Sentinel};

fn cache(options: &str) -> String {
    format!("cache: {{backend: redis, redis: {{{options}, timeout: 10s}}}}\ningest: {{batch_wait: 50ms}}")
}

#[tokio::test]
async fn a_cluster_that_comes_back_older_serves_nothing_that_was_ended() {
    let mut cluster = Cluster::start().await.unwrap();
    let addrs: Vec<_> = cluster.proxies().iter().map(|proxy| format!("'127.0.0.1:{}'", proxy.port())).collect();
    let system = System::with(&cache(&format!("mode: cluster, addrs: [{}]", addrs.join(", ")))).await.unwrap();
    write(&system, 1).await;
    kept(&system, 1).await;
    cluster.command(&["SAVE"]).await.unwrap();

    write(&system, 2).await;
    assert_eq!(seen(&system).await.0, 2);
    cluster.crash().await.unwrap();
    kept(&system, 2).await;

    // a third of the names is away
    cluster.proxies()[0].down().await;
    write(&system, 3).await;
    assert_eq!(seen(&system).await.0, 3, "no query fails of it, and none is answered from before");
    cluster.proxies()[0].up().await.unwrap();
    kept(&system, 3).await;
}

#[tokio::test]
async fn behind_a_sentinel_answers_follow_the_primary() {
    let sentinel = Sentinel::start().await.unwrap();
    let options =
        format!("mode: sentinel, addrs: ['127.0.0.1:{}'], sentinel_primary: {}", sentinel.port(), sentinel.name());
    let system = System::with(&cache(&options)).await.unwrap();
    write(&system, 1).await;
    kept(&system, 1).await;

    sentinel.fail_over().await.unwrap();
    write(&system, 2).await;
    assert_eq!(seen(&system).await.0, 2, "what was said to be committed is in the next query");
    kept(&system, 2).await;
    write(&system, 3).await;
    assert_eq!(seen(&system).await.0, 3);
    kept(&system, 3).await;
}
