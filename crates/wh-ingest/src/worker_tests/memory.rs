//! A sink that has no memory for a while: rows arrive within seconds after, in full batches.

use super::*;

#[tokio::test(start_paused = true)]
async fn some_seconds_without_memory_are_over_some_seconds_later() {
    for (outage, within) in [(3, 6), (20, 14)] {
        let mut bench = Bench::new(Options { held_rows: 400_000, ..Options::default() });
        let (mut at, mut asked, mut down) = (0, 0, 0);
        for second in 0..50_u32 {
            if second == 10 {
                asked = bench.sink.asked();
                bench.sink.limit(Some(0));
            } else if second == 10 + outage {
                down = bench.sink.asked() - asked;
                asked = bench.sink.asked();
                bench.sink.limit(None);
            }
            for _ in 0..4 {
                bench.publish("t", at, at + 500).await;
                at += 500;
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            let stored = bench.rows("t").len();
            assert!(second < 10 + outage + within || stored + 4_000 >= at as usize, "{stored} of {at}, {second} s");
        }
        bench.sink.wait_for(at as usize).await;
        // halvings of one batch, and a probe for each wait
        assert!(down <= 6 + 5, "{down} requests without memory");
        // one a second, and the pieces of what was halved
        let after = bench.sink.asked() - asked;
        assert!(after <= 40 + 15, "{after} requests after it");
        assert_eq!(bench.stopped().await, 0);
        let mut rows = bench.rows("t");
        if outage > 10 {
            // beyond its part of the share rows go back, and come again in another order
            rows.sort();
        }
        assert!(rows == numbers(0..at), "each once, in order");
        assert!(bench.letters().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn other_tables_flow_while_one_waits_for_memory() {
    let mut bench = Bench::new(Options::default());
    bench.sink.limit(Some(5));
    bench.publish("large", 0, 400).await;
    for n in 0..10 {
        for name in ["a", "b", "c"] {
            bench.publish(name, n, n + 1).await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    for name in ["a", "b", "c"] {
        assert_eq!(bench.rows(name), numbers(0..10));
    }
    bench.sink.wait_for(430).await;
    assert_eq!(bench.rows("large"), numbers(0..400), "too many for memory at once, and stored in parts");
    assert!(bench.letters().await.is_empty());
    assert_eq!(bench.stopped().await, 0);
}
