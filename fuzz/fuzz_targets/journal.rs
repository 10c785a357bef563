//! The journal's reader: a file and its write-ahead log, in memory (`/dev/shm`).

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| PathBuf::from(format!("/dev/shm/roost-fuzz-{}", std::process::id())));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| drop(roost_tests::decoders::journal(bytes, &DIRECTORY)));
