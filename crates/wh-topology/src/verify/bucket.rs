//! The rules on the bucket of leases.

use super::{
    partition::replicas,
    rule::{Rule, recommended, required, show, when},
};
use crate::span::show_span;

pub(super) const RULES: &[Rule] = &[
    required("bucket.history", "max_msgs_per_subject", |at| {
        let seen = at.config.int("max_msgs_per_subject");
        let fix = at.edit("--max-msgs-per-subject=1");
        when(seen < 1, seen.to_string(), "at least 1: the newest value of a lease", fix)
    }),
    required("bucket.allow_direct", "allow_direct", |at| {
        when(!at.config.flag("allow_direct"), "false", "true: leases are read directly", at.edit("--allow-direct"))
    }),
    required("bucket.ttl", "max_age", |at| {
        let seen = at.config.span("max_age");
        let needed = "unset: a lease ends by its holder's clock, not by vanishing";
        when(!seen.is_zero(), show_span(seen), needed, at.edit("--max-age=0s"))
    }),
    recommended("bucket.storage", "storage", |at| {
        when(at.config.text("storage") != "file", show(at.config.get("storage")), "file", at.anew())
    }),
    recommended("bucket.num_replicas", "num_replicas", replicas),
];
