//! What a test says when this machine does not let it test something: loudly, also from a test that passes, and the same everywhere.

use std::io::Write;

/// Says that the running test leaves something out, and why. Past the capture of the test harness, which shows nothing of a test that
/// passes.
pub fn not_tested(why: &str) {
    let thread = std::thread::current();
    let line = format!("NOT TESTED here: {}: {why}\n", thread.name().unwrap_or("a part"));
    // Whoever has no standard error reads nothing.
    std::io::stderr().write_all(line.as_bytes()).ok();
}
