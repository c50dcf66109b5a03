//! One suite for every backend of a port.
