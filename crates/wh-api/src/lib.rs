//! HTTP: ingest, query, stream, ops, health.
