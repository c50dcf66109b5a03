//! A bound on how many values a metric's label takes (decision D28). Knows no metrics library.

use parking_lot::RwLock;
use std::{collections::HashSet, sync::Arc};

/// The value of a label once its cap is reached.
pub const OTHER_LABEL: &str = "other";

/// Lets the first so many values through as they are; later ones become [`OTHER_LABEL`]. A known value stays known.
#[derive(Debug)]
pub struct LabelCap {
    most: usize,
    known: RwLock<HashSet<Arc<str>>>,
}

impl LabelCap {
    /// At most `most` different values.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, known: RwLock::default() }
    }

    /// The value to use.
    #[must_use]
    pub fn get(&self, value: &str) -> Arc<str> {
        if let Some(known) = self.known.read().get(value) {
            return known.clone();
        }
        let mut known = self.known.write();
        // another may have been faster
        if let Some(known) = known.get(value) {
            return known.clone();
        }
        if known.len() >= self.most {
            return OTHER_LABEL.into();
        }
        let value = Arc::<str>::from(value);
        known.insert(value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_stay_and_the_rest_is_other() {
        let cap = LabelCap::new(2);
        assert_eq!((&*cap.get("a"), &*cap.get("b"), &*cap.get("c")), ("a", "b", OTHER_LABEL));
        assert_eq!((&*cap.get("b"), &*cap.get("d")), ("b", OTHER_LABEL));
    }
}
