//! `POST /v1/query?table=`: a structured query, turned into SQL whose every name is checked and every value bound.

mod allowed;
mod ast;
mod build;
mod failure;
mod format;
mod function;
mod handler;
mod operand;
mod refused;
mod run;
mod seam;
mod streamed;
mod value;
mod when;

pub(crate) use ast::Ast;
pub(crate) use handler::query;
pub(crate) use seam::Seams;
