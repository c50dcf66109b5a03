//! Reading JSON without building it: where records and members begin and end, and what kind each value is.
//!
//! No numbers are converted and no tree is made: a row keeps its own text (decision D2).

mod object;
mod scan;
mod text;

pub(crate) use object::{Object, maybe, object, objects};
pub(crate) use scan::{Fault, Scanner, Text, Value, What, plain_until};
pub(crate) use text::{has_half_a_pair, push_compact, unescape};

#[cfg(test)]
mod tests;
