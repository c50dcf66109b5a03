//! Composition by role: build, serve, stop, telemetry.
