//! Rows that are committed while a query runs that does not see them: its answer is given to nobody who asks afterwards.

use super::{WAIT, seen_in, write};
use procs::{System, TABLE};
use std::sync::atomic::{AtomicBool, Ordering};
use wh_testkit::{clickhouse, redis, until, until_equal};

/// Some seconds for any number of rows.
const SLOW: &str = "CREATE VIEW slow AS SELECT id FROM events WHERE NOT ignore(sleep(2))";
const RUNNING: &str = "SELECT count() FROM system.processes WHERE query LIKE 'SELECT count()%`slow`%'";

async fn written_during(more: &str) {
    let engine = clickhouse::Server::start().await.unwrap();
    for sql in [TABLE, SLOW] {
        engine.query(sql).await.unwrap();
    }
    let system = System::over(engine, &format!("ingest: {{batch_wait: 50ms}}\n{more}")).await.unwrap();
    write(&system, 1).await;
    for rows in 1..=3 {
        let ended = AtomicBool::new(false);
        let before = async {
            let seen = seen_in(&system, "slow").await.0;
            ended.store(true, Ordering::Relaxed);
            seen
        };
        let after = async {
            until(WAIT, "the first query to run", || async {
                let runs = system.number(RUNNING).await? > 0 || ended.load(Ordering::Relaxed);
                anyhow::ensure!(runs, "not yet");
                Ok(())
            })
            .await
            .unwrap();
            write(&system, rows + 1).await;
            seen_in(&system, "slow").await.0
        };
        let (before, after) = tokio::join!(before, after);
        assert!(before == rows || before == rows + 1, "{before} of {rows}");
        assert_eq!(after, rows + 1, "it asked once the row was committed");
        until_equal(WAIT, "how an answer came about", "HIT".to_owned(), async || {
            let (seen, how) = seen_in(&system, "slow").await;
            assert_eq!(seen, rows + 1, "{how}");
            how
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn an_answer_from_before_rows_were_committed_is_not_given_after_it() {
    written_during("").await;
}

#[tokio::test]
async fn an_answer_from_before_rows_were_committed_is_not_given_after_it_over_redis() {
    let redis = redis::Server::start().await.unwrap();
    let addr = redis.port();
    written_during(&format!("cache: {{backend: redis, redis: {{addrs: ['127.0.0.1:{addr}'], timeout: 10s}}}}")).await;
}
