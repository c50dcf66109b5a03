//! The rules on crates. Pure.

use super::{
    read::{Crate, Dependency},
    table::{HOMES, Layer, NAMES_NO_BACKEND, PORTS, layer},
};
use crate::finding::Finding;

/// Everything that is wrong.
pub(super) fn check(crates: &[Crate]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for own in crates {
        let mut say = |text: String| findings.push(Finding::of(&own.name, text));
        let Some(level) = layer(&own.name) else {
            say("stands in no layer: add it to ARCHITECTURE.md and to xtask/src/layers/table.rs".into());
            continue;
        };
        for dependency in &own.dependencies {
            if let Some(theirs) = layer(&dependency.name) {
                if let Err(reason) = allowed(level, theirs, dependency.dev) {
                    say(format!("must not depend on {}: {reason}", dependency.name));
                }
                if theirs == PORTS
                    && let Err(reason) = without_backend(own, level, dependency)
                {
                    say(format!("{}: {reason}", dependency.name));
                }
            }
            if let Some(homes) = homes_of(&dependency.name)
                && !homes.contains(&own.name.as_str())
            {
                say(format!("must not depend on {}, whose home is {}", dependency.name, homes.join(", ")));
            }
        }
    }
    findings
}

fn allowed(own: Layer, theirs: Layer, dev: bool) -> Result<(), &'static str> {
    match (own, theirs) {
        (_, Layer::Top | Layer::Tools) => Err("nobody depends on binaries, examples, tests and tools"),
        (Layer::Tools, _) | (Layer::Top, Layer::Level(_)) => Ok(()),
        (Layer::Level(_) | Layer::Top, Layer::TestKit) if dev => Ok(()),
        (_, Layer::TestKit) => Err("the test kit is for dev-dependencies"),
        (Layer::TestKit, Layer::Level(0)) => Ok(()),
        (Layer::TestKit, Layer::Level(_)) => {
            Err("the test kit stands on wh-types only, so that every crate can use it")
        }
        (Layer::Level(own), Layer::Level(theirs)) if theirs < own => Ok(()),
        (Layer::Level(own), Layer::Level(theirs)) if theirs == own => Err("crates of one layer do not know each other"),
        (Layer::Level(_), Layer::Level(_)) => Err("dependencies go down"),
    }
}

/// Below wh-app nobody turns on a backend, and L3 and wh-config could not even name one.
fn without_backend(own: &Crate, level: Layer, port: &Dependency) -> Result<(), String> {
    if port.dev || !matches!(level, Layer::Level(0..=4)) {
        return Ok(());
    }
    if !port.features.is_empty() {
        return Err(format!("turns on {}, which only wh-app and an embedding user may do", port.features.join(", ")));
    }
    if !NAMES_NO_BACKEND.contains(&own.name.as_str()) {
        return Ok(());
    }
    if port.default_features {
        return Err("must be taken with default-features = false".into());
    }
    let through = format!("{}/", port.name);
    let optional = format!("{}?/", port.name);
    let names = |value: &&String| value.starts_with(&through) || value.starts_with(&optional);
    match own.features.values().flatten().find(names) {
        Some(feature) => Err(format!("is given the feature {feature} by a feature of {}", own.name)),
        None => Ok(()),
    }
}

fn homes_of(name: &str) -> Option<&'static [&'static str]> {
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    };
    HOMES.iter().find(|(pattern, _)| matches(pattern)).map(|(_, homes)| *homes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depends(own: &str, on: Dependency) -> Vec<String> {
        let own = Crate { name: own.into(), dependencies: vec![on], ..Crate::default() };
        check(&[own]).into_iter().map(|finding| finding.to_string()).collect()
    }

    fn plain(name: &str) -> Dependency {
        Dependency { name: name.into(), ..Dependency::default() }
    }

    fn dev(name: &str) -> Dependency {
        Dependency { dev: true, ..plain(name) }
    }

    #[test]
    fn dependencies_go_down_and_not_sideways() {
        assert_eq!(depends("wh-mq", plain("wh-types")), Vec::<String>::new());
        assert_eq!(depends("wavehouse", plain("wh-app")), Vec::<String>::new());
        assert_eq!(depends("wh-mq", plain("wh-ingest")), ["wh-mq: must not depend on wh-ingest: dependencies go down"]);
        let sideways = ["wh-api: must not depend on wh-ingest: crates of one layer do not know each other"];
        assert_eq!(depends("wh-api", plain("wh-ingest")), sideways);
        assert_eq!(depends("wh-api", dev("wh-ingest")), sideways, "not in tests either");
        assert!(depends("wh-app", plain("xtask"))[0].contains("nobody depends on"));
    }

    #[test]
    fn the_test_kit_is_for_tests_and_stands_on_the_lowest_layer() {
        assert_eq!(depends("wh-clickhouse", dev("wh-testkit")), Vec::<String>::new());
        assert_eq!(depends("procs", plain("wh-testkit")), Vec::<String>::new());
        assert!(depends("wh-clickhouse", plain("wh-testkit"))[0].contains("is for dev-dependencies"));
        assert!(depends("wh-testkit", plain("wh-clickhouse"))[0].contains("stands on wh-types only"));
    }

    #[test]
    fn a_crate_outside_of_the_table_is_a_finding() {
        assert!(depends("wh-new", plain("serde"))[0].contains("stands in no layer"));
    }

    #[test]
    fn l3_and_the_configuration_cannot_name_a_backend() {
        let with_defaults = Dependency { default_features: true, ..plain("wh-mq") };
        assert_eq!(
            depends("wh-config", with_defaults),
            ["wh-config: wh-mq: must be taken with default-features = false"]
        );
        let embedded = |dev| Dependency { dev, features: vec!["embedded".into()], ..plain("wh-mq") };
        assert!(depends("wh-ingest", embedded(false))[0].contains("turns on embedded"));
        assert_eq!(depends("wh-ingest", embedded(true)), Vec::<String>::new(), "a test may");
        assert_eq!(depends("wh-app", embedded(false)), Vec::<String>::new());
        let own = Crate {
            name: "wh-api".into(),
            dependencies: vec![plain("wh-mq")],
            features: [("fast".to_owned(), vec!["wh-mq/embedded".to_owned()])].into(),
        };
        assert!(check(&[own])[0].to_string().contains("the feature wh-mq/embedded by a feature of wh-api"));
    }

    #[test]
    fn a_vendor_outside_of_its_home_is_a_finding() {
        assert_eq!(depends("wh-api", plain("axum")), Vec::<String>::new());
        assert_eq!(
            depends("wh-ingest", plain("axum")),
            ["wh-ingest: must not depend on axum, whose home is wh-api, wh-app"]
        );
        assert!(depends("wh-mq", plain("async-nats"))[0].contains("wh-nats"));
        assert!(depends("wh-mq", dev("aws-sdk-dynamodb"))[0].contains("wh-dedupe"));
    }
}
