//! Ids, rows and blocks, error class, clock, backoff, stop signal, secrets.
