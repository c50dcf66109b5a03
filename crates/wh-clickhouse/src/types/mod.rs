//! Column types as values, which JSON kinds they take, and what becomes of a value.

mod accept;
mod model;
mod parse;
mod value;

pub use accept::{Accept, JsonKind, accepts};
pub use model::{Nested, Type};
pub use value::{Edit, Edited, Moment, Verdict, elements, judge, read_moment};
