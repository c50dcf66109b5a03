//! Column types as values, and which JSON kinds they take. Knows nothing of a value's content.

mod accept;
mod model;
mod parse;

pub use accept::{Accept, JsonKind, accepts};
pub use model::{Nested, Type};
