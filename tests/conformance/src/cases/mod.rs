//! The cases, by chapter of the port. A case's name begins with its clause; a clause may have several.

mod dead_letters;
mod delivery;
mod feeds;
mod history;
mod life;
mod limits;
mod marks;
mod publishing;
mod settling;
mod unknown;

use crate::Case;

/// Every case.
#[must_use]
pub fn all() -> Vec<Case> {
    let chapters = [
        publishing::CASES,
        limits::CASES,
        unknown::CASES,
        delivery::CASES,
        settling::CASES,
        feeds::CASES,
        history::CASES,
        dead_letters::CASES,
        marks::CASES,
        life::CASES,
    ];
    chapters.concat()
}
