//! Which operators a stream decides for which types: the published table. Data.

use crate::query::Op;
use std::fmt::Write;
use wh_clickhouse::types::Type;

/// Types that are compared alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Int,
    Float,
    Decimal,
    Bool,
    String,
    FixedString,
    Uuid,
    Ip,
    Enum,
    Date,
    DateTime,
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) family: Family,
    types: &'static str,
    pub(super) ops: &'static [Op],
    values: &'static str,
}

const EQUAL: &[Op] = &[Op::Eq, Op::Neq, Op::In, Op::IsNull, Op::NotNull];
const ORDERED: &[Op] = &[Op::Eq, Op::Neq, Op::Gt, Op::Gte, Op::Lt, Op::Lte, Op::In, Op::IsNull, Op::NotNull];
/// A list would tell the two zeros apart, and rounds what it lists.
const MEASURED: &[Op] = &[Op::Eq, Op::Neq, Op::Gt, Op::Gte, Op::Lt, Op::Lte, Op::IsNull, Op::NotNull];
const TEXT: &[Op] = &[Op::Eq, Op::Neq, Op::Gt, Op::Gte, Op::Lt, Op::Lte, Op::In, Op::Like, Op::IsNull, Op::NotNull];

pub(super) static PAIRS: &[Pair] = &[
    Pair {
        family: Family::Int,
        types: "`Int8` … `Int256`, `UInt8` … `UInt256`",
        ops: ORDERED,
        values: "whole numbers, also in quotes; all digits count",
    },
    Pair { family: Family::Float, types: "`Float32`, `Float64`", ops: MEASURED, values: "numbers, also in quotes" },
    Pair {
        family: Family::Decimal,
        types: "`Decimal(P, S)`",
        ops: ORDERED,
        values: "numbers without an exponent, also in quotes; all digits count",
    },
    Pair { family: Family::Bool, types: "`Bool`", ops: ORDERED, values: "`true`, `false`, `0`, `1`" },
    Pair {
        family: Family::String,
        types: "`String`",
        ops: TEXT,
        values: "texts, numbers and booleans; compared by bytes",
    },
    Pair {
        family: Family::FixedString,
        types: "`FixedString(N)`",
        ops: ORDERED,
        values: "the same, of at most N bytes",
    },
    Pair { family: Family::Uuid, types: "`UUID`", ops: EQUAL, values: "texts, with or without dashes" },
    Pair { family: Family::Ip, types: "`IPv4`, `IPv6`", ops: ORDERED, values: "texts" },
    Pair { family: Family::Enum, types: "`Enum8`, `Enum16`", ops: EQUAL, values: "names" },
    Pair {
        family: Family::Date,
        types: "`Date`, `Date32`",
        ops: ORDERED,
        values: "`YYYY-MM-DD`, a time, Unix seconds",
    },
    Pair {
        family: Family::DateTime,
        types: "`DateTime`, `DateTime64(P)`, with or without a zone",
        ops: ORDERED,
        values: "RFC 3339, `YYYY-MM-DD hh:mm:ss` in the column's zone, Unix seconds; at most nine digits of fraction",
    },
];

impl Family {
    /// The family of a type, its wrappers aside.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a type that is not named is in no family")]
    pub(super) fn of(ty: &Type) -> Option<Self> {
        if let Type::Nullable(inner) | Type::LowCardinality(inner) = ty {
            return Self::of(inner);
        }
        let float = |bits: &u16| (*bits != 16).then_some(Self::Float);
        match ty {
            Type::Int { .. } => Some(Self::Int),
            Type::Float { bits } => float(bits),
            Type::Decimal { .. } => Some(Self::Decimal),
            Type::Bool => Some(Self::Bool),
            Type::String => Some(Self::String),
            Type::FixedString(_) => Some(Self::FixedString),
            Type::Uuid => Some(Self::Uuid),
            Type::Ipv4 | Type::Ipv6 => Some(Self::Ip),
            Type::Enum { .. } => Some(Self::Enum),
            Type::Date | Type::Date32 => Some(Self::Date),
            Type::DateTime(_) | Type::DateTime64 { .. } => Some(Self::DateTime),
            _ => None,
        }
    }

    /// Whether a stream decides this.
    pub(super) fn has(self, op: Op) -> bool {
        PAIRS.iter().any(|pair| pair.family == self && pair.ops.contains(&op))
    }
}

/// The table as Markdown, as `docs/guide/streams.md` has it.
#[must_use]
pub fn markdown() -> String {
    let mut out = "| Types | Operators | Values |\n|---|---|---|\n".to_owned();
    for pair in PAIRS {
        let ops: Vec<String> = pair.ops.iter().map(|op| format!("`{op}`")).collect();
        let (types, ops, values) = (pair.types, ops.join(", "), pair.values);
        writeln!(out, "| {types} | {ops} | {values} |").unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_seen_through_but_not_the_ones_that_merge_values() {
        let of = |ty: &str| Family::of(&Type::parse(ty));
        assert_eq!(of("LowCardinality(Nullable(String))"), Some(Family::String));
        assert_eq!(of("Nullable(UInt256)"), Some(Family::Int));
        for other in ["SimpleAggregateFunction(sum, Int64)", "Array(Int8)", "BFloat16", "JSON", "Time", "QBit(1)"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert!(Family::String.has(Op::Like) && !Family::Uuid.has(Op::Gt));
    }

    #[test]
    fn the_page_has_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/streams.md");
        let page = std::fs::read_to_string(path).unwrap();
        let how = "the table in docs/guide/streams.md is stale: cargo run -p wh-api --example streams_doc";
        assert!(page.contains(&format!("<!-- pairs -->\n{}<!-- -->\n", markdown())), "{how}");
    }
}
