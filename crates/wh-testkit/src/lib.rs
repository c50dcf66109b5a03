//! Real servers, fault proxy, process harness and waits for tests.
