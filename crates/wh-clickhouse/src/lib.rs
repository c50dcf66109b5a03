//! ClickHouse over HTTP: client, error classes, schema discovery, type model.
