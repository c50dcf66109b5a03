//! The rules on a shard's durable.

use super::rule::{Rule, recommended, required, show, show_set, when};
use crate::{defaults, span::show_span};

pub(super) const RULES: &[Rule] = &[
    required("consumer.deliver_subject", "deliver_subject", |at| {
        let bad = at.config.is_set("deliver_subject");
        when(bad, show(at.config.get("deliver_subject")), "unset: workers pull", at.durable_anew())
    }),
    required("consumer.ack_policy", "ack_policy", |at| {
        let seen = at.config.text("ack_policy");
        when(seen != "explicit", show(at.config.get("ack_policy")), "explicit", at.durable_anew())
    }),
    required("consumer.ack_wait", "ack_wait", |at| {
        let (seen, least) = (at.config.span("ack_wait"), defaults::ACK_WAIT);
        let needed = format!("at least {}: sooner, rows come again while they are written", show_span(least));
        when(seen < least, show_set(seen), needed, at.generated())
    }),
    required("consumer.max_deliver", "max_deliver", |at| {
        let seen = at.config.int("max_deliver");
        when(seen != -1, seen.to_string(), "-1: a row is never given up", at.generated())
    }),
    required("consumer.max_ack_pending", "max_ack_pending", |at| {
        let (seen, least) = (at.config.int("max_ack_pending"), defaults::MIN_ACK_PENDING);
        let needed = format!("at least {least}: one failing table holds its blocks while the others flow");
        when(seen < least, seen.to_string(), needed, at.generated())
    }),
    required("consumer.deliver_policy", "deliver_policy", |at| {
        let seen = at.config.text("deliver_policy");
        when(seen != "all", show(at.config.get("deliver_policy")), "all", at.durable_anew())
    }),
    required("consumer.filter_subject", "filter_subject", |at| {
        let own = at.names().shard_filter(at.partition, at.shard);
        let mut seen = at.config.texts("filter_subjects");
        seen.extend(Some(at.config.text("filter_subject")).filter(|filter| !filter.is_empty()));
        let found = if seen.is_empty() { "unset".to_owned() } else { seen.join(", ") };
        when(seen != [own.as_str()], found, format!("exactly {own}"), at.generated())
    }),
    required("consumer.headers_only", "headers_only", |at| {
        when(at.config.flag("headers_only"), "true", "false: rows are in the bodies", at.generated())
    }),
    required("consumer.replay_policy", "replay_policy", |at| {
        let seen = at.config.text("replay_policy");
        when(seen != "instant", show(at.config.get("replay_policy")), "instant", at.durable_anew())
    }),
    required("consumer.inactive_threshold", "inactive_threshold", |at| {
        let seen = at.config.span("inactive_threshold");
        when(!seen.is_zero(), show_span(seen), "unset: an idle durable must not vanish", at.generated())
    }),
    required("consumer.max_expires", "max_expires", |at| {
        let (seen, least) = (at.config.span("max_expires"), at.config.span("priority_timeout") / 2);
        let needed = format!("unset, or at least {}, half the pinned TTL: pulls would be refused", show_span(least));
        when(!seen.is_zero() && seen < least, show_span(seen), needed, at.generated())
    }),
    required("consumer.max_batch", "max_batch", |at| {
        let (seen, least) = (at.config.int("max_batch"), defaults::PULL_BATCH);
        let needed = format!("unset, or at least {least}: pulls would be refused");
        when(seen != 0 && seen < least, seen.to_string(), needed, at.generated())
    }),
    required("consumer.max_waiting", "max_waiting", |at| {
        let (seen, least) = (at.config.int("max_waiting"), defaults::MIN_WAITING);
        let needed = format!("at least {least}: an owner's pull must find room beside those of owners that left");
        when(at.config.is_set("max_waiting") && seen < least, seen.to_string(), needed, at.durable_anew())
    }),
    required("consumer.backoff", "backoff", |at| {
        let bad = at.config.is_set("backoff");
        when(bad, show(at.config.get("backoff")), "unset: it replaces ack_wait", at.generated())
    }),
    required("consumer.pause_until", "pause_until", |at| {
        let bad = at.config.is_set("pause_until");
        let fix = format!("nats consumer resume {} {} --force", at.stream, at.durable);
        when(bad, show(at.config.get("pause_until")), "unset: a paused durable delivers nothing", fix)
    }),
    required("consumer.priority_policy", "priority_policy", |at| {
        let seen = at.config.text("priority_policy");
        let needed = "pinned_client: one process at a time";
        when(seen != "pinned_client", show(at.config.get("priority_policy")), needed, at.generated())
    }),
    required("consumer.priority_groups", "priority_groups", |at| {
        let bad = at.config.texts("priority_groups") != [defaults::PRIORITY_GROUP];
        let needed = format!("exactly [\"{}\"]", defaults::PRIORITY_GROUP);
        when(bad, show(at.config.get("priority_groups")), needed, at.generated())
    }),
    required("consumer.priority_timeout", "priority_timeout", |at| {
        let (seen, least) = (at.config.span("priority_timeout"), defaults::MIN_PINNED_TTL);
        let needed = format!("at least {}: a live owner would lose its pin", show_span(least));
        when(seen < least, show_set(seen), needed, at.generated())
    }),
    recommended("consumer.priority_timeout_lease", "priority_timeout", |at| {
        let (seen, most) = (at.config.span("priority_timeout"), at.spec.choices().coord_lease);
        let needed = format!("at most {}, the lease: a dead owner's rows wait for the longer one", show_span(most));
        when(seen > most, show_span(seen), needed, at.generated())
    }),
];
