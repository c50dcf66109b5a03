//! The store in DynamoDB when single requests go wrong: an emulator of each test's own, a proxy before it that throttles,
//! hangs, loses answers and answers as AWS would. What every store must do is in the conformance suite.
#![allow(clippy::unwrap_used, reason = "a test fails where something does")]

mod dynalite_faults;
