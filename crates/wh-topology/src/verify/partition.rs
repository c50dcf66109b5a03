//! The rules on a partition's stream.

use super::rule::{At, Broken, Rule, quote, recommended, required, show, show_set, when};
use crate::{
    defaults,
    span::show_span,
    topology::{METADATA_PARTITION, METADATA_PARTITIONS, METADATA_SHARDS, Sizes},
};

pub(super) const RULES: &[Rule] = &[
    required("partition.subjects", "subjects", |at| {
        let (seen, own) = (at.config.texts("subjects"), at.names().partition_subjects(at.partition));
        let all = seen.iter().copied().chain([own.as_str()]).map(|subject| format!("--subjects={}", quote(subject)));
        let fix = at.edit(&all.collect::<Vec<_>>().join(" "));
        when(!seen.contains(&own.as_str()), seen.join(", "), format!("must include {own}"), fix)
    }),
    required("partition.retention", "retention", |at| {
        let seen = at.config.text("retention");
        when(
            seen != "workqueue",
            show(at.config.get("retention")),
            "workqueue: a row stays until it is acked",
            at.anew(),
        )
    }),
    required("partition.republish", "republish", republish),
    required("partition.discard", "discard", |at| {
        let seen = at.config.text("discard");
        when(seen != "new", show(at.config.get("discard")), "new: a full stream must refuse", at.edit("--discard=new"))
    }),
    required("partition.max_bytes", "max_bytes", |at| {
        let fix = at.edit(&format!("--max-bytes={}", Sizes::of(at.spec).partition));
        let needed = "a limit: it bounds the disk and tells publishers to wait";
        when(at.config.int("max_bytes") <= 0, "unset", needed, fix)
    }),
    required("partition.max_age", "max_age", |at| {
        let seen = at.config.span("max_age");
        when(!seen.is_zero(), show_span(seen), "unset: age drops rows that were not written", at.edit("--max-age=0s"))
    }),
    required("partition.storage", "storage", |at| {
        when(at.config.text("storage") != "file", show(at.config.get("storage")), "file", at.anew())
    }),
    required("partition.duplicate_window", "duplicate_window", |at| {
        let needed = at.spec.publish_budget();
        window(at, needed, "all attempts of one publish")
    }),
    required("partition.duplicate_window_dedupe", "duplicate_window", |at| {
        let needed = at.spec.dedupe_window()?;
        window(at, needed, "a claim whose outcome is unknown, until its client came again")
    }),
    required("partition.no_ack", "no_ack", |at| {
        when(at.config.flag("no_ack"), "true", "false: a 200 rests on the ack", at.edit("--ack"))
    }),
    required("partition.sealed", "sealed", |at| {
        when(at.config.flag("sealed"), "true", "false: it takes no more rows", at.anew())
    }),
    required("partition.mirror", "mirror", |at| {
        when(at.config.is_set("mirror"), show(at.config.get("mirror")), "unset", at.anew())
    }),
    required("partition.sources", "sources", |at| {
        let seen = show(at.config.get("sources"));
        when(at.config.is_set("sources"), seen, "unset: rows must come from publishers only", at.generated())
    }),
    required("partition.subject_transform", "subject_transform", subject_transform),
    required("partition.discard_new_per_subject", "discard_new_per_subject", |at| {
        let capped = at.config.int("max_msgs_per_subject") > 0;
        let bad = capped && !at.config.flag("discard_new_per_subject");
        let needed = "true with max_msgs_per_subject: else a table's oldest rows are dropped";
        when(bad, "false", needed, at.edit("--discard=new --discard-per-subject"))
    }),
    recommended("partition.max_msgs_per_subject", "max_msgs_per_subject", |at| {
        let most = defaults::PARTITION_PER_SUBJECT;
        let fix = at.edit(&format!("--discard=new --max-msgs-per-subject={most} --discard-per-subject"));
        let bad = at.config.int("max_msgs_per_subject") <= 0;
        when(bad, "unset", format!("{most}: one table can fill the partition"), fix)
    }),
    recommended("partition.deny", "deny_purge", |at| {
        let (purge, delete) = (at.config.flag("deny_purge"), at.config.flag("deny_delete"));
        let seen = format!("deny_purge {purge}, deny_delete {delete}");
        when(!(purge && delete), seen, "both true: no slip removes rows", at.edit("--deny-purge --deny-delete"))
    }),
    required("partition.persist_mode", "persist_mode", |at| {
        let seen = at.config.text("persist_mode");
        when(seen == "async", seen, "default: async acks before it has written", at.anew())
    }),
    recommended("partition.num_replicas", "num_replicas", replicas),
    recommended("partition.metadata", "metadata", |at| {
        let missing = [METADATA_PARTITION, METADATA_PARTITIONS].map(|key| at.config.inner("metadata", key).is_none());
        let needed = format!("{METADATA_PARTITION} and {METADATA_PARTITIONS}: they tell a wrong count");
        when(missing.contains(&true), "keys missing", needed, metadata(at))
    }),
    required("partition.metadata_counts", "metadata", |at| {
        let own = [(METADATA_PARTITION, at.partition), (METADATA_PARTITIONS, at.spec.choices().partitions)];
        let says = |key| at.config.inner("metadata", key);
        let bad = own.iter().any(|(key, own)| says(key).is_some_and(|seen| seen != own.to_string()));
        let found = own.map(|(key, _)| format!("{key} {}", says(key).unwrap_or("unset"))).join(", ");
        let needed = own.map(|(key, own)| format!("{key} {own}")).join(", ");
        let fix = match says(METADATA_PARTITIONS) {
            Some(seen) if seen != at.spec.choices().partitions.to_string() => counts(seen, "partitions"),
            Some(_) | None => metadata(at),
        };
        when(bad, found, format!("{needed}: all processes run with one N"), fix)
    }),
    recommended("partition.metadata_shards_missing", "metadata", |at| {
        let bad = at.config.inner("metadata", METADATA_SHARDS).is_none();
        when(bad, "key missing", format!("{METADATA_SHARDS}: it tells a wrong count"), metadata(at))
    }),
    required("partition.metadata_shards", "metadata", |at| {
        let seen = at.config.inner("metadata", METADATA_SHARDS)?;
        let own = at.spec.choices().shards.to_string();
        let needed = format!("{METADATA_SHARDS} {own}: all processes run with one V");
        when(seen != own, format!("{METADATA_SHARDS} {seen}"), needed, counts(seen, "shards"))
    }),
];

fn republish(at: &At<'_>) -> Option<Broken> {
    let (src, dest) = (at.names().republish_source(at.partition), at.names().history_subjects());
    let seen = at.config.get("republish");
    let end = |key: &str| at.config.inner("republish", key).unwrap_or("");
    let headers_only = seen.get("headers_only").and_then(serde_json::Value::as_bool) == Some(true);
    let bad = end("src") != src || end("dest") != dest || headers_only;
    let fix = format!("--republish-source={} --republish-destination={}", quote(&src), quote(&dest));
    when(bad, show(seen), format!("from {src} to {dest}, whole messages"), at.edit(&fix))
}

fn window(at: &At<'_>, needed: std::time::Duration, why: &str) -> Option<Broken> {
    let seen = at.config.span("duplicate_window");
    let fix = at.edit(&format!("--dupe-window={}", show_span(at.spec.duplicate_window())));
    when(seen < needed, show_set(seen), format!("at least {}: {why}", show_span(needed)), fix)
}

pub(super) fn subject_transform(at: &At<'_>) -> Option<Broken> {
    let seen = show(at.config.get("subject_transform"));
    let needed = "unset: what is stored under another subject is not found again";
    when(at.config.is_set("subject_transform"), seen, needed, at.edit("--no-transform"))
}

pub(super) fn replicas(at: &At<'_>) -> Option<Broken> {
    let seen = at.config.int("num_replicas").max(1);
    let why = match seen {
        1 => "what was acked rests on one disk, and on its sync_interval",
        _ => "two copies stop when one server does",
    };
    when(seen < 3, seen.to_string(), format!("3, across failure domains: {why}"), at.edit("--replicas=3"))
}

/// All three keys, and those that the operator added: an edit replaces the whole.
/// For a count that differs. Which side is wrong cannot be told from here, and a stream that says another count than its
/// processes run with would take tables away from them.
fn counts(seen: &str, key: &str) -> String {
    format!("mq.nats.{key}: {seen} here, if the servers are right; to change the servers: wavehouse mq plan")
}

fn metadata(at: &At<'_>) -> String {
    let own = [
        (METADATA_PARTITION, at.partition),
        (METADATA_PARTITIONS, at.spec.choices().partitions),
        (METADATA_SHARDS, at.spec.choices().shards),
    ];
    let others = at.config.get("metadata").as_object().into_iter().flatten();
    let others = others.filter(|(key, _)| !key.starts_with("_nats.") && own.iter().all(|(own, _)| own != key));
    let others = others.map(|(key, value)| (key.clone(), value.as_str().unwrap_or("").to_owned()));
    let all = own.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())).chain(others);
    let flags: Vec<_> = all.map(|(key, value)| format!("--metadata {}", quote(&format!("{key}={value}")))).collect();
    at.edit(&flags.join(" "))
}
