//! Ids that no two rows of a run share, written where each row has a place for one.

use std::sync::atomic::{AtomicU64, Ordering};
use wh_types::{Entropy, OsEntropy};

/// What stands in a row where its id is to be: as long as a UUID.
pub(crate) const PLACE: &[u8; 36] = b"00000000-0000-0000-0000-000000000000";

/// Where ids are to be in a request.
pub(crate) fn places(request: &[u8]) -> Vec<usize> {
    let (mut places, mut at) = (Vec::new(), 0);
    while let Some(rest) = request.get(at..at + PLACE.len()) {
        if rest == PLACE {
            places.push(at);
            at += PLACE.len();
        } else {
            at += 1;
        }
    }
    places
}

/// The ids of one run.
#[derive(Debug)]
pub(crate) struct Ids {
    run: u64,
    next: AtomicU64,
}

impl Ids {
    /// Of a run whose ids no other run has.
    pub(crate) fn draw() -> Self {
        Self { run: OsEntropy.next_u64(), next: AtomicU64::new(0) }
    }

    /// A request with new ids, made in `own`.
    pub(crate) fn put<'a>(&self, request: &[u8], places: &[usize], own: &'a mut Vec<u8>) -> &'a Vec<u8> {
        own.clear();
        own.extend_from_slice(request);
        let first = self.next.fetch_add(places.len() as u64, Ordering::Relaxed);
        for (number, place) in (first..).zip(places) {
            // both halves look like chance; the second is no other row's
            write(&mut own[*place..*place + PLACE.len()], scatter(number ^ self.run), scatter(number));
        }
        own
    }
}

/// A number for a number, no two for one (the last steps of splitmix64).
fn scatter(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Writes 32 digits over the zeros of a place.
fn write(place: &mut [u8], high: u64, low: u64) {
    let halves = [high.to_be_bytes(), low.to_be_bytes()];
    let bytes = halves.as_flattened().iter();
    let digits = bytes.flat_map(|byte| [byte >> 4, byte & 15]);
    for (digit, at) in digits.zip(place.iter_mut().filter(|at| **at != b'-')) {
        *at = DIGITS[usize::from(digit)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_gets_an_id_of_its_own_in_its_place() {
        let row = format!("{{\"id\":\"{}\",\"x\":0}}\n", std::str::from_utf8(PLACE).unwrap());
        let request = format!("head 0000\r\n\r\n{}", row.repeat(3)).into_bytes();
        let places = places(&request);
        assert_eq!(places.len(), 3);
        let (ids, mut own, mut seen) = (Ids::draw(), Vec::new(), BTreeSet::new());
        for _ in 0..500 {
            let made = ids.put(&request, &places, &mut own);
            assert_eq!(made.len(), request.len());
            for place in &places {
                assert_eq!((made[place - 1], made[place + 36], made[place + 8]), (b'"', b'"', b'-'));
                assert!(seen.insert(made[*place..place + 36].to_vec()));
            }
        }
    }
}
