//! The aggregate functions that a query may name, and what their results can be compared as. Data.

use crate::types::bare;
use wh_clickhouse::types::Type;

/// An aggregate function.
#[derive(Debug)]
pub(super) struct Function {
    /// As ClickHouse writes it; asked for in any case.
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    gives: Gives,
}

/// What a function is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing, or a column whose values that are not NULL are counted.
    Maybe,
    /// A column.
    One,
    /// A column, and another by which one of its values is chosen.
    Two,
    /// A column and a level from 0 to 1.
    Level,
}

/// The type of a result.
#[derive(Clone, Copy, Debug)]
enum Gives {
    Count,
    Float,
    /// The column's own.
    Same,
    /// One that is wide enough.
    Sum,
    /// The column's own where it is exact, else a float.
    Middle,
    /// One that nothing is compared with.
    List,
}

const fn function(name: &'static str, takes: Takes, gives: Gives) -> Function {
    Function { name, takes, gives }
}

static FUNCTIONS: &[Function] = &[
    function("count", Takes::Maybe, Gives::Count),
    function("sum", Takes::One, Gives::Sum),
    function("avg", Takes::One, Gives::Float),
    function("min", Takes::One, Gives::Same),
    function("max", Takes::One, Gives::Same),
    function("countDistinct", Takes::One, Gives::Count),
    function("uniq", Takes::One, Gives::Count),
    function("uniqExact", Takes::One, Gives::Count),
    function("any", Takes::One, Gives::Same),
    function("anyLast", Takes::One, Gives::Same),
    function("argMin", Takes::Two, Gives::Same),
    function("argMax", Takes::Two, Gives::Same),
    function("groupArray", Takes::One, Gives::List),
    function("median", Takes::One, Gives::Middle),
    function("quantile", Takes::Level, Gives::Middle),
    function("stddevPop", Takes::One, Gives::Float),
    function("stddevSamp", Takes::One, Gives::Float),
    function("varPop", Takes::One, Gives::Float),
    function("varSamp", Takes::One, Gives::Float),
];

impl Function {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// All names, for whoever asked for another.
    pub(super) fn names() -> String {
        FUNCTIONS.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
    }

    /// The type of its result over a column of this type.
    pub(super) fn result(&self, of: Option<&Type>) -> Type {
        let count = Type::Int { signed: false, bits: 64 };
        let float = Type::Float { bits: 64 };
        match (self.gives, of) {
            (Gives::Count, _) => count,
            (Gives::Float, _) | (_, None) => float,
            (Gives::Same, Some(of)) => of.clone(),
            (Gives::Sum, Some(of)) => sum(bare(of)).unwrap_or(float),
            (Gives::Middle, Some(of)) => {
                let exact =
                    matches!(bare(of), Type::Decimal { .. } | Type::Date | Type::DateTime(_) | Type::DateTime64 { .. });
                if exact { of.clone() } else { float }
            }
            (Gives::List, Some(of)) => Type::Array(Box::new(of.clone())),
        }
    }
}

/// A type that holds sums of exact numbers.
fn sum(of: &Type) -> Option<Type> {
    if let Type::Int { signed, bits } = of {
        return Some(Type::Int { signed: *signed, bits: (*bits).max(64) });
    }
    if let Type::Decimal { scale, .. } = of {
        return Some(Type::Decimal { precision: 76, scale: *scale });
    }
    (*of == Type::Bool).then_some(Type::Int { signed: false, bits: 64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_any_case_and_nothing_else_is() {
        assert_eq!(Function::find("COUNTDISTINCT").unwrap().name, "countDistinct");
        for other in ["", "sleep", "count ", "count(", "sumIf"] {
            assert!(Function::find(other).is_none(), "{other}");
        }
        assert!(Function::names().starts_with("count, sum,"));
    }

    #[test]
    fn results_have_the_type_that_they_are_compared_as() {
        let of = |name: &str, ty: &str| Function::find(name).unwrap().result(Some(&Type::parse(ty)));
        assert_eq!(of("uniq", "String"), Type::parse("UInt64"));
        assert_eq!(of("sum", "Nullable(Int8)"), Type::parse("Int64"));
        assert_eq!(of("sum", "Decimal(9, 2)"), Type::parse("Decimal(76, 2)"));
        assert_eq!(of("avg", "UInt8"), Type::parse("Float64"));
        assert_eq!(of("argMax", "LowCardinality(String)"), Type::parse("LowCardinality(String)"));
        assert_eq!(of("quantile", "DateTime"), Type::parse("DateTime"));
        assert_eq!(of("median", "UInt8"), Type::parse("Float64"));
        assert_eq!(of("groupArray", "UInt8"), Type::parse("Array(UInt8)"));
    }
}
