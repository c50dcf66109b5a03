//! Boot configuration: defaults, file, environment, findings.
