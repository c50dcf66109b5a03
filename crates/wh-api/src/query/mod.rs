//! `POST /v1/query?table=`: a structured query, turned into SQL whose every name is checked and every value bound.

mod ast;
mod build;
mod handler;
mod value;
mod when;

pub(crate) use handler::query;
