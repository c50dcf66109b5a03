//! Epochs: which stream a sequence counts in (decision D21).

use sha2::{Digest as _, Sha256};
use wh_types::{Epoch, Timestamp};

/// The epoch of a partition: the first 32 bits of SHA-256 over its stream's name, a zero byte and the time it was made,
/// in UTC with nine digits of fraction. A stream that is deleted and made anew has another.
#[must_use]
pub fn epoch(stream: &str, created: Timestamp) -> Epoch {
    let mut hash = Sha256::new();
    hash.update(stream.as_bytes());
    // no stream's name has a zero byte, so that no two pairs hash the same text
    hash.update([0]);
    hash.update(created.to_string().as_bytes());
    let digest = hash.finalize();
    Epoch(u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_made_anew_has_another_epoch_and_the_vector_stays() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let made = epoch("WH_INGEST_0", at("2026-01-01T00:00:00.000000001Z"));
        assert_eq!(made, epoch("WH_INGEST_0", at("2026-01-01T01:00:00.000000001+01:00")));
        assert_ne!(made, epoch("WH_INGEST_0", at("2026-01-01T00:00:00.000000002Z")));
        assert_ne!(made, epoch("WH_INGEST_1", at("2026-01-01T00:00:00.000000001Z")));
        // ids that clients hold are made of it
        assert_eq!(made.to_string(), "6fdbdfa4");
    }
}
