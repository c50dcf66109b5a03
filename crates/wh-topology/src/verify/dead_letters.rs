//! The rules on the dead letters' stream.

use super::{
    partition::{replicas, subject_transform},
    rule::{Rule, recommended, required, show, show_set, when},
};
use crate::{defaults, span::show_span, topology::Sizes};

pub(super) const RULES: &[Rule] = &[
    required("dead_letters.name", "name", |at| {
        let own = &at.names().dead_letters;
        let needed = format!("{own}, which the rights name");
        let fix = format!("set mq.nats.dlq_stream (--dlq-stream) to {} and print the rights again", at.stream);
        when(at.stream != own, at.stream, needed, fix)
    }),
    required("dead_letters.subjects", "subjects", |at| {
        let (seen, own) = (at.config.texts("subjects"), at.names().dead_letter_subjects());
        let fix = at.edit(&format!("--subjects='{own}'"));
        when(!seen.contains(&own.as_str()), seen.join(", "), format!("must include {own}"), fix)
    }),
    required("dead_letters.retention", "retention", |at| {
        let seen = at.config.text("retention");
        when(seen != "limits", show(at.config.get("retention")), "limits", at.anew())
    }),
    required("dead_letters.discard", "discard", |at| {
        let seen = at.config.text("discard");
        let needed = "old: parking must never wait";
        when(seen != "old", show(at.config.get("discard")), needed, at.edit("--discard=old"))
    }),
    required("dead_letters.storage", "storage", |at| {
        when(at.config.text("storage") != "file", show(at.config.get("storage")), "file", at.anew())
    }),
    required("dead_letters.max_bytes", "max_bytes", |at| {
        let fix = at.edit(&format!("--max-bytes={}", Sizes::of(at.spec).dead_letters));
        when(at.config.int("max_bytes") <= 0, "unset", "a limit: it bounds the disk", fix)
    }),
    required("dead_letters.allow_direct", "allow_direct", |at| {
        when(!at.config.flag("allow_direct"), "false", "true: they are listed directly", at.edit("--allow-direct"))
    }),
    required("dead_letters.subject_transform", "subject_transform", subject_transform),
    required("dead_letters.sealed", "sealed", |at| {
        when(at.config.flag("sealed"), "true", "false: it takes no more rows", at.anew())
    }),
    required("dead_letters.no_ack", "no_ack", |at| {
        when(at.config.flag("no_ack"), "true", "false: a row is settled when it is parked", at.edit("--ack"))
    }),
    recommended("dead_letters.max_msgs_per_subject", "max_msgs_per_subject", |at| {
        let most = defaults::DEAD_LETTERS_PER_SUBJECT;
        let fix = at.edit(&format!("--max-msgs-per-subject={most}"));
        let bad = at.config.int("max_msgs_per_subject") <= 0;
        when(bad, "unset", format!("{most}: one table can push out the others'"), fix)
    }),
    recommended("dead_letters.persist_mode", "persist_mode", |at| {
        let seen = at.config.text("persist_mode");
        when(seen == "async", seen, "default: async acks before it has written", at.anew())
    }),
    recommended("dead_letters.num_replicas", "num_replicas", replicas),
    recommended("dead_letters.duplicate_window", "duplicate_window", |at| {
        let (seen, least) = (at.config.span("duplicate_window"), defaults::DEAD_LETTER_WINDOW);
        let needed = format!("at least {}: a row whose parking was not answered is parked once", show_span(least));
        when(seen < least, show_set(seen), needed, at.edit(&format!("--dupe-window={}", show_span(least))))
    }),
    recommended("dead_letters.deny_delete", "deny_delete", |at| {
        let bad = at.spec.choices().dlq_delete && at.config.flag("deny_delete");
        let needed = "false: replaying and purging delete single letters (or run with --no-dlq-delete)";
        when(bad, "true", needed, at.anew())
    }),
];
