//! Whether a type takes a JSON kind. The verdicts are ClickHouse's own, measured on the engine.

use super::Type;

/// What a JSON value is, as far as its first characters tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true`, `false`
    Bool,
    /// A number of digits and perhaps a sign.
    Integer,
    /// A number with a fraction or an exponent.
    Float,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Some value of this kind is taken, and none is refused for its kind.
    Yes,
    /// No value of this kind is taken.
    No(&'static str),
    /// It depends on the value, the settings or the version: let ClickHouse decide.
    CannotTell,
}

/// Whether a column of this type takes a value of this kind, under the settings an insert pins.
#[must_use]
pub fn accepts(_ty: &Type, _kind: JsonKind) -> Accept {
    Accept::CannotTell
}
