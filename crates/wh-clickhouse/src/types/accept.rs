//! Whether a type takes a JSON kind. The verdicts are ClickHouse's own: a test holds them against the engine, and where
//! 24.8, 26.7 and 26.9 disagree the verdict is "cannot tell".

use super::Type;

/// What a JSON value is, as far as its spelling tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true`, `false`
    Bool,
    /// A number of digits, perhaps with a minus.
    Integer,
    /// A number with a fraction or an exponent, whatever its value.
    Float,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonKind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Null, Self::Bool, Self::Integer, Self::Float, Self::String, Self::Array, Self::Object];

    /// The kind of a value that is valid JSON; `None` for an empty text.
    #[must_use]
    pub fn of(value: &[u8]) -> Option<Self> {
        Some(match value.trim_ascii_start().first()? {
            b'n' => Self::Null,
            b't' | b'f' => Self::Bool,
            b'"' => Self::String,
            b'[' => Self::Array,
            b'{' => Self::Object,
            _ if value.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => Self::Float,
            _ => Self::Integer,
        })
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Integer => "a whole number",
            Self::Float => "a number with a fraction or an exponent",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Some value of this kind is taken, and none is refused for its kind. One may be for its content.
    Yes,
    /// No value of this kind is taken: this is what the type wants instead.
    No(&'static str),
    /// It depends on the settings or the version: let ClickHouse decide.
    CannotTell,
}

/// Whether a column of this type takes a value of this kind, under the settings that an insert pins. `null` for a type
/// without NULL is taken: ClickHouse stores the default, which strict callers refuse
/// ([`Column::nullable`](crate::Column::nullable)); only where that default would be unreadable the answer is no.
#[must_use]
pub fn accepts(ty: &Type, kind: JsonKind) -> Accept {
    use Accept::{CannotTell, No, Yes};
    use JsonKind::{Array, Bool, Float, Integer, Null, Object, String};
    let only = |kinds: &[JsonKind], wants| if kinds.contains(&kind) { Yes } else { No(wants) };
    match (ty, kind) {
        (Type::Nullable(inner) | Type::LowCardinality(inner) | Type::Simple(inner), kind) => match (ty, kind) {
            (Type::Nullable(_), Null) => Yes,
            _ => accepts(inner, kind),
        },
        // ClickHouse would take it and store 0, and no query could read the column again
        (Type::Enum { values, .. }, Null) if !values.iter().any(|(_, number)| *number == 0) => {
            No("a name of the enumeration: null would store a value it does not have")
        }
        (Type::Opaque(_) | Type::Nothing, _) => CannotTell,
        (_, Null) => Yes,
        (Type::String | Type::Dynamic, _) => Yes,
        (Type::Int { .. } | Type::Interval(_), _) => {
            only(&[Bool, Integer, String], "a whole number, without fraction and exponent")
        }
        (Type::Float { .. }, _) => only(&[Bool, Integer, Float, String], "a number"),
        (Type::Decimal { .. }, _) => only(&[Integer, Float, String], "a number"),
        (Type::Bool, _) => only(&[Bool, Integer], "true, false, 0 or 1"),
        (Type::FixedString(_), _) => only(&[String], "a string"),
        (Type::Uuid, _) => only(&[String], "a string with a UUID"),
        (Type::Ipv4 | Type::Ipv6, _) => only(&[String], "a string with an IP address"),
        // days since 1970: not before 25
        (Type::Date | Type::Date32, Bool | Integer) => CannotTell,
        (Type::Date | Type::Date32, _) => only(&[String], "a string with a date"),
        // fractions of a second: not before 26.8
        (Type::DateTime(_) | Type::DateTime64 { .. }, Float) => CannotTell,
        (Type::DateTime(_) | Type::DateTime64 { .. }, _) => only(&[Integer, String], "a string with a date and time"),
        (Type::Time | Type::Time64(_), _) => only(&[Integer, String], "a string with a time, or a whole number"),
        (Type::Enum { .. }, _) => only(&[Integer, String], "a name of the enumeration, or its number"),
        (Type::Array(_) | Type::Nested(_), _) => only(&[Array], "an array"),
        (Type::Map(..), _) => only(&[Object], "an object"),
        (Type::Tuple(members), _) if members.first().is_some_and(|member| member.name.is_some()) => match kind {
            Object => Yes,
            // with input_format_json_named_tuples_as_objects=0 an array is wanted
            Array => CannotTell,
            Null | Bool | Integer | Float | String => No("an object"),
        },
        (Type::Tuple(_), _) => only(&[Array], "an array"),
        // early versions of the type took an object in a string
        (Type::Json(_), String) => CannotTell,
        (Type::Json(_), _) => only(&[Object], "an object"),
        (Type::Variant(types), kind) => {
            let verdicts = || types.iter().map(|ty| accepts(ty, kind));
            if verdicts().any(|verdict| verdict == Yes) {
                Yes
            } else if verdicts().any(|verdict| verdict == CannotTell) {
                CannotTell
            } else {
                No("a value of one of its types")
            }
        }
        (Type::Geo(_), _) => only(&[Array], "an array of coordinates"),
        (Type::Aggregate(_), String) => CannotTell,
        (Type::Aggregate(_), _) => No("a state in a string"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_spelling() {
        for (text, kind) in [
            ("null", JsonKind::Null),
            (" true", JsonKind::Bool),
            ("false", JsonKind::Bool),
            ("-12", JsonKind::Integer),
            ("1.0", JsonKind::Float),
            ("1E5", JsonKind::Float),
            ("\"1\"", JsonKind::String),
            ("[1.5]", JsonKind::Array),
            ("{\"e\":1}", JsonKind::Object),
        ] {
            assert_eq!(JsonKind::of(text.as_bytes()), Some(kind), "{text}");
        }
        assert_eq!(JsonKind::of(b" "), None);
    }

    #[test]
    fn wrappers_are_transparent_but_for_null() {
        let verdict = |ty: &str, kind| accepts(&Type::parse(ty), kind);
        assert_eq!(verdict("LowCardinality(Nullable(UUID))", JsonKind::String), Accept::Yes);
        assert!(matches!(verdict("LowCardinality(Nullable(UUID))", JsonKind::Integer), Accept::No(_)));
        assert_eq!(verdict("Nullable(Enum8('a' = 1))", JsonKind::Null), Accept::Yes);
        assert!(matches!(verdict("Enum8('a' = 1)", JsonKind::Null), Accept::No(_)));
        assert_eq!(verdict("Enum8('a' = 0)", JsonKind::Null), Accept::Yes);
        assert_eq!(verdict("Variant(UUID, Array(Int8))", JsonKind::Array), Accept::Yes);
        assert!(matches!(verdict("Variant(UUID, Array(Int8))", JsonKind::Object), Accept::No(_)));
        assert_eq!(verdict("QBit(Float32, 2)", JsonKind::Object), Accept::CannotTell);
    }
}
