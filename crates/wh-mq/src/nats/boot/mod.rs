//! The topology at boot and while running: seen live, verified, probed, waited for, checked again.
