//! The type model: one variant for each family that JSON input treats alike.

/// A named part of a `Tuple` or `Nested`.
#[derive(Clone, Debug, PartialEq)]
pub struct Nested {
    /// Its name; `None` in an unnamed tuple.
    pub name: Option<String>,
    /// Its type.
    pub ty: Type,
}

/// A column's type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Type {
    /// `Int8`–`Int256`, `UInt8`–`UInt256`.
    Int {
        /// Whether it has negatives.
        signed: bool,
        /// 8, 16, 32, 64, 128 or 256.
        bits: u16,
    },
    /// `Float32`, `Float64`, `BFloat16`.
    Float {
        /// 16 (the brain float), 32 or 64.
        bits: u16,
    },
    /// `Decimal(P, S)` and its short forms.
    Decimal {
        /// Digits in all.
        precision: u16,
        /// Digits after the point.
        scale: u16,
    },
    /// `Bool`.
    Bool,
    /// `String`.
    String,
    /// `FixedString(N)`, N in bytes.
    FixedString(u64),
    /// `UUID`.
    Uuid,
    /// `IPv4`.
    Ipv4,
    /// `IPv6`.
    Ipv6,
    /// `Date`, 1970–2149.
    Date,
    /// `Date32`, 1900–2299.
    Date32,
    /// `DateTime`, with its zone where it has one.
    DateTime(Option<String>),
    /// `DateTime64(P, zone)`.
    DateTime64 {
        /// Digits of the fraction, 0–9.
        precision: u8,
        /// Its zone where it has one.
        zone: Option<String>,
    },
    /// `Time`.
    Time,
    /// `Time64(P)`.
    Time64(u8),
    /// `IntervalSecond` and the like, by name: a whole number.
    Interval(String),
    /// `Enum8` and `Enum16`.
    Enum {
        /// 8 or 16.
        bits: u16,
        /// Names and their numbers.
        values: Vec<(String, i16)>,
    },
    /// `Nullable(T)`.
    Nullable(Box<Type>),
    /// `LowCardinality(T)`.
    LowCardinality(Box<Type>),
    /// `Array(T)`.
    Array(Box<Type>),
    /// `Map(K, V)`.
    Map(Box<Type>, Box<Type>),
    /// `Tuple(...)`.
    Tuple(Vec<Nested>),
    /// `Nested(...)`: an array of named tuples.
    Nested(Vec<Nested>),
    /// `JSON(...)` and the older `Object('json')`; the arguments as text.
    Json(String),
    /// `Variant(...)`.
    Variant(Vec<Type>),
    /// `Dynamic(...)`.
    Dynamic,
    /// `Point`, `Ring`, `LineString`, `MultiLineString`, `Polygon`, `MultiPolygon`, by name.
    Geo(String),
    /// `SimpleAggregateFunction(f, T)`: takes what T takes.
    Simple(Box<Type>),
    /// `AggregateFunction(...)`: a state, as text.
    Aggregate(String),
    /// `Nothing`.
    Nothing,
    /// A type this model does not know, as text.
    Opaque(String),
}

impl Type {
    /// Reads a type as ClickHouse writes it. What is not understood is [`Type::Opaque`], never an error.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        super::parse::parse(text, 0)
    }

    /// Whether NULL is one of its values.
    #[must_use]
    pub fn nullable(&self) -> bool {
        match self {
            Self::Nullable(_) | Self::Variant(_) | Self::Dynamic => true,
            Self::Geo(name) => name == "Geometry",
            Self::LowCardinality(inner) | Self::Simple(inner) => inner.nullable(),
            Self::Int { .. }
            | Self::Float { .. }
            | Self::Decimal { .. }
            | Self::Bool
            | Self::String
            | Self::FixedString(_)
            | Self::Uuid
            | Self::Ipv4
            | Self::Ipv6
            | Self::Date
            | Self::Date32
            | Self::DateTime(_)
            | Self::DateTime64 { .. }
            | Self::Time
            | Self::Time64(_)
            | Self::Interval(_)
            | Self::Enum { .. }
            | Self::Array(_)
            | Self::Map(..)
            | Self::Tuple(_)
            | Self::Nested(_)
            | Self::Json(_)
            | Self::Aggregate(_)
            | Self::Nothing
            | Self::Opaque(_) => false,
        }
    }
}
