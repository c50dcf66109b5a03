//! A recorder that bounds how many values a label may have (decision D28): what comes beyond is `other`. Names of tables
//! and tenants come from outside, and each value costs memory for good.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit};
use parking_lot::RwLock;
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
};

/// Puts what comes beyond the bound under this value.
const OTHER: &str = "other";

/// Passes everything on to a recorder, with label values beyond the bound replaced.
pub(crate) struct Bounded<R> {
    inner: R,
    most: usize,
    /// By label, the values that are passed on.
    seen: RwLock<HashMap<String, HashSet<String>>>,
}

impl<R> Bounded<R> {
    /// Each label keeps its first `most` values.
    pub(crate) fn new(inner: R, most: usize) -> Self {
        Self { inner, most, seen: RwLock::default() }
    }

    fn admits(&self, label: &Label) -> bool {
        let known = |seen: &HashMap<String, HashSet<String>>| {
            seen.get(label.key()).map(|values| (values.contains(label.value()), values.len()))
        };
        match known(&self.seen.read()) {
            Some((true, _)) => return true,
            Some((false, values)) if values >= self.most => return false,
            Some(_) | None => {}
        }
        let mut seen = self.seen.write();
        let values = seen.entry(label.key().to_owned()).or_default();
        values.contains(label.value()) || (values.len() < self.most && values.insert(label.value().to_owned()))
    }

    fn key<'a>(&self, key: &'a Key) -> Cow<'a, Key> {
        let labels: Vec<Option<Label>> = key
            .labels()
            .map(|label| (!self.admits(label)).then(|| Label::new(label.key().to_owned(), OTHER)))
            .collect();
        if labels.iter().all(Option::is_none) {
            return Cow::Borrowed(key);
        }
        let labels = key.labels().zip(labels).map(|(label, other)| other.unwrap_or_else(|| label.clone()));
        Cow::Owned(Key::from_parts(key.name().to_owned(), labels.collect::<Vec<_>>()))
    }
}

impl<R: Recorder> Recorder for Bounded<R> {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.inner.describe_counter(key, unit, description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.inner.describe_gauge(key, unit, description);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.inner.describe_histogram(key, unit, description);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.inner.register_counter(&self.key(key), metadata)
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.inner.register_gauge(&self.key(key), metadata)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        self.inner.register_histogram(&self.key(key), metadata)
    }
}

impl<R> fmt::Debug for Bounded<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounded").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics_exporter_prometheus::PrometheusBuilder;

    #[test]
    fn values_beyond_the_bound_are_counted_together() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&Bounded::new(recorder, 2), || {
            for table in ["a", "b", "c", "d", "a"] {
                metrics::counter!("rows_total", "table" => table, "outcome" => "ok").increment(1);
            }
        });
        let page = handle.render();
        for line in [
            r#"rows_total{table="a",outcome="ok"} 2"#,
            r#"rows_total{table="b",outcome="ok"} 1"#,
            r#"rows_total{table="other",outcome="ok"} 2"#,
        ] {
            assert!(page.contains(line), "{line} is not in {page}");
        }
    }
}
