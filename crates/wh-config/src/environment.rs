//! The environment as a layer: the variables that begin with `WH_`. The process's own is read here and nowhere else.

use crate::{finding::Finding, layers::insert, nearest::unknown_variable, table::KEYS};
use figment::value::{Dict, Value};
use std::{collections::BTreeMap, ffi::OsString};

/// Variables that begin with `WH_`, by name.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, Option<String>>);

/// Names the file; not a key itself.
pub(crate) const CONFIG: &str = "WH_CONFIG";

impl Environment {
    /// The process's own.
    #[must_use]
    pub fn of_process() -> Self {
        Self::from_os(std::env::vars_os())
    }

    /// Variables given by a caller; those that do not begin with `WH_` are left out.
    pub fn new<N: Into<String>, V: Into<String>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        Self::from_os(variables.into_iter().map(|(name, value)| (name.into().into(), value.into().into())))
    }

    fn from_os(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let ours = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok())));
        Self(ours.filter(|(name, _)| name.starts_with("WH_")).collect())
    }

    /// A variable's text.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_deref()
    }

    /// The keys that variables give, and what is wrong with the other variables.
    pub(crate) fn keys(&self) -> (Dict, Vec<Finding>) {
        let bound: BTreeMap<String, &str> = KEYS.iter().map(|key| (key.variable(), key.path)).collect();
        let (mut dict, mut findings) = (Dict::new(), Vec::new());
        for (name, value) in &self.0 {
            match (bound.get(name), value) {
                (Some(path), Some(text)) => insert(&mut dict, path, Value::from(text.as_str())),
                (Some(_), None) => findings.push(Finding::error(name, "is not UTF-8")),
                (None, _) if name == CONFIG => {}
                (None, text) => findings.push(match service_link(name, text.as_deref().unwrap_or_default()) {
                    Some(hint) => Finding::error(name, "is no variable of ours").hint(hint),
                    None => unknown_variable(name),
                }),
            }
        }
        (dict, findings)
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// What to say when a variable is one that Kubernetes sets for a Service whose name begins with `wh`.
pub(crate) fn service_link(name: &str, value: &str) -> Option<&'static str> {
    let by_value = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    let by_name = name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| {
            name.split_once("_PORT_").is_some_and(|(_, rest)| {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                digits > 0 && rest[digits..].starts_with(protocol)
            })
        });
    (by_value || by_name).then_some(
        "Kubernetes sets it for a Service whose name begins with \"wh\": set enableServiceLinks: false in the pod, or \
         name the Service otherwise",
    )
}
