//! The store in DynamoDB when single requests go wrong: an emulator of each test's own, a proxy before it that throttles,
//! hangs, loses answers and answers as AWS would. What every store must do is in the conformance suite.

mod dynalite_faults;
