//! A program that does one part of the work, whatever a configuration that others share says.

use crate::{Finding, Origin, layers::Values, value::Parsed};

const PATH: &str = "roles";

/// A program and its roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// What it is called.
    pub name: &'static str,
    /// What it does, in the words of the key `roles`.
    pub roles: &'static [&'static str],
}

impl Program {
    /// Puts its roles in the place of what was given, and says where that was something else.
    pub(crate) fn fix(self, values: &mut Values) -> Option<Finding> {
        let own: Vec<String> = self.roles.iter().map(|role| (*role).to_owned()).collect();
        let given = values.insert(PATH, (Parsed::Words(own), Origin::Program(self.name)));
        let Some((Parsed::Words(words), origin)) = given.filter(|(_, origin)| *origin != Origin::Default) else {
            return None;
        };
        let same = words.len() == self.roles.len() && words.iter().all(|word| self.roles.contains(&word.as_str()));
        let hint = "leave it out, or run wavehouse, which does what it says";
        (!same).then(|| {
            Finding::error(
                PATH,
                format!("says {} in {origin}, but {} is {} only", words.join(","), self.name, self.roles.join(",")),
            )
            .hint(hint)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const API: Program = Program { name: "wavehouse-api", roles: &["api"] };

    fn fixed(given: &[&str], origin: Origin) -> (Vec<String>, Option<String>) {
        let words = given.iter().map(|word| (*word).to_owned()).collect();
        let mut values = Values::from([(PATH, (Parsed::Words(words), origin))]);
        let finding = API.fix(&mut values).map(|finding| finding.to_string());
        let Some((Parsed::Words(now), _)) = values.remove(PATH) else { panic!("roles are words") };
        (now, finding)
    }

    #[test]
    fn its_roles_are_its_own_and_others_are_refused_when_somebody_gave_them() {
        let file = || Origin::File("config.yaml".into());
        assert_eq!(fixed(&["api", "ingest", "sweeper"], Origin::Default), (vec!["api".into()], None));
        assert_eq!(fixed(&["api"], file()), (vec!["api".into()], None));
        let (roles, finding) = fixed(&["ingest"], file());
        let finding = finding.unwrap();
        assert_eq!(roles, ["api"]);
        assert!(finding.starts_with("roles: says ingest in config.yaml, but wavehouse-api is api only"), "{finding}");
    }
}
