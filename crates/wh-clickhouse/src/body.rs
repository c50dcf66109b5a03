//! The request body: frames end to end, with a known length.
