//! Shared libraries that go in the way of a program's calls (`LD_PRELOAD`).

use std::path::PathBuf;

use super::home::Home;

/// Compiles one. A C compiler is needed to build the daemon, so there is one.
#[track_caller]
pub fn shim(home: &Home, name: &str, source: &str) -> PathBuf {
    let (source, shim) = (home.script(&format!("{name}.c"), source), home.file(&format!("{name}.so")));
    home.command("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim).arg(source).arg("-ldl").run().ok();
    shim
}
