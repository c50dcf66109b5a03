//! What several modules ask of column types.

use wh_clickhouse::types::Type;

/// A type without the wrappers that values see through.
pub(crate) fn bare(ty: &Type) -> &Type {
    if let Type::Nullable(inner) | Type::LowCardinality(inner) | Type::Simple(inner) = ty { bare(inner) } else { ty }
}
