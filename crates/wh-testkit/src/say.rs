//! The one place where the test kit prints: what a test's reader needs to see.

/// Prints to stderr, where the test runner captures it.
#[expect(clippy::print_stderr, reason = "a test's reader sees nothing else")]
pub fn say(text: &str) {
    eprintln!("{text}");
}
