//! `POST /v1/query?table=`: a structured query, turned into SQL whose every name is checked and every value bound.

mod allowed;
mod ast;
mod build;
mod failure;
mod format;
mod function;
mod handler;
mod operand;
mod planned;
mod refused;
mod run;
mod seam;
mod shape;
pub(crate) mod streamed;
mod value;
mod when;

pub(crate) use ast::{Ast, Node};
pub(crate) use failure::{Asked, Limits, failed_under};
#[cfg(test)]
pub(crate) use format::Numbers;
pub(crate) use format::{Form, Format};
pub(crate) use handler::query;
pub(crate) use planned::Plans;
pub(crate) use refused::Refused;
pub(crate) use run::{GRACE, X_TRUNCATED, settings};
pub(crate) use seam::Seams;
pub(crate) use shape::{Comparison, Nodes, Op, Shape};
pub(crate) use streamed::Streams;
pub(crate) use value::{MAX_VALUES, Scalar, seconds};
pub(crate) use when::age;

/// The statement of a query with its parameters, for tests that hold others against what queries say.
#[cfg(test)]
pub(crate) fn statement(
    ast: &Ast,
    table: &wh_clickhouse::TableSchema,
    zone: &str,
) -> Result<(String, Vec<(String, String)>), Refused> {
    let bounds = build::Bounds {
        max_rows: u64::from(u32::MAX),
        now: wh_types::Timestamp::default(),
        step: std::time::Duration::ZERO,
        zone,
        allowed: &allowed::Allowed::All,
    };
    let built = build::build(ast, table, bounds)?;
    built.map(|built| (built.sql, built.params)).ok_or_else(|| Refused::query("asks for nothing"))
}
