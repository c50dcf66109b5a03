//! What each format refuses, and that none leaves anything out.

use super::*;
use crate::{Choices, Spec};
use std::time::Duration;

fn topology(change: impl FnOnce(&mut Choices)) -> Topology {
    let mut choices = Choices { partitions: 2, shards: 2, ..Choices::default() };
    change(&mut choices);
    Topology::new(Spec::new(choices).unwrap()).unwrap()
}

#[test]
fn a_format_is_found_by_its_name() {
    for own in RENDERERS {
        assert_eq!(renderer(own.format()).map(Renderer::format), Some(own.format()));
    }
    assert!(renderer("helm").is_none());
}

#[test]
fn nack_refuses_a_prefix_that_no_resource_can_be_called_by() {
    for prefix in ["a_b", "-a", "a-"] {
        let refused = Nack.render(&topology(|c| c.prefix = prefix.into())).unwrap_err();
        assert_eq!(refused.field, "metadata.name", "{prefix}");
    }
    assert!(Nack.render(&topology(|c| c.prefix = "a-b".into())).is_ok());
}

#[test]
fn terraform_refuses_parts_of_seconds_and_domains_by_field() {
    let odd = topology(|c| {
        c.publish_timeout = Duration::from_mins(1);
        c.dedupe_lease = Duration::ZERO;
    });
    let refused = Terraform.render(&odd).unwrap_err();
    assert_eq!((refused.object.as_str(), refused.field), ("WH_INGEST_0", "duplicate_window"));
    assert_eq!(
        refused.to_string(),
        "terraform cannot say duplicate_window of WH_INGEST_0: 180500ms is no whole number of seconds"
    );
    let age = topology(|c| c.history_max_age = Duration::from_millis(1_500));
    assert_eq!(Terraform.render(&age).unwrap_err().field, "max_age");
    let domain = topology(|c| c.js_domain = Some("hub".into()));
    assert_eq!(Terraform.render(&domain).unwrap_err().field, "js_domain");
}

#[test]
fn a_domain_reaches_every_object() {
    let domain = topology(|c| c.js_domain = Some("hub".into()));
    let nack = &Nack.render(&domain).unwrap()[0].text;
    assert_eq!(nack.matches("\n  jsDomain: hub\n").count(), nack.matches("\nkind: ").count());
    let script = NatsCli.render(&domain).unwrap().pop().unwrap();
    assert_eq!(script.text.matches("nats --js-domain=hub ").count(), 6, "{}", script.text);
}

#[test]
fn the_same_topology_gives_the_same_bytes() {
    for renderer in RENDERERS {
        assert_eq!(renderer.render(&topology(|_| ())), renderer.render(&topology(|_| ())));
    }
}

#[test]
fn the_header_says_how_it_was_made() {
    for renderer in RENDERERS {
        let files = renderer.render(&topology(|_| ())).unwrap();
        let text = &files.last().unwrap().text;
        let made = format!(
            "#   wavehouse mq manifests --partitions=2 --shards=2 --prefix=wh --replicas=3 --file-store=100Gi --format={}\n",
            renderer.format()
        );
        assert!(
            text.contains(&made) && text.contains("# Reserved on each server that holds a copy: 45Gi of"),
            "{text}"
        );
    }
}
