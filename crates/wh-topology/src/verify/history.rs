//! The rules on the history's stream.

use super::{
    partition::{replicas, subject_transform},
    rule::{Rule, recommended, required, show, show_set, when},
};
use crate::{span::show_span, topology::Sizes};

pub(super) const RULES: &[Rule] = &[
    required("history.subjects", "subjects", |at| {
        let (seen, own) = (at.config.texts("subjects"), at.names().history_subjects());
        let fix = at.edit(&format!("--subjects='{own}'"));
        when(seen != [own.as_str()], seen.join(", "), format!("exactly {own}"), fix)
    }),
    required("history.sources", "sources", |at| {
        let bad = at.config.is_set("sources") || at.config.is_set("mirror");
        let seen = format!("sources {}, mirror {}", show(at.config.get("sources")), show(at.config.get("mirror")));
        when(bad, seen, "neither: only partitions feed it", at.anew())
    }),
    required("history.retention", "retention", |at| {
        let seen = at.config.text("retention");
        when(seen != "limits", show(at.config.get("retention")), "limits: many read the same rows", at.anew())
    }),
    required("history.max_age", "max_age", |at| {
        let fix = at.edit(&format!("--max-age={}", show_span(at.spec.choices().history_max_age)));
        when(at.config.int("max_age") <= 0, "unset", "the time a client may be away", fix)
    }),
    required("history.allow_direct", "allow_direct", |at| {
        when(!at.config.flag("allow_direct"), "false", "true: replay reads directly", at.edit("--allow-direct"))
    }),
    required("history.subject_transform", "subject_transform", subject_transform),
    required("history.sealed", "sealed", |at| {
        when(at.config.flag("sealed"), "true", "false: it takes no more rows", at.anew())
    }),
    recommended("history.discard", "discard", |at| {
        let seen = at.config.text("discard");
        let needed = "old: a full history must take the new";
        when(seen != "old", show(at.config.get("discard")), needed, at.edit("--discard=old"))
    }),
    recommended("history.max_bytes", "max_bytes", |at| {
        let fix = at.edit(&format!("--max-bytes={}", Sizes::of(at.spec).history));
        when(at.config.int("max_bytes") <= 0, "unset", "a limit: it bounds the disk", fix)
    }),
    recommended("history.num_replicas", "num_replicas", replicas),
    recommended("history.duplicate_window", "duplicate_window", |at| {
        let (seen, shortest) = (at.config.span("duplicate_window"), at.shortest_window?);
        let needed =
            format!("at most {}, the partitions': a block stored anew must be heard anew", show_span(shortest));
        let fix = at.edit(&format!("--dupe-window={}", show_span(shortest)));
        when(seen > shortest, show_set(seen), needed, fix)
    }),
];
