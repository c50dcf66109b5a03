//! The smallest set, line by line.

use super::*;
use crate::{Choices, overlap};

fn rights(role: Role, change: impl FnOnce(&mut Choices)) -> Rights {
    let mut choices = Choices { shards: 2, ..Choices::default() };
    change(&mut choices);
    Rights::new(&Spec::new(choices).unwrap(), role)
}

fn subjects(rights: &[Right]) -> Vec<&str> {
    rights.iter().map(|right| right.subject.as_str()).collect()
}

const CHECKS: [&str; 3] = ["$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.*"];

#[test]
fn the_api_publishes_blocks_reads_history_and_handles_dead_letters() {
    let own = rights(Role::Api, |_| ());
    let more = [
        "$JS.API.CONSUMER.INFO.*.*",
        "wh.ingest.>",
        "$JS.API.DIRECT.GET.WH_HISTORY",
        "$JS.API.DIRECT.GET.WH_DLQ",
        "$JS.API.STREAM.MSG.DELETE.WH_DLQ",
    ];
    assert_eq!(subjects(&own.publish), [&CHECKS[..], &more].concat());
    assert_eq!(subjects(&own.subscribe), ["_INBOX_wh.>", "wh.hist.>", "wh.done.>"]);
}

#[test]
fn ingest_pulls_settles_parks_announces_and_keeps_leases() {
    let own = rights(Role::Ingest, |c| c.shards = 1);
    let more = [
        "$JS.API.CONSUMER.LIST.*",
        "$JS.API.CONSUMER.INFO.*.*",
        "wh.ingest.>",
        "wh.dlq.>",
        "wh.done.>",
        "$JS.API.DIRECT.GET.WH_HISTORY",
        "$JS.API.DIRECT.GET.WH_DLQ",
        "$JS.API.STREAM.MSG.DELETE.WH_DLQ",
        "$JS.API.CONSUMER.MSG.NEXT.*.wh-ingest-0",
        "$JS.API.CONSUMER.UNPIN.*.wh-ingest-0",
        "$JS.API.CONSUMER.RESET.*.wh-ingest-0",
        "$JS.ACK.*.wh-ingest-0.>",
        "$JS.ACK.*.*.*.wh-ingest-0.>",
        "$KV.wh_coord.lease.>",
        "$JS.API.DIRECT.GET.KV_wh_coord.$KV.wh_coord.lease.>",
        "$JS.API.DIRECT.GET.KV_wh_coord",
    ];
    assert_eq!(subjects(&own.publish), [&CHECKS[..], &more].concat());
    assert_eq!(subjects(&own.subscribe), ["_INBOX_wh.>", "$KV.wh_coord.lease.>"]);
}

#[test]
fn both_roles_have_what_either_has() {
    let both = rights(Role::Both, |_| ());
    for role in [Role::Api, Role::Ingest] {
        let own = rights(role, |_| ());
        let has = |all: &[Right], part: &[Right]| subjects(part).iter().all(|s| subjects(all).contains(s));
        assert!(has(&both.publish, &own.publish) && has(&both.subscribe, &own.subscribe), "{role}");
    }
    assert_eq!(both.publish.len(), 5 + 6 + 2 * 5 + 3);
}

#[test]
fn without_the_right_to_delete_dead_letters_nothing_deletes() {
    for role in Role::ALL {
        let own = rights(role, |c| c.dlq_delete = false);
        assert!(!subjects(&own.publish).iter().any(|s| s.contains("DELETE")), "{role}");
        assert!(own.made_by().ends_with(" --no-dlq-delete"), "{}", own.made_by());
    }
}

#[test]
fn under_a_domain_every_line_of_the_api_stands_in_both_forms() {
    for role in Role::ALL {
        let own = rights(role, |c| c.js_domain = Some("hub".into()));
        let all = subjects(&own.publish);
        for plain in all.iter().filter_map(|subject| subject.strip_prefix("$JS.API.")) {
            assert!(all.contains(&format!("$JS.hub.API.{plain}").as_str()), "{plain}");
        }
        assert_eq!(all.contains(&"$JS.hub.API.$KV.wh_coord.lease.>"), role.ingests());
    }
}

#[test]
fn no_role_may_make_change_or_take_what_is_not_its_own() {
    let refused = [
        "STREAM.CREATE.>",
        "STREAM.UPDATE.>",
        "STREAM.DELETE.>",
        "STREAM.PURGE.>",
        "STREAM.MSG.GET.>",
        "STREAM.MSG.DELETE.WH_INGEST_0",
        "STREAM.MSG.DELETE.WH_HISTORY",
        "CONSUMER.CREATE.>",
        "CONSUMER.DURABLE.CREATE.>",
        "CONSUMER.DELETE.>",
        "CONSUMER.PAUSE.>",
        "CONSUMER.MSG.NEXT.WH_HISTORY.x",
        "CONSUMER.MSG.NEXT.*.other-0",
        "DIRECT.GET.KV_other",
    ];
    for domain in [None, Some("hub".to_owned())] {
        for role in Role::ALL {
            let own = rights(role, |c| c.js_domain.clone_from(&domain));
            for api in ["$JS.API", "$JS.hub.API"] {
                for subject in refused.map(|subject| format!("{api}.{subject}")) {
                    let covers = own.publish.iter().find(|right| overlap(&right.subject, &subject));
                    assert_eq!(covers, None, "{role} {subject}");
                }
            }
            for subject in ["wh.hist.>", "$KV.other.>", "$KV.wh_coord.x.>", "_INBOX.>", "$SYS.>"] {
                assert!(!own.publish.iter().any(|right| overlap(&right.subject, subject)), "{role} {subject}");
            }
            assert!(!own.subscribe.iter().any(|right| overlap(&right.subject, "_INBOX.x")), "{role}");
        }
    }
}

#[test]
fn every_line_is_printed_with_what_needs_it() {
    for role in Role::ALL {
        let own = rights(role, |_| ());
        for format in [RightsFormat::Nats, RightsFormat::Helm] {
            let text = own.print(format);
            for right in own.publish.iter().chain(&own.subscribe) {
                let (subject, why) = (format!("\"{}\"", right.subject), format!("# {}", right.why));
                assert!(text.lines().any(|line| line.contains(&subject) && line.ends_with(&why)), "{subject} {why}");
            }
        }
    }
}

#[test]
fn the_values_are_yaml_that_holds_the_rights() {
    let own = rights(Role::Ingest, |_| ());
    // the chart's own marks for a variable are no YAML text, but a plain scalar
    let values: serde_json::Value = serde_yaml::from_str(&own.print(RightsFormat::Helm)).unwrap();
    let user = &values["config"]["merge"]["accounts"]["WAVEHOUSE"]["users"][0];
    assert_eq!(
        (&user["user"], &user["password"]),
        (&"wavehouse-ingest".into(), &"<< $WAVEHOUSE_INGEST_PASSWORD >>".into())
    );
    let allowed = user["permissions"]["publish"]["allow"].as_array().unwrap();
    assert_eq!(allowed.iter().map(|s| s.as_str().unwrap()).collect::<Vec<_>>(), subjects(&own.publish));
}
