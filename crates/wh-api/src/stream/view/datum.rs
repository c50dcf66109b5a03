//! A value as it is stored, as far as comparing it needs. Pure.

use super::number::Number;
use std::{borrow::Cow, cmp::Ordering, hash::Hash, hash::Hasher};

/// A value of one of the families of types; two of one column are of one kind, or NULL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Datum<'t> {
    Null,
    Number(Number<'t>),
    Real(Real),
    /// Compared by its bytes.
    Text(Cow<'t, [u8]>),
    /// What is a whole number underneath: days, nanoseconds, addresses, numbers of an enumeration.
    Place(i128),
}

impl Datum<'_> {
    /// An unsigned number of 128 bits, in the order of such.
    pub(super) fn unsigned(value: u128) -> Self {
        Self::Place((value ^ (1 << 127)).cast_signed())
    }

    pub(super) fn owned(self) -> Datum<'static> {
        match self {
            Self::Null => Datum::Null,
            Self::Number(number) => Datum::Number(number.owned()),
            Self::Real(real) => Datum::Real(real),
            Self::Text(text) => Datum::Text(Cow::Owned(text.into_owned())),
            Self::Place(place) => Datum::Place(place),
        }
    }
}

/// A float that is a number. Both zeros are one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Real(f64);

impl Real {
    /// `None`: it is no number, or infinite.
    pub(super) fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value + 0.0))
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Real {}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Real {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Hash for Real {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_kind_have_their_order() {
        let real = |value| Datum::Real(Real::new(value).unwrap());
        assert_eq!(real(-0.0), real(0.0));
        assert!(real(-1.0) < real(0.0) && real(0.1) < real(0.2));
        assert_eq!((Real::new(f64::NAN), Real::new(f64::INFINITY)), (None, None));
        assert!(Datum::unsigned(1 << 127) > Datum::unsigned(1));
        assert!(Datum::Text(b"a"[..].into()) < Datum::Text(b"ab"[..].into()));
    }
}
