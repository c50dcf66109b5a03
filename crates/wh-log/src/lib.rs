//! Segmented append-only log: group commit, recycled segments, footers.
