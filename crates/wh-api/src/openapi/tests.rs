//! The document is whole, current, and of the paths there are.

use super::openapi_json;
use crate::codes;
use serde_json::Value;
use std::collections::BTreeSet;

/// Other names of paths that are in it, and paths that are not for clients to be generated from.
const ABSENT: &[&str] = &["/healthz", "/health", "/ready"];

#[test]
fn the_document_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let there = std::fs::read_to_string(path).unwrap_or_default();
    let how = "docs/openapi.json is stale: cargo run -p wh-api --example openapi_doc -- docs/openapi.json";
    assert!(there == openapi_json(), "{how}");
}

#[test]
fn it_has_the_paths_there_are() {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let told: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone())))
        .collect();
    // the table of routes, as it is written
    let source = include_str!("../api.rs");
    let routes: BTreeSet<(String, String)> = source
        .lines()
        .filter_map(|line| {
            let (path, rest) = line.trim().strip_prefix(".route(\"")?.split_once("\", ")?;
            let method = rest.strip_prefix("compressed(").unwrap_or(rest).split_once('(')?.0;
            let ours = !ABSENT.contains(&path)
                && !path.starts_with("/v1/ops/dead-letters")
                && !path.starts_with("/v1/ops/dlq");
            ours.then(|| (path.to_owned(), method.to_owned()))
        })
        .collect();
    assert_eq!(told, routes);
}

#[test]
fn every_reference_leads_somewhere_and_every_code_is_named() {
    let document: Value = serde_json::from_str(openapi_json()).unwrap();
    let schemas = &document["components"]["schemas"];
    let references = openapi_json().split("\"#/components/schemas/").skip(1);
    for name in references.map(|rest| rest.split('"').next().unwrap()) {
        assert!(schemas[name].is_object(), "{name}");
    }
    let listed = schemas["Problem"]["properties"]["code"]["enum"].as_array().unwrap();
    assert_eq!(listed.len(), codes::ALL.len());
    assert_eq!(schemas["IngestProblem"]["allOf"].as_array().unwrap().len(), 2);
    let statuses = document["paths"]["/v1/ingest"]["post"]["responses"].as_object().unwrap();
    assert_eq!(
        statuses.keys().collect::<Vec<_>>(),
        ["200", "202", "207", "400", "401", "404", "408", "409", "413", "415", "501", "503"]
    );
}
