//! The judge against the engine: every type, hundreds of values each.
//!
//! For each value: what the engine does with the raw record under the settings that an insert pins, against the judge's
//! verdict and against what the API answers in both modes; and what is stored through our own path against what is
//! stored for the raw record. Rules:
//!
//! * refused in both modes only what the engine refuses, or stores so that nothing can be read any more;
//! * taken only what the engine takes;
//! * refused in strict mode alone only what the engine refuses or stores as something else;
//! * what we accept is stored as the engine stores the raw record, and nothing of it is refused later that the engine
//!   takes raw;
//! * what is left to the engine is counted by type and printed.
//!
//! Bare numbers for a `DateTime64` are ours (decision D7): they are judged in `shapes.rs`.

mod data;
pub(crate) mod engine;
mod generate;
mod page;
mod subject;

use engine::{Bench, Newer, Served};
use futures::{StreamExt, stream};
use std::{collections::BTreeMap, sync::Arc};
use subject::Finding;

/// Puts every type on an engine, some at once.
async fn all<B: Bench>(bench: B) {
    let bench = Arc::new(bench);
    let findings: Vec<Finding> = stream::iter(data::subjects().into_iter().enumerate())
        .map(|(at, subject)| {
            let bench = Arc::clone(&bench);
            async move { subject::judged(&*bench, at, subject.ty).await }
        })
        .buffer_unordered(4)
        .collect()
        .await;
    let faults: Vec<&String> = findings.iter().flat_map(|finding| &finding.faults).collect();
    let values: usize = findings.iter().map(|finding| finding.values).sum();
    let left: BTreeMap<&str, usize> =
        findings.iter().filter(|f| f.left > 0).map(|finding| (finding.ty, finding.left)).collect();
    assert!(faults.is_empty(), "{} of {values} values: {faults:#?}", faults.len());
    assert!(findings.len() > 80 && values > 15_000, "{values} values for {} types", findings.len());
    let undecided: usize = left.values().sum();
    assert!(undecided * 8 < values, "the judge leaves {undecided} of {values} values to the engine: {left:#?}");
    wh_testkit::say(&format!("{}: {values} values; left to the engine: {left:?}", bench.name()));
}

#[tokio::test]
async fn verdicts_and_stored_values_are_the_engines() {
    all(Served::new().await).await;
}

#[tokio::test]
async fn verdicts_and_stored_values_are_the_newer_engines() {
    all(Newer::new().await).await;
}
