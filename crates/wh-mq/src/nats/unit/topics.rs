//! The tables that a unit's blocks were of lately, by what their subjects say: a name is checked and kept once, not with
//! each block. Pure.

use crate::nats::envelope::{self, Unreadable};
use std::collections::HashMap;
use wh_types::TopicKey;

/// Most that are remembered. Beyond that all are forgotten: a unit of more tables costs what it did without them.
const KEPT: usize = 4_096;

/// Subjects and their tables.
#[derive(Debug, Default)]
pub(super) struct Topics(HashMap<Box<str>, TopicKey>);

impl Topics {
    /// The table that a subject's tail names.
    ///
    /// # Errors
    /// [`Unreadable`]: it names none.
    pub(super) fn of(&mut self, tail: &str) -> Result<&TopicKey, Unreadable> {
        if !self.0.contains_key(tail) {
            let key = envelope::topic(tail)?;
            if self.0.len() >= KEPT {
                self.0.clear();
            }
            self.0.insert(tail.into(), key);
        }
        self.0.get(tail).ok_or_else(|| Unreadable { field: "subject", problem: "it is not known".to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_known_again_and_what_names_none_is_not_remembered() {
        let mut topics = Topics::default();
        let first = topics.of("acme.t").unwrap().clone();
        assert_eq!((first.tenant().as_str(), first.table().as_str()), ("acme", "t"));
        assert_eq!(topics.of("acme.t").unwrap(), &first);
        assert_eq!(topics.of("a.b.c.d").unwrap_err().field, "subject");
        assert_eq!(topics.0.len(), 1);
    }

    #[test]
    fn it_is_bounded() {
        let mut topics = Topics::default();
        for n in 0..3 * KEPT {
            assert_eq!(topics.of(&format!("acme.t{n}")).unwrap().table().as_str(), format!("t{n}"));
            assert!(topics.0.len() <= KEPT);
        }
    }
}
