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
pub(crate) mod streamed;
mod value;
mod when;

pub(crate) use ast::Ast;
pub(crate) use failure::{Asked, Limits, failed_under};
pub(crate) use format::{Form, Format};
pub(crate) use handler::query;
pub(crate) use planned::Plans;
pub(crate) use run::{GRACE, X_TRUNCATED, settings};
pub(crate) use seam::Seams;
pub(crate) use streamed::Streams;
pub(crate) use when::age;
