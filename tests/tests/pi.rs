//! The Pi extension against real Pi: runs `tests/pi/run`, which installs what it needs from the package registry, with the programs that
//! were built along with this test. What it shows is in `tests/pi/`.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use roost_tests::real::Home;

#[test]
fn the_extension_holds_against_both_versions_of_pi() {
    let roost = Home::new().program("roost");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("pi/run");
    let status = Command::new(&script).env("ROOST_BIN", roost).status().unwrap();
    assert!(status.success(), "{}: {status}; its output is above", script.display());
}
