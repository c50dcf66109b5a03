//! What a condition is of one row: SQL's three truths, and a fourth where it is not known here. Pure.

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Truth {
    True,
    False,
    /// SQL's NULL: it neither holds nor does its opposite.
    Null,
    /// What ClickHouse would say is not known: any of the three.
    Unknown,
}

impl Truth {
    pub(super) fn of(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }

    pub(super) fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Null | Self::Unknown => self,
        }
    }

    /// All of them hold. No more are looked at than are needed.
    pub(super) fn all(each: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::True;
        for one in each {
            all = match (all, one) {
                (_, Self::False) => return Self::False,
                (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
                (Self::Null, _) | (_, Self::Null) => Self::Null,
                _ => Self::True,
            };
        }
        all
    }

    /// One of them holds.
    pub(super) fn any(each: impl IntoIterator<Item = Self>) -> Self {
        Self::all(each.into_iter().map(Self::not)).not()
    }
}

#[cfg(test)]
mod tests {
    use super::Truth::{False, Null, True, Unknown};
    use super::*;

    const EVERY: [Truth; 4] = [True, False, Null, Unknown];

    /// What an unknown truth may turn out to be.
    fn may_be(truth: Truth) -> Vec<Truth> {
        if truth == Unknown { vec![True, False, Null] } else { vec![truth] }
    }

    #[test]
    fn groups_are_sqls_and_never_surer_than_their_parts() {
        assert_eq!(Truth::all([True, Null, False]), False);
        assert_eq!(Truth::all([True, Null]), Null);
        assert_eq!(Truth::any([Null, True]), True);
        assert_eq!(Truth::any([Null, False]), Null);
        assert_eq!((Truth::all([]), Truth::any([])), (True, False));
        for one in EVERY {
            for other in EVERY {
                let groups: [fn([Truth; 2]) -> Truth; 2] = [|each| Truth::all(each), |each| Truth::any(each)];
                for group in groups {
                    let said = group([one, other]);
                    for (one, other) in
                        may_be(one).into_iter().flat_map(|one| may_be(other).into_iter().map(move |other| (one, other)))
                    {
                        assert!(may_be(said).contains(&group([one, other])), "{one:?} {other:?}: {said:?}");
                    }
                }
            }
        }
    }
}
