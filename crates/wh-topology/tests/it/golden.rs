//! What stands in `deployments/nats` is what the generator prints. `WH_BLESS=1 cargo test -p wh-topology` writes it.

use std::path::PathBuf;
use wh_topology::{Choices, File, Rights, RightsFormat, Role, Spec, Topology, parse_size, renderer};

/// 4 × 8 on the default volume.
pub(crate) fn deployed() -> Topology {
    let choices = Choices { partitions: 4, shards: 8, ..Choices::default() };
    Topology::new(Spec::new(choices).unwrap()).unwrap()
}

fn deployments() -> PathBuf {
    wh_testkit::workspace::root().unwrap().join("deployments/nats")
}

/// The values of the official chart around the users' rights.
fn values(topology: &Topology) -> String {
    let [api, ingest] = [Role::Api, Role::Ingest].map(|role| Rights::new(&topology.spec, role));
    let users: String = [&api, &ingest]
        .into_iter()
        .map(|rights| {
            let user = rights.role.user();
            let variable = user.to_ascii_uppercase().replace('-', "_");
            let head = format!("          - user: {user}\n            password: << ${variable}_PASSWORD >>\n");
            head + &rights.permissions(12)
        })
        .collect();
    let head = include_str!("values.head.yaml").replace("{api}", api.made_by()).replace("{ingest}", ingest.made_by());
    head + &users + include_str!("values.tail.yaml")
}

fn files() -> Vec<(String, String)> {
    let topology = deployed();
    let one = |format: &str| -> File {
        let mut files = renderer(format).unwrap().render(&topology).unwrap();
        assert_eq!(files.len(), 1, "{format}");
        files.remove(0)
    };
    let (nack, terraform) = (one("nack"), one("terraform"));
    let mut files = vec![
        (format!("nack/{}", nack.name), nack.text),
        (format!("terraform/{}", terraform.name), terraform.text),
        ("helm/values.yaml".to_owned(), values(&topology)),
    ];
    for role in Role::ALL {
        let text = Rights::new(&topology.spec, role).print(RightsFormat::Nats);
        files.push((format!("permissions/{role}.conf"), text));
    }
    files
}

#[test]
fn the_deployed_files_are_what_the_generator_prints() {
    let bless = std::env::var_os("WH_BLESS").is_some();
    for (name, text) in files() {
        let path = deployments().join(&name);
        if bless {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = there.lines().zip(text.lines()).position(|(there, own)| there != own);
        let line = differs.unwrap_or_else(|| there.lines().count().min(text.lines().count())) + 1;
        assert!(
            there == text,
            "deployments/nats/{name} differs in line {line}: run WH_BLESS=1 cargo test -p wh-topology"
        );
    }
}

#[test]
fn the_cluster_of_the_values_holds_what_the_streams_reserve() {
    let topology = deployed();
    let text = std::fs::read_to_string(deployments().join("helm/values.yaml")).unwrap();
    let values: serde_json::Value = serde_yaml::from_str(&text).unwrap();
    let store = &values["config"]["jetstream"]["fileStore"];
    let volume = parse_size(store["pvc"]["size"].as_str().unwrap()).unwrap();
    assert_eq!(volume, topology.sizes.file_store);

    // every server may come to hold a copy of every stream
    let reserved: i64 = topology.streams().iter().map(|stream| stream.max_bytes.max(0)).sum();
    assert_eq!(u64::try_from(reserved).unwrap(), topology.sizes.reserved);
    assert!(topology.sizes.reserved <= volume, "{} of {volume}", topology.sizes.reserved);
    assert!(topology.sizes.reserved * 100 <= volume * 75, "a quarter is left for Raft logs and the bucket");
    let servers = values["config"]["cluster"]["replicas"].as_u64().unwrap();
    assert!(topology.streams().iter().all(|stream| u64::from(stream.num_replicas) <= servers));

    let users = values["config"]["merge"]["accounts"]["WAVEHOUSE"]["users"].as_array().unwrap();
    let names: Vec<_> = users.iter().map(|user| user["user"].as_str().unwrap()).collect();
    assert_eq!(names, ["nack", "wavehouse-api", "wavehouse-ingest"]);
    for (user, role) in users[1..].iter().zip([Role::Api, Role::Ingest]) {
        let rights = Rights::new(&topology.spec, role);
        for (verb, expected) in [("publish", &rights.publish), ("subscribe", &rights.subscribe)] {
            let allowed: Vec<_> =
                user["permissions"][verb]["allow"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
            assert_eq!(
                allowed,
                expected.iter().map(|right| right.subject.as_str()).collect::<Vec<_>>(),
                "{role} {verb}"
            );
        }
    }
    let image = values["container"]["image"]["tag"].as_str().unwrap();
    assert_eq!(image, format!("{}-alpine", wh_topology::defaults::SERVER));
}
