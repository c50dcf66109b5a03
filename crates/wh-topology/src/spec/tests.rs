//! Every grammar and bound of a choice, and what follows from choices.

use super::*;

fn problems(change: impl FnOnce(&mut Choices)) -> Vec<&'static str> {
    let mut choices = Choices::default();
    change(&mut choices);
    Spec::new(choices).map_or_else(|refused| refused.0.iter().map(|p| p.field).collect(), |_| Vec::new())
}

#[test]
fn the_defaults_are_taken() {
    assert_eq!(problems(|_| ()), Vec::<&str>::new());
    assert_eq!(Spec::new(Choices::default()).unwrap(), Spec::default());
}

#[test]
fn a_prefix_outside_its_grammar_is_refused() {
    for bad in ["", "WH", "a.b", "a b", "ä", "a>", "*", &"x".repeat(65)] {
        assert!(problems(|c| c.prefix = bad.into()).contains(&"prefix"), "{bad:?}");
    }
    assert!(problems(|c| c.prefix = "a_b-9".into()).is_empty());
}

#[test]
fn every_name_outside_its_grammar_is_refused_by_its_field() {
    for bad in ["", "a.b", "a b", "a*", "a>b", "a/b", &"x".repeat(65)] {
        assert_eq!(problems(|c| c.ingest_consumer = bad.into()), ["ingest-consumer"], "{bad:?}");
        assert_eq!(problems(|c| c.history_stream = Some(bad.into())), ["history-stream"], "{bad:?}");
        assert_eq!(problems(|c| c.dlq_stream = Some(bad.into())), ["dlq-stream"], "{bad:?}");
        assert_eq!(problems(|c| c.coord_bucket = Some(bad.into())), ["coord-bucket"], "{bad:?}");
        assert_eq!(problems(|c| c.js_domain = Some(bad.into())), ["js-domain"], "{bad:?}");
    }
}

#[test]
fn an_inbox_prefix_is_names_with_dots_between() {
    for bad in ["", ".", "a.", ".a", "a..b", "a.*", ">", "$JS", "a b", &"x".repeat(65)] {
        assert_eq!(problems(|c| c.inbox_prefix = Some(bad.into())), ["inbox-prefix"], "{bad:?}");
    }
    let spec = Spec::new(Choices { inbox_prefix: Some("_INBOX.team-a".into()), ..Choices::default() }).unwrap();
    assert_eq!(spec.names().inbox(), "_INBOX.team-a");
    assert!(spec.command_line("manifests").contains("--inbox-prefix=_INBOX.team-a"));
}

#[test]
fn two_objects_never_share_a_name() {
    assert_eq!(problems(|c| c.history_stream = Some("WH_INGEST_3".into())), ["history-stream"]);
    assert_eq!(problems(|c| c.dlq_stream = Some("KV_wh_coord".into())), ["dlq-stream"]);
    assert_eq!(problems(|c| c.dlq_stream = Some("WH_HISTORY".into())), ["dlq-stream"]);
    assert!(problems(|c| c.history_stream = Some("WH_INGEST_LOG".into())).is_empty());
}

#[test]
fn counts_have_bounds() {
    for count in [0, 1_025] {
        assert_eq!(problems(|c| (c.partitions, c.shards) = (count, 1)), ["partitions"]);
    }
    for count in [0, 257] {
        assert_eq!(problems(|c| c.shards = count), ["shards"]);
    }
    for count in [0, 6] {
        assert_eq!(problems(|c| c.replicas = count), ["replicas"]);
    }
    assert_eq!(problems(|c| (c.partitions, c.shards) = (1_024, 65)), ["shards"]);
    assert_eq!(problems(|c| c.file_store = 0), ["file-store"]);
    assert_eq!(problems(|c| c.partition_max_bytes = Some(0)), ["partition-max-bytes"]);
}

#[test]
fn spans_have_bounds() {
    let secs = Duration::from_secs;
    assert_eq!(problems(|c| (c.publish_timeout, c.dedupe_lease) = (secs(0), secs(0))), ["publish-timeout"]);
    assert_eq!(problems(|c| c.coord_lease = secs(2)), ["coord-lease"]);
    assert_eq!(problems(|c| c.coord_lease = secs(61)), ["coord-lease"]);
    assert_eq!(problems(|c| c.history_max_age = secs(0)), ["history-max-age"]);
    // the last attempt must start and be answered well inside the lease: 3 × 5 s + 10.5 s
    assert_eq!(problems(|c| c.dedupe_lease = secs(25)), ["dedupe-lease"]);
    assert!(problems(|c| c.dedupe_lease = Duration::from_millis(25_500)).is_empty());
    assert!(problems(|c| c.dedupe_lease = secs(0)).is_empty(), "nothing is deduplicated");
}

#[test]
fn all_problems_come_at_once() {
    let refused =
        Spec::new(Choices { prefix: "A".into(), shards: 0, coord_lease: Duration::ZERO, ..Choices::default() });
    let text = refused.unwrap_err().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("prefix: \"A\"") && lines[1] == "shards: 0 must be 1 to 256", "{text}");
}

#[test]
fn the_duplicate_window_outlives_every_attempt_and_every_claim() {
    let spec = |publish, lease| {
        let (publish_timeout, dedupe_lease) = (Duration::from_secs(publish), Duration::from_millis(lease));
        Spec::new(Choices { publish_timeout, dedupe_lease, ..Choices::default() }).unwrap()
    };
    assert_eq!(spec(5, 30_000).publish_budget(), Duration::from_millis(15_500));
    assert_eq!(spec(5, 30_000).dedupe_window(), Some(Duration::from_secs(61)));
    assert_eq!(spec(5, 30_500).dedupe_window(), Some(Duration::from_millis(62_500)));
    assert_eq!(spec(5, 0).dedupe_window(), None);
    assert_eq!(spec(5, 30_000).duplicate_window(), Duration::from_mins(2));
    assert_eq!(spec(5, 100_000).duplicate_window(), Duration::from_secs(201));
    assert_eq!(spec(60, 0).duplicate_window(), Duration::from_millis(180_500));
}

#[test]
fn the_command_line_names_what_differs_from_the_defaults() {
    let plain = Spec::new(Choices::default()).unwrap().command_line("manifests");
    assert_eq!(plain, "wavehouse mq manifests --partitions=1 --shards=32 --prefix=wh --replicas=3 --file-store=100Gi");
    let choices = Choices {
        coord_bucket: Some("leases".into()),
        partition_max_bytes: Some(5_000_000),
        dedupe_lease: Duration::ZERO,
        ..Choices::default()
    };
    let line = Spec::new(choices).unwrap().command_line("manifests");
    assert!(line.ends_with(" --coord-bucket=leases --dedupe-lease=0s --partition-max-bytes=5M"), "{line}");
}
